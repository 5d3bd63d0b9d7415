import { isDeepStrictEqual } from 'node:util'
import type { Logger } from '../base/telemetry/log.ts'
import { textOf } from '../kube/api.ts'
import { type FieldProblem, printPath } from '../records/validate/fields.ts'
import {
  type Changes,
  type ExternalEndpoint,
  hostOf,
  isRegistryEndpoint,
  keyOf,
} from './external-endpoint.ts'
import {
  changeEndpoints,
  composeHostRecord,
  isOwned,
  longestZone,
  NO_ENDPOINTS,
  nameOfHost,
  type RecordScope,
  readHostRecord,
} from './host-record.ts'
import { fromDocument, mapEndpoint } from './map-endpoint.ts'
import { type KeptRecord, type RecordStore, StoreUnavailable } from './record-store.ts'

/** Attempts to write a record that other writers change at the same time. */
const TRIES_MAX = 5
/** Hosts that are written at the same time. */
const WRITERS = 8

/** Which hosts may be stored. */
interface DomainFilter {
  readonly include: readonly string[]
  readonly exclude: readonly string[]
}

interface ProviderOptions {
  readonly store: RecordStore
  readonly scope: RecordScope
  /** Names below which no host is stored, in lower case. */
  readonly excluded: readonly string[]
  readonly log: Logger
}

/** Counts of a request, for metrics. */
interface ApplyOutcome {
  readonly written: number
  readonly removed: number
  /** `HOST: reason` of each host that could not be written. */
  readonly failures: readonly string[]
}

type HostOutcome = 'written' | 'removed' | 'unchanged'

/** A host cannot be written. Other hosts can. */
class HostRefused extends Error {}

/** What external-dns's webhook protocol asks for. Methods reject with StoreUnavailable. */
export class WebhookProvider {
  readonly #options: ProviderOptions
  /** Messages of the last adjustment: external-dns repeats it every minute. */
  #notes: ReadonlySet<string> = new Set()

  constructor(options: ProviderOptions) {
    this.#options = options
  }

  get filter(): DomainFilter {
    return { include: this.#options.scope.zones, exclude: this.#options.excluded }
  }

  /** Returns all stored endpoints, also texts of the TXT registry as they were written. */
  async records(): Promise<readonly ExternalEndpoint[]> {
    const records = await this.#options.store.list()
    return records.flatMap(({ object }) => {
      const { served, registry } = readHostRecord(object)
      return [...served, ...registry]
    })
  }

  /**
   * Returns the endpoints as `records` will return them. An endpoint that cannot be served is returned as it is stored
   * now, or left out; so are all endpoints of a host that cannot be served together.
   */
  async adjust(endpoints: readonly ExternalEndpoint[]): Promise<readonly ExternalEndpoint[]> {
    const notes = new Set<string>()
    // Another provider may have the other hosts.
    const ours = endpoints.filter((endpoint) => this.#isInside(hostOf(endpoint)))
    const adjusted = ours.map((endpoint) => this.#adjustOne(endpoint, notes))
    const refused = this.#findRefused(adjusted, notes)
    this.#report(notes)
    const isKept = (one: ExternalEndpoint | undefined): boolean => {
      return one === undefined || refused.has(hostOf(one))
    }
    const stored = adjusted.some(isKept) ? await this.records() : []
    const byKey = new Map(stored.map((endpoint) => [keyOf(endpoint), endpoint]))
    return ours
      .map((endpoint, index) => {
        const one = adjusted[index]
        return isKept(one) ? byKey.get(keyOf(endpoint)) : one
      })
      .filter((endpoint) => endpoint !== undefined)
  }

  /** Applies a plan. Each host is written as a whole or not at all; a repetition has no further effect. */
  async apply(changes: Changes): Promise<ApplyOutcome> {
    const byHost = groupByHost(changes)
    const { store } = this.#options
    const known = new Map(
      (await store.list()).map((one) => [textOf(one.object.metadata, 'name'), one]),
    )
    const outcomes = new Map<HostOutcome, number>()
    const failures: string[] = []
    const hosts = byHost.entries()
    const run = async (): Promise<void> => {
      for (const [host, part] of hosts) {
        try {
          const outcome = await this.#applyHost(host, part, known)
          outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
        } catch (error) {
          if (!(error instanceof Error) || error instanceof StoreUnavailable) throw error
          failures.push(`${host}: ${error.message}`)
        }
      }
    }
    await Promise.all(Array.from({ length: WRITERS }, run))
    return {
      written: outcomes.get('written') ?? 0,
      removed: outcomes.get('removed') ?? 0,
      failures: failures.sort(),
    }
  }

  /** Undefined = it cannot be served. */
  #adjustOne(endpoint: ExternalEndpoint, notes: Set<string>): ExternalEndpoint | undefined {
    if (isRegistryEndpoint(endpoint)) return endpoint
    const mapped = mapEndpoint(endpoint)
    const what = `${endpoint.recordType} ${endpoint.dnsName}`
    if ('refused' in mapped) {
      notes.add(`${what} is not changed: ${printProblem(mapped.refused)}`)
      return undefined
    }
    for (const note of mapped.notes) notes.add(`${what}: ${printProblem(note)}`)
    return { ...fromDocument(mapped.document), labels: endpoint.labels }
  }

  /** Returns the hosts whose endpoints are valid, but not together. */
  #findRefused(
    endpoints: readonly (ExternalEndpoint | undefined)[],
    notes: Set<string>,
  ): ReadonlySet<string> {
    const refused = new Set<string>()
    const put = endpoints.filter((endpoint) => endpoint !== undefined)
    for (const [host, changes] of groupByHost({ remove: [], put })) {
      const wanted = changeEndpoints(NO_ENDPOINTS, changes)
      const composed = composeHostRecord(host, wanted, this.#options.scope, undefined)
      if (!('refused' in composed)) continue
      refused.add(host)
      notes.add(`${host} is not changed: ${printProblem(composed.refused)}`)
    }
    return refused
  }

  #report(notes: ReadonlySet<string>): void {
    for (const note of notes) {
      if (this.#notes.has(note)) continue
      this.#options.log.warning(`webhook endpoint: ${note}`, 'webhook-endpoint')
    }
    this.#notes = notes
  }

  async #applyHost(
    host: string,
    changes: Changes,
    known: ReadonlyMap<string, KeptRecord>,
  ): Promise<HostOutcome> {
    if (!this.#isInside(host)) throw new HostRefused('the host is outside of --zones')
    const { store, scope } = this.#options
    const name = nameOfHost(host, scope.owner)
    // The list has only our records: one of another owner may have the name.
    let before = known.get(name) ?? (await store.get(name))
    for (let tries = 0; tries < TRIES_MAX; tries++) {
      const outcome = await this.#tryHost(host, changes, before)
      if (outcome !== undefined) return outcome
      before = await store.get(name)
    }
    throw new HostRefused(`other writers change ${name} constantly`)
  }

  /** Undefined = another writer was faster. */
  async #tryHost(
    host: string,
    changes: Changes,
    before: KeptRecord | undefined,
  ): Promise<HostOutcome | undefined> {
    const { store, scope } = this.#options
    const name = nameOfHost(host, scope.owner)
    checkBefore(name, before, scope.owner)
    const present = before === undefined ? NO_ENDPOINTS : readHostRecord(before.object)
    const wanted = changeEndpoints(present, changes)
    if (wanted.served.length + wanted.registry.length === 0) {
      if (before === undefined) return 'unchanged'
      return (await store.remove(name, before)) ? 'removed' : undefined
    }
    const composed = composeHostRecord(host, wanted, scope, before?.object)
    if ('refused' in composed) throw new HostRefused(printProblem(composed.refused))
    if (isDeepStrictEqual(composed.record, before?.object)) return 'unchanged'
    return (await store.write(name, composed.record, before)) ? 'written' : undefined
  }

  #isInside(host: string): boolean {
    const { scope, excluded } = this.#options
    return longestZone(host, scope.zones) !== undefined && longestZone(host, excluded) === undefined
  }
}

/** Throws HostRefused if the record is not ours, or is being deleted. */
function checkBefore(name: string, before: KeptRecord | undefined, owner: string): void {
  if (before === undefined) return
  if (!isOwned(before.object, owner)) {
    throw new HostRefused(`DNSRecord ${name} exists and has another owner than ${owner}`)
  }
  if (textOf(before.object.metadata, 'deletionTimestamp') !== '') {
    throw new HostRefused(`DNSRecord ${name} is being deleted`)
  }
}

function groupByHost({ remove, put }: Changes): Map<string, Changes> {
  const byHost = new Map<string, { remove: ExternalEndpoint[]; put: ExternalEndpoint[] }>()
  const partOf = (endpoint: ExternalEndpoint) => {
    const host = hostOf(endpoint)
    const part = byHost.get(host) ?? { remove: [], put: [] }
    byHost.set(host, part)
    return part
  }
  for (const endpoint of remove) partOf(endpoint).remove.push(endpoint)
  for (const endpoint of put) partOf(endpoint).put.push(endpoint)
  return byHost
}

function printProblem({ path, message }: FieldProblem): string {
  return path.length === 0 ? message : `${printPath(path)}: ${message}`
}
