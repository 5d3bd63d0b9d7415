import { type ApiObject, textOf } from '../../kube/api.ts'
import type { Informer } from '../../kube/informer.ts'
import { API_VERSION } from '../../records/dns-record.ts'
import { validateResource } from '../../records/validate/resource.ts'
import type { OwnHealth } from '../plan/own.ts'
import { mappingOf } from '../record/fields.ts'
import type { AddressProbe } from '../status/conditions.ts'

const NONE: OwnHealth = { down: [], up: [], probes: [] }

/** Health of record addresses according to DNSHealthCheckProbes, whichever operator probes them. */
export class ProbeIndex {
  /** By the key of the record, then by the key of the probe. */
  readonly #pages = new Map<string, Map<string, AddressProbe>>()
  /** Key of the record of each probe. */
  readonly #owners = new Map<string, string>()
  readonly #onChange: (recordKey: string) => void

  /** `onChange`: the health of a record has changed. */
  constructor(informer: Pick<Informer, 'subscribe'>, onChange: (recordKey: string) => void) {
    this.#onChange = onChange
    informer.subscribe({
      onAdd: (key, object) => this.#put(key, object),
      onUpdate: (key, object) => this.#put(key, object),
      onDelete: (key) => this.#remove(key),
    })
  }

  healthOf(recordKey: string): OwnHealth {
    const page = this.#pages.get(recordKey)
    if (page === undefined) return NONE
    const probes = [...page.values()].sort((a, b) => (a.address < b.address ? -1 : 1))
    const of = (health: AddressProbe['health']): string[] => [
      ...new Set(probes.filter((one) => one.health === health).map(({ address }) => address)),
    ]
    return { down: of('down'), up: of('up'), probes }
  }

  #put(key: string, object: ApiObject): void {
    const kind = 'DNSHealthCheckProbe'
    const resource = validateResource({ ...object, apiVersion: API_VERSION, kind })
    if (resource.kind !== 'probe') {
      this.#remove(key)
      return
    }
    const { namespace, recordName, address, downReason } = resource.probe
    const owner = `${namespace}/${recordName}`
    const known = readHealth(object)
    if (this.#owners.get(key) !== owner) this.#remove(key)
    const page = this.#pages.get(owner) ?? new Map<string, AddressProbe>()
    const before = page.get(key)
    const isSame = before?.health === known.health && before.address === address
    // An address keeps its first reason while it is down, because each change is a write.
    const reason = isSame && before.reason ? before.reason : downReason
    page.set(key, { address, ...known, ...(known.health === 'down' ? { reason } : {}) })
    this.#pages.set(owner, page)
    this.#owners.set(key, owner)
    if (!isSame || before.notProbed !== known.notProbed) this.#onChange(owner)
  }

  #remove(key: string): void {
    const owner = this.#owners.get(key)
    const page = owner === undefined ? undefined : this.#pages.get(owner)
    if (owner === undefined || page === undefined) return
    page.delete(key)
    if (page.size === 0) this.#pages.delete(owner)
    this.#owners.delete(key)
    this.#onChange(owner)
  }
}

/** A reason without failures says why the last attempt was not made. */
function readHealth(probe: ApiObject): Omit<AddressProbe, 'address'> {
  const status = mappingOf(probe, 'status')
  const { healthy, consecutiveFailures = 0 } = status
  const notProbed = consecutiveFailures === 0 ? textOf(status, 'reason') : ''
  if (typeof healthy !== 'boolean') return { health: 'unknown', notProbed }
  return { health: healthy ? 'up' : 'down', notProbed }
}
