import { setTimeout as delay } from 'node:timers/promises'
import type { Test } from 'tap'
import { Random } from '../../src/base/random.ts'
import { Rcode, RRType } from '../../src/dns/iana/index.ts'
import { until } from '../support/until.ts'
import {
  addressesOf,
  DENIED,
  type EgressSite,
  isBelow,
  type Resolver,
  SEEN_MS,
  TEAMS,
} from './egress-site.ts'
import { EgressWatch } from './egress-watch.ts'
import { PolicyWatch } from './policy-watch.ts'

/** How long parts are killed. */
const SECONDS = Number(process.env.SEXTANT_CHAOS_SECONDS ?? 15)
const SEED = Number(process.env.SEXTANT_CHAOS_SEED ?? 1)
const REGULAR = Array.from({ length: 6 }, (_, i) => `n${i}.example.com.`)
const WILDCARDS = ['*.w0.example.net.', '*.w1.example.net.']
const BELOW = WILDCARDS.flatMap((name) => ['x', 'y', 'z'].map((label) => name.replace('*', label)))
/** The names that firewalls use. */
const USED = [...REGULAR, ...WILDCARDS]
/** A FQDNNetworkPolicy for all of `REGULAR`. */
const POLICY = 'regular'
const RCODES = [Rcode.SERVFAIL, Rcode.NXDOMAIN, Rcode.NOERROR, Rcode.NOERROR, Rcode.NOERROR]

/** What the firewalls of all namespaces use. */
class Firewalls {
  readonly #site: EgressSite
  /** Undefined = a write may have failed. */
  readonly #names = new Map<string, ReadonlySet<string> | undefined>()
  /** Since when a name is in use for sure. */
  readonly #sinceMs = new Map<string, number>()

  constructor(site: EgressSite) {
    this.#site = site
  }

  usedSinceMs(dnsName: string): number {
    return this.#sinceMs.get(dnsName) ?? Number.POSITIVE_INFINITY
  }

  /** The names that all firewalls use. */
  get used(): ReadonlySet<string> {
    return new Set([...this.#names.values()].flatMap((names) => [...(names ?? [])]))
  }

  /** Returns false if the API refused, or is away. */
  async put(namespace: string, names: ReadonlySet<string>): Promise<boolean> {
    this.#set(namespace, undefined)
    const texts = [...names].map((name) => name.slice(0, -1))
    try {
      await this.#site.putFirewall(namespace, texts)
    } catch {
      return false
    }
    this.#set(namespace, names)
    return true
  }

  #set(namespace: string, names: ReadonlySet<string> | undefined): void {
    this.#names.set(namespace, names)
    const { used } = this
    for (const name of this.#sinceMs.keys()) if (!used.has(name)) this.#sinceMs.delete(name)
    for (const name of used) {
      if (!this.#sinceMs.has(name)) this.#sinceMs.set(name, Date.now())
    }
  }
}

/** Changes firewalls and DNS answers at random, and sends queries, until `isOver`. */
class Change {
  readonly #site: EgressSite
  readonly #firewalls: Firewalls
  readonly #random: Random
  #address = 0

  constructor(site: EgressSite, firewalls: Firewalls, random: Random) {
    this.#site = site
    this.#firewalls = firewalls
    this.#random = random
  }

  async editFirewalls(isOver: () => boolean): Promise<void> {
    while (!isOver()) {
      await this.#firewalls.put(this.#pick(TEAMS), this.#someNames())
      await delay(this.#random.below(1000))
    }
  }

  async changeAnswers(isOver: () => boolean): Promise<void> {
    while (!isOver()) {
      this.answer(this.#pick([...REGULAR, ...BELOW, WILDCARDS[0]!]), this.#pick(RCODES))
      await delay(this.#random.below(300))
    }
  }

  async query(isOver: () => boolean): Promise<void> {
    while (!isOver()) {
      const name = this.#pick([...REGULAR, ...BELOW])
      await this.#site.query(name, this.#pick([RRType.A, RRType.AAAA]))
      await delay(this.#random.below(50))
    }
  }

  /** Gives each namespace a firewall at random; all of them together use all names but one. */
  async end(): Promise<void> {
    const names = new Set(USED.slice(1))
    for (const [i, namespace] of TEAMS.entries()) {
      const own = i === 0 ? names : new Set([...this.#someNames()].filter((one) => names.has(one)))
      await until(() => this.#firewalls.put(namespace, own), 'the firewall', SEEN_MS)
    }
    for (const name of [...REGULAR, ...BELOW, WILDCARDS[0]!]) this.answer(name, Rcode.NOERROR)
  }

  /** Gives a name new addresses. Its TTL is always the same, so that the ends of the TTL only grow. */
  answer(dnsName: string, rcode: number): void {
    const ips = Array.from({ length: 1 + this.#random.below(3) }, () => this.#newAddress())
    if (this.#random.below(4) === 0) ips.push(DENIED)
    const ttlSeconds = 5 + (dnsName.charCodeAt(1) % 5)
    this.#site.zone.records.set(dnsName, { ips, ttlSeconds, rcode })
  }

  #newAddress(): string {
    const [high, low] = [this.#address >> 8, this.#address++ & 255]
    // IPv6 in canonical form.
    const isIPv6 = this.#random.below(3) === 0
    return isIPv6 ? `2001:db8:${high + 1}::${low + 1}` : `198.18.${high}.${low}`
  }

  #someNames(): ReadonlySet<string> {
    return new Set(USED.filter(() => this.#random.below(3) === 0))
  }

  #pick<T>(list: readonly T[]): T {
    return list[this.#random.below(list.length)]!
  }
}

interface Part {
  readonly name: string
  readonly kill: () => Promise<void>
  readonly resume: () => Promise<void>
  /** Longest time from one start to the next kill. */
  readonly upMs: number
}

function partsOf(site: EgressSite): readonly Part[] {
  const { cluster, zone, database } = site
  return [
    {
      name: 'server',
      kill: () => site.killServer(),
      resume: () => site.startServer(false),
      upMs: 5000,
    },
    {
      name: 'operator',
      kill: () => site.killOperator(),
      resume: () => site.startOperator(false),
      upMs: 6000,
    },
    {
      name: 'OVN Northbound',
      kill: () => database.kill(),
      resume: () => database.resume(),
      upMs: 5000,
    },
    { name: 'upstream', kill: () => zone.stop(), resume: () => zone.start(), upMs: 5000 },
    {
      name: 'API server',
      kill: () => cluster.killServer(),
      resume: () => cluster.startServer(),
      upMs: 10_000,
    },
  ]
}

/** Kills a part and starts it again, at random, until `isOver`. Returns how often. */
async function killAtRandom(part: Part, random: Random, isOver: () => boolean): Promise<number> {
  for (let kills = 0; ; kills++) {
    const atMs = performance.now() + 500 + random.below(part.upMs)
    while (performance.now() < atMs && !isOver()) await delay(20)
    if (isOver() && kills > 0) return kills
    await part.kill()
    await delay(random.below(1500))
    await part.resume()
  }
}

/** What the site has, in lines, and what it must have. */
function compare(
  site: EgressSite,
  watch: EgressWatch,
  list: readonly Resolver[],
  used: Iterable<string>,
) {
  const actual: string[] = []
  const wanted: string[] = []
  const line = (kind: string, dnsName: string, ips: Iterable<string>): string => {
    return `${kind} ${dnsName}: ${[...ips].sort().join(' ')}`
  }
  const isFamily = (family: number) => (ip: string) => ip.includes(':') === (family === 2)
  for (const resolver of list) {
    actual.push(line('object', resolver.dnsName, addressesOf(resolver).keys()))
  }
  for (const [key, ips] of watch.sets) actual.push(line('set', key, ips))
  for (const dnsName of used) {
    const { records } = site.zone
    const names = [...records.keys()].filter((one) => one === dnsName || isBelow(one, dnsName))
    const all = new Set(names.flatMap((name) => records.get(name)?.ips ?? []))
    all.delete(DENIED)
    wanted.push(line('object', dnsName, all))
    for (const family of [1, 2]) {
      wanted.push(line('set', `${dnsName} ${family}`, [...all].filter(isFamily(family))))
    }
  }
  return { actual: actual.sort(), wanted: wanted.sort() }
}

/** True if a NetworkPolicy allows what its status has, and all addresses that its names have now. */
async function isPolicySettled(site: EgressSite, watch: PolicyWatch): Promise<boolean> {
  const found = await watch.look()
  if (found?.allowed === undefined || found.state !== 'Active') return false
  const now = REGULAR.flatMap((name) => site.zone.records.get(name)?.ips ?? [])
  const wanted = now.filter((ip) => ip !== DENIED)
  const { allowed, stored } = found
  return allowed.size === stored.size && [...stored, ...wanted].every((ip) => allowed.has(ip))
}

async function settles(t: Test, site: EgressSite, watch: EgressWatch, used: ReadonlySet<string>) {
  let found: ReturnType<typeof compare> | undefined
  const isSettled = async (): Promise<boolean> => {
    const list = await watch.list()
    if (list === undefined) return false
    // Names below a wildcard are known only once a client asks for them. The wildcard itself, if it
    // had no address once, is due after 30 minutes.
    for (const name of [...BELOW, ...WILDCARDS]) {
      await Promise.all([RRType.A, RRType.AAAA].map((type) => site.query(name, type)))
    }
    found = compare(site, watch, list, used)
    return found.actual.join() === found.wanted.join()
  }
  const startMs = performance.now()
  await until(isSettled, 'the wanted state', SEEN_MS).catch((error) => t.comment(String(error)))
  t.strictSame(found?.actual, found?.wanted, 'desired equals actual')
  t.comment(`settled after ${((performance.now() - startMs) / 1000).toFixed(1)} s`)
}

/** Kills all parts at random while firewalls and answers change, then compares what is with what must be. */
export async function testKills(t: Test, site: EgressSite): Promise<void> {
  const firewalls = new Firewalls(site)
  const watch = new EgressWatch(site, USED, (name) => firewalls.usedSinceMs(name))
  const randomOf = (i: number): Random => new Random(SEED * 100 + i)
  const change = new Change(site, firewalls, randomOf(0))
  t.comment(`SEXTANT_CHAOS_SEED=${SEED} SEXTANT_CHAOS_SECONDS=${SECONDS}`)
  for (const name of [...REGULAR, ...BELOW, WILDCARDS[0]!]) change.answer(name, Rcode.NOERROR)
  await site.createPolicy(POLICY, REGULAR)
  const policyWatch = new PolicyWatch(site, POLICY, REGULAR)
  const endMs = performance.now() + SECONDS * 1000
  const isOver = (): boolean => performance.now() > endMs
  const parts = partsOf(site)
  const listAgain = async (): Promise<void> => {
    while (!isOver()) {
      await watch.list()
      await policyWatch.look()
      await delay(100)
    }
  }
  const [kills] = await Promise.all([
    Promise.all(parts.map((part, i) => killAtRandom(part, randomOf(i + 1), isOver))),
    change.editFirewalls(isOver),
    change.changeAnswers(isOver),
    change.query(isOver),
    listAgain(),
  ])
  t.comment(`killed: ${parts.map(({ name }, i) => `${name} ${kills[i]}`).join(', ')}`)
  await change.end()
  await settles(t, site, watch, firewalls.used)
  const isDone = (): Promise<boolean> => isPolicySettled(site, policyWatch)
  await until(isDone, 'the NetworkPolicy', SEEN_MS).catch((error) => t.fail(String(error)))
  t.strictSame([...watch.violations, ...policyWatch.violations], [], 'violations')
  t.strictSame(site.ends, [], 'processes that ended by themselves')
  if (!t.passing()) t.comment(site.output)
}
