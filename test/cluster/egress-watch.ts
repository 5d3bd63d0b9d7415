import type { AddressFamily } from '../../src/dns/text/address.ts'
import { addressSetRow } from '../../src/egress/sinks/ovn/address-set-row.ts'
import type { OvsdbClient } from '../../src/ovsdb/client.ts'
import { addressesOf, type EgressSite, OWNER, type Resolver } from './egress-site.ts'

const FAMILIES: readonly AddressFamily[] = [1, 2]
/** The operator may act on an earlier state of the firewalls for so long. */
const SETTLED_MS = 10_000

/** An address that a set lost before its TTL ended. */
interface Loss {
  readonly dnsName: string
  readonly uid: string
  readonly ip: string
  readonly atMs: number
}

/**
 * Watches statuses and address sets while parts are killed, and notes what must never happen:
 *
 * - an address that no answer had
 * - an address that disappears before its TTL ends, although its object exists
 * - a new object for a name that was in use all the time
 */
export class EgressWatch {
  readonly #violations = new Set<string>()
  /** By `NAME FAMILY`, as of the last change that was seen. */
  sets: ReadonlyMap<string, ReadonlySet<string>> = new Map()
  /** When an address was first in a set; `performance.now()`. */
  readonly seenMs = new Map<string, number>()
  readonly #site: EgressSite
  readonly #client: OvsdbClient
  readonly #rowNames = new Map<string, string>()
  /** By DNS name, as of the last list. */
  #resolvers = new Map<string, Resolver>()
  #listedMs = 0
  readonly #losses: Loss[] = []
  /** Since when a name is in use; not here = it is not, or this is not known. */
  readonly #usedSinceMs: (dnsName: string) => number

  constructor(site: EgressSite, names: Iterable<string>, usedSinceMs: (name: string) => number) {
    this.#site = site
    this.#usedSinceMs = usedSinceMs
    for (const dnsName of names) {
      for (const family of FAMILIES) {
        const { name } = addressSetRow(OWNER, dnsName, family, [])
        this.#rowNames.set(name, `${dnsName} ${family}`)
      }
    }
    this.#client = site.followSets((rows) => {
      this.#compareSets(
        new Map(
          rows.map(({ name, addresses }) => [
            this.#rowNames.get(String(name)) ?? `unknown ${name}`,
            new Set([...(addresses as ReadonlySet<unknown>)].map(String)),
          ]),
        ),
      )
    })
  }

  /** Stops following the sets. */
  close(): void {
    this.#client.close()
  }

  #compareSets(sets: ReadonlyMap<string, ReadonlySet<string>>): void {
    const nowMs = Date.now()
    for (const [key, ips] of sets) {
      const [dnsName = ''] = key.split(' ')
      for (const ip of ips) {
        if (!this.seenMs.has(ip)) this.seenMs.set(ip, performance.now())
        if (this.sets.get(key)?.has(ip) === true) continue
        if (!this.#site.zone.explains(dnsName, ip)) this.#note(`${ip} in the set of ${dnsName}`)
      }
    }
    for (const [key, before] of this.sets) {
      const [dnsName = ''] = key.split(' ')
      const resolver = this.#resolvers.get(dnsName)
      if (resolver === undefined) continue
      const ends = addressesOf(resolver)
      for (const ip of before) {
        if (sets.get(key)?.has(ip) === true || (ends.get(ip) ?? 0) <= nowMs) continue
        this.#losses.push({ dnsName, uid: resolver.uid, ip, atMs: nowMs })
      }
    }
    this.sets = sets
  }

  get violations(): readonly string[] {
    return [...this.#violations]
  }

  /** Lists the objects, and compares them with the last list. Returns undefined if the API is away. */
  async list(): Promise<readonly Resolver[] | undefined> {
    const startMs = Date.now()
    const list = await this.#site.resolvers()
    if (list === undefined) return undefined
    const endMs = Date.now()
    const found = new Map(list.map((resolver) => [resolver.uid, resolver]))
    for (const resolver of list) this.#checkExplained(resolver)
    for (const before of this.#resolvers.values()) {
      const after = found.get(before.uid)
      if (after === undefined) {
        if (this.#usedSinceMs(before.dnsName) + SETTLED_MS < this.#listedMs) {
          this.#note(`the object of ${before.dnsName} was deleted`)
        }
        continue
      }
      const ips = addressesOf(after)
      for (const [ip, untilMs] of addressesOf(before)) {
        if (!ips.has(ip) && untilMs > endMs) {
          this.#note(`${ip} of ${before.dnsName} left the status ${untilMs - endMs} ms early`)
        }
      }
    }
    for (const { dnsName, uid, ip, atMs } of this.#losses.filter((loss) => loss.atMs < startMs)) {
      const resolver = found.get(uid)
      if (resolver === undefined) continue
      const earlyMs = (addressesOf(resolver).get(ip) ?? 0) - atMs
      if (earlyMs > 0) this.#note(`${ip} left the set of ${dnsName} ${earlyMs} ms early`)
    }
    const left = this.#losses.filter((loss) => loss.atMs >= startMs)
    this.#losses.splice(0, this.#losses.length, ...left)
    this.#resolvers = new Map(list.map((resolver) => [resolver.dnsName, resolver]))
    this.#listedMs = startMs
    return list
  }

  #checkExplained(resolver: Resolver): void {
    for (const { dnsName, ends } of resolver.names) {
      for (const ip of ends.keys()) {
        if (!this.#site.zone.explains(dnsName, ip)) {
          this.#note(`${ip} in the status of ${resolver.dnsName} for ${dnsName}`)
        }
      }
    }
  }

  #note(violation: string): void {
    this.#violations.add(violation)
  }
}
