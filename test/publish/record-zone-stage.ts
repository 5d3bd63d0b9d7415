import { printType, RRType } from '../../src/dns/iana/types.ts'
import { printName, scanName } from '../../src/dns/name/name.ts'
import { printRdata } from '../../src/dns/rdata/index.ts'
import type { ApiObject } from '../../src/kube/api.ts'
import type { SetChange } from '../../src/publish/build/answer-events.ts'
import { impairmentOf } from '../../src/publish/build/endpoint-state.ts'
import type { Contribution, OwnerSet } from '../../src/publish/build/owner-set.ts'
import { packSet } from '../../src/publish/build/pack-set.ts'
import { RecordZone } from '../../src/publish/build/record-zone.ts'
import type { RecordZoneOptions, RRsetSink } from '../../src/publish/build/record-zone-options.ts'
import { packRecord } from '../../src/records/pack.ts'
import { type RecordChange, recordId, StoredRecord } from '../../src/records/record-source.ts'
import { SERVED, validateResource } from '../../src/records/validate/resource.ts'
import { TestHealth } from '../support/test-health.ts'

export const APEX = scanName('k.example.com.')!

export interface Given {
  readonly name?: string
  /** The site that it is from; missing = our own. */
  readonly site?: string
  /** True = the site is silent. */
  readonly isSilent?: boolean
  readonly created?: string
  readonly rootHost?: string
  readonly labels?: { readonly [key: string]: string }
  readonly annotations?: { readonly [key: string]: string }
  /** `owner TYPE target[,target] [key=value…]`; ttl, id, weight, geo, default, location, health-port, health-address. */
  readonly endpoints: readonly string[]
}

/** Returns an endpoint as `spec.endpoints` has it; `text` as in `Given`. */
export function endpointOf(text: string): ApiObject {
  const [dnsName, recordType, targets, ...pairs] = text.split(' ')
  const options = new Map(pairs.map((p) => p.split('=') as [string, string]))
  const properties = [
    ['weight', 'weight'],
    ['geo', 'geo-code'],
    ['default', 'default'],
    ['location', 'location'],
    ['health-port', 'health-port'],
    ['health-address', 'health-address'],
  ] as const
  return {
    dnsName: dnsName!,
    recordType: recordType!,
    targets: targets!.split(','),
    recordTTL: Number(options.get('ttl') ?? 60),
    setIdentifier: options.get('id') ?? '',
    providerSpecific: properties.flatMap(([key, name]) =>
      options.has(key) ? [{ name, value: options.get(key)!.replaceAll('+', ',') }] : [],
    ),
  }
}

export function record(given: Given): StoredRecord {
  const got = validateResource(
    {
      apiVersion: 'kuadrant.io/v1alpha1',
      kind: 'DNSRecord',
      metadata: {
        name: given.name ?? 'app',
        namespace: 'n',
        labels: given.labels ?? {},
        annotations: given.annotations ?? {},
        ...(given.created === undefined ? {} : { creationTimestamp: given.created }),
      },
      spec: {
        rootHost: given.rootHost ?? 'k.example.com',
        endpoints: given.endpoints.map(endpointOf),
      },
    },
    SERVED,
  )
  if (got.kind !== 'record') throw new Error(JSON.stringify(got))
  const key = `n/${got.record.name}`
  const { site, isSilent } = given
  if (site === undefined) return new StoredRecord(key, packRecord(got.record))
  const origin = { site, id: recordId(key), isSilent }
  return new StoredRecord(`peers/${got.record.name}@${site}`, packRecord(got.record), origin)
}

/** The sets that a sink got, as a map from `owner TYPE`. */
class Served implements RRsetSink {
  readonly sets = new Map<string, OwnerSet>()
  /** Names that exist although they have no RRset. */
  readonly declared = new Set<string>()
  changes = 0

  put(owner: Uint8Array, set: OwnerSet): void {
    this.changes++
    this.sets.set(`${printName(owner)} ${printType(set.type)}`, set)
  }

  remove(owner: Uint8Array, type: number): void {
    this.changes++
    if (!this.sets.delete(`${printName(owner)} ${printType(type)}`)) throw new Error('not there')
  }

  declare(owner: Uint8Array, isDeclared: boolean): void {
    const name = printName(owner)
    if (isDeclared === this.declared.has(name)) throw new Error('declared already')
    if (isDeclared) this.declared.add(name)
    else this.declared.delete(name)
  }

  print(): Record<string, string> {
    const entries = [...this.sets].map(([key, set]) => [key, packSet(set)] as const)
    return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)))
  }

  targets(key: string): string[] | undefined {
    const set = this.sets.get(key)
    return set?.rdata.map((rdata) => printRdata(set.type, rdata))
  }
}

export function zone(
  options: Partial<
    Pick<
      RecordZoneOptions,
      'apex' | 'isLocalForm' | 'settings' | 'site' | 'isComplete' | 'onStates'
    >
  > = {},
  health = new TestHealth(),
  onChange?: (change: SetChange) => void,
) {
  const sink = new Served()
  const conflicts: string[] = []
  const ignored: string[] = []
  const apex = options.apex ?? APEX
  const ns = { owner: apex, type: RRType.NS, ttlSeconds: 60, setIdentifier: '', weight: undefined }
  const records = new RecordZone({
    apex,
    isLocalForm: options.isLocalForm ?? false,
    fixed: [],
    defaultNs: { ...ns, codes: [], isDefault: false, rdata: [scanName('ns1.k.example.com.')!] },
    sink,
    health,
    settings: options.settings,
    site: options.site,
    isComplete: options.isComplete,
    onStates: options.onStates,
    onConflict: (text) => conflicts.push(text),
    onChange,
    onOut: ({ set }, isOver) => ignored.push(`${set} ${!isOver}`),
  })
  return { records, sink, conflicts, ignored, health }
}

/** The endpoints of a record that are not served in full. */
export function impairedOf(records: RecordZone, of: StoredRecord): Contribution[] {
  const all = records.endpointsOf(of).flatMap(({ contributions }) => contributions)
  return all.filter((one) => impairmentOf(one) !== undefined)
}

export const added = (...givens: Given[]): RecordChange[] =>
  givens.map((given) => ({ before: undefined, after: record(given) }))
