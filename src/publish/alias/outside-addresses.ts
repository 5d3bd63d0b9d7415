import type { Clock } from '../../base/clock.ts'
import type { Random } from '../../base/random.ts'
import type { Logger } from '../../base/telemetry/log.ts'
import type { Timers } from '../../base/timers.ts'
import { type AskAddresses, askAddresses } from '../../client/resolver/ask-addresses.ts'
import type { Observation } from '../../client/resolver/observation.ts'
import { Resolver } from '../../client/resolver/resolver.ts'
import { RESOLVER_RULES_DEFAULT, type ResolverRules } from '../../client/resolver/waits.ts'
import type { HostPort } from '../../dns/host-port.ts'
import { nameKey, printName } from '../../dns/name/name.ts'
import { type Address, type AddressFamily, scanAddress } from '../../dns/text/address.ts'

/** What is known of the addresses of a name. Immutable: a change creates a new object. */
export interface FoundAddresses {
  /** IPv4 first, each family in the order of its octets. */
  readonly addresses: readonly Address[]
  readonly ttlSeconds: number
  /** Names that CNAMEs lead to, from the name itself. */
  readonly chain: readonly Uint8Array[]
  /** Why there are no addresses, or no current ones; '' = all is well, or no reply was expected yet. */
  readonly fault: string
}

/** The last answer for one family. */
interface Answer {
  readonly addresses: readonly string[]
  readonly ttlSeconds: number
  readonly chain: readonly Uint8Array[]
  /** Monotonic time of the last reply with these addresses. */
  readonly atMs: number
  /** Replies in a row without addresses, although there were some before. */
  readonly empties: number
  /** `NXDOMAIN`, or why there was no reply; '' = the reply has addresses. */
  readonly reason: string
  /** False = the last query failed, and the answer is of an earlier one. */
  readonly isCurrent: boolean
}

interface Known {
  readonly name: Uint8Array
  users: number
  readonly answers: Map<AddressFamily, Answer>
  found: FoundAddresses
  isSettled: boolean
}

/** Addresses of a name whose queries fail are kept so long. */
const KEPT_MS = 24 * 3600 * 1000
/** TTL of addresses that are kept (RFC 8767 section 4). */
const KEPT_TTL_SECONDS = 30
/** Replies without addresses until the addresses before are removed. */
const EMPTIES_MAX = 2
/** TTLs in use: a TTL of an answer counts as the next lower one, so that the remaining TTL of a cache changes less. */
const TTLS_SECONDS = [3600, 1800, 900, 600, 300, 180, 120, 90, 60, 45, 30, 20, 15, 10]
const TTL_SECONDS_MIN = 5
/** Maximum wait for the first answers. */
const SETTLE_MS = 3000
const RULES: ResolverRules = {
  ...RESOLVER_RULES_DEFAULT,
  workers: 64,
  hurriesFirst: true,
  serversMax: 3,
  afterMs: 200,
  spreadMs: 300,
}
const FAMILIES: readonly AddressFamily[] = [1, 2]
/** Of a name that has not been asked for. */
export const NOT_RESOLVED: FoundAddresses = { addresses: [], ttlSeconds: 0, chain: [], fault: '' }

interface OutsideAddressesParts {
  readonly servers: readonly HostPort[]
  readonly clock: Clock
  readonly timers: Timers
  readonly random: Random
  readonly log: Logger
  readonly ask?: AskAddresses
  /** What others of this process know: a reload may change the servers. */
  readonly known?: readonly OutsideAddresses[]
}

/**
 * Follows the addresses of names outside of our zones. A name is resolved again when its TTL ends. If all servers fail,
 * its last addresses are kept for a day. Two replies in a row without addresses remove them.
 */
export class OutsideAddresses {
  readonly #parts: OutsideAddressesParts
  readonly #resolver: Resolver
  readonly #known = new Map<string, Known>()
  readonly #listeners = new Set<(keys: ReadonlySet<string>) => void>()
  readonly #settling = new Set<() => void>()
  readonly #startMs: number

  constructor(parts: OutsideAddressesParts) {
    this.#parts = parts
    const { servers, ask = askAddresses, clock, timers, random, log } = parts
    this.#startMs = clock.monotonic()
    this.#resolver = new Resolver({
      rules: RULES,
      familiesOf: () => FAMILIES,
      servers: () => servers,
      ask,
      onResolved: (name, _, found) => this.#note(nameKey(name), found),
      clock,
      timers,
      random,
      log,
    })
  }

  /** Follows a name; the returned function ends this. `name`: lower-case wire form. */
  want(name: Uint8Array): () => void {
    const key = nameKey(name)
    const known = this.#known.get(key) ?? this.#open(key, name)
    known.users++
    return () => {
      if (--known.users > 0) return
      this.#known.delete(key)
      this.#resolver.forget(name)
    }
  }

  /** Returns what is known of a name that is followed. `key`: `nameKey` of it. */
  of(key: string): FoundAddresses {
    return this.#known.get(key)?.found ?? NOT_RESOLVED
  }

  /** Calls `listener` with the `nameKey` of each name whose addresses changed. */
  subscribe(listener: (keys: ReadonlySet<string>) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Number of names that no server has answered for since the start of this process, less than a day ago. */
  get unansweredCount(): number {
    if (this.#parts.clock.monotonic() - this.#startMs >= KEPT_MS) return 0
    let count = 0
    for (const { answers } of this.#known.values()) {
      const isAnswered = [...answers.values()].some(({ atMs }) => atMs > Number.NEGATIVE_INFINITY)
      if (!isAnswered) count++
    }
    return count
  }

  /** Resolves once each name was asked for, or after SETTLE_MS. */
  async settled(): Promise<void> {
    if (this.#isSettled) return
    await new Promise<void>((resolve) => {
      const end = (): void => {
        cancel()
        this.#settling.delete(end)
        resolve()
      }
      const cancel = this.#parts.timers.after(SETTLE_MS, end)
      this.#settling.add(end)
    })
  }

  close(): void {
    this.#resolver.close()
    this.#listeners.clear()
    for (const end of this.#settling) end()
  }

  get #isSettled(): boolean {
    for (const { isSettled } of this.#known.values()) if (!isSettled) return false
    return true
  }

  #open(key: string, name: Uint8Array): Known {
    const others = this.#parts.known?.map((other) => other.#known.get(key)) ?? []
    const earlier = others.find((other) => other?.isSettled === true)
    const answers = new Map(earlier?.answers)
    const found = earlier?.found ?? NOT_RESOLVED
    const known = { name, users: 0, answers, found, isSettled: earlier !== undefined }
    this.#known.set(key, known)
    this.#resolver.want(name)
    return known
  }

  #note(key: string, found: readonly Observation[]): void {
    const known = this.#known.get(key)
    if (known === undefined) return
    const nowMs = this.#parts.clock.monotonic()
    for (const family of FAMILIES) {
      const replies = found.filter((one) => one.family === family)
      const before = known.answers.get(family)
      const usable = replies.find(isUsable)
      const answer = usable === undefined ? failed(replies, before, nowMs) : read(usable, before)
      known.answers.set(family, answer)
    }
    known.isSettled = true
    const next = combine(known)
    if (!isSame(next, known.found)) {
      known.found = next
      for (const listener of this.#listeners) listener(new Set([key]))
    }
    if (this.#isSettled) for (const end of this.#settling) end()
  }
}

/** True for a reply that decides which addresses the name has. */
function isUsable(one: Observation): boolean {
  return one.kind !== 'failed' || (one.isReply && ANSWERS.has(one.reason))
}

/** Reasons of a reply that are no fault of the server. */
const ANSWERS: ReadonlySet<string> = new Set(['NXDOMAIN', 'CNAME loop'])

function read(one: Observation, before: Answer | undefined): Answer {
  const facts = one.kind === 'answer' ? one.facts.filter((f) => f.family === one.family) : []
  if (facts.length > 0) {
    const ttlSeconds = facts.reduce((least, fact) => Math.min(least, fact.ttlSeconds), Infinity)
    const addresses = facts.map(({ address }) => address)
    const { chain } = facts[0]!
    return { addresses, ttlSeconds, chain, atMs: one.atMs, empties: 0, reason: '', isCurrent: true }
  }
  const reason = one.kind === 'failed' ? one.reason : 'no data'
  const chain = one.kind === 'nodata' ? (one.chain ?? []) : []
  const empties = (before?.empties ?? 0) + 1
  const isKept = before !== undefined && before.addresses.length > 0 && empties < EMPTIES_MAX
  if (isKept) return { ...before, chain, empties, atMs: one.atMs }
  const none = { addresses: [], ttlSeconds: 0, isCurrent: true }
  return { ...none, chain, atMs: one.atMs, empties, reason }
}

function failed(
  replies: readonly Observation[],
  before: Answer | undefined,
  nowMs: number,
): Answer {
  const [reply] = replies
  const reason = reply?.kind === 'failed' ? reply.reason : 'no reply'
  const isKept = before !== undefined && nowMs - before.atMs < KEPT_MS
  if (isKept) return { ...before, reason, isCurrent: false }
  const none = { addresses: [], ttlSeconds: 0, chain: [], empties: 0, isCurrent: false }
  return { ...none, atMs: before?.atMs ?? Number.NEGATIVE_INFINITY, reason }
}

function combine({ name, answers }: Known): FoundAddresses {
  const all = FAMILIES.map((family) => answers.get(family)!)
  const having = all.filter(({ addresses }) => addresses.length > 0)
  const failing = all.find(({ isCurrent }) => !isCurrent)
  const least = having.reduce((ttl, { ttlSeconds }) => Math.min(ttl, ttlSeconds), Infinity)
  const isKept = having.some(({ isCurrent }) => !isCurrent)
  const ttlSeconds =
    having.length === 0 ? 0 : roundTtl(isKept ? Math.min(least, KEPT_TTL_SECONDS) : least)
  const addresses = having.flatMap((answer) => sortAddresses(answer.addresses))
  const chain = all.find((answer) => answer.chain.length > 0)?.chain ?? []
  return { addresses, ttlSeconds, chain, fault: describe(name, all, failing, having.length > 0) }
}

function describe(
  name: Uint8Array,
  all: readonly Answer[],
  failing: Answer | undefined,
  hasAddresses: boolean,
): string {
  if (failing !== undefined) {
    const kept = hasAddresses ? '; its last addresses are served for up to 24 hours' : ''
    return `${printName(name)} cannot be resolved: ${failing.reason}${kept}`
  }
  if (hasAddresses) return ''
  const { reason } = all.find((answer) => answer.reason !== 'no data') ?? all[0]!
  return `${printName(name)} has no addresses: ${reason}`
}

/** Returns each address once, in the order of their octets. */
function sortAddresses(texts: readonly string[]): Address[] {
  const addresses = [...new Set(texts)].map((text) => scanAddress(text)!)
  return addresses.sort((a, b) => Buffer.compare(a.bytes, b.bytes))
}

function roundTtl(ttlSeconds: number): number {
  return TTLS_SECONDS.find((ttl) => ttl <= ttlSeconds) ?? TTL_SECONDS_MIN
}

function isSame(a: FoundAddresses, b: FoundAddresses): boolean {
  if (a.fault !== b.fault || a.ttlSeconds !== b.ttlSeconds) return false
  const textOf = ({ addresses, chain }: FoundAddresses): string => {
    return JSON.stringify([addresses.map(({ bytes }) => [...bytes]), chain.map((n) => nameKey(n))])
  }
  return textOf(a) === textOf(b)
}
