import { Opcode, Rcode, RRClass, RRType } from '../../dns/iana/index.ts'
import type { Query } from '../../dns/message/query.ts'
import { type Response, Section } from '../../dns/message/response.ts'
import type { CounterSlots } from '../../plugin/counter-slots.ts'
import type { Handler } from '../../plugin/handler.ts'
import { isUnwritten, ResponseKind, responseKind } from '../../plugin/status.ts'
import type { Transaction } from '../../plugin/transaction.ts'
import type { ZoneSet } from '../../zone/lookup/zone-set.ts'
import type { CacheStore } from './cache-store.ts'
import { EntryField, EntryFlag, readRecords } from './entry.ts'

/** Types from here to 255 are not types of records (RFC 6895 section 3.1). */
const META_TYPES = 128
const FLAG_AD = 0x0020
const FLAG_RD = 0x0100
/** Maximum of answers that are being refreshed: each may wait for an upstream. */
const REFRESHES_MAX = 256
/** Minimum of octets of SOA rdata. */
const SOA_OCTETS_MIN = 22

/** Counters of a cache, by server, zone and view. */
export const CacheCount = {
  Requests: 0,
  Misses: 1,
  SuccessHits: 2,
  DenialHits: 3,
  Prefetches: 4,
  ServedStale: 5,
} as const
export const CACHE_COUNTS = 6

/** Limits of one kind of answers. */
export interface KindOptions {
  readonly ttlMaxSeconds: number
  readonly ttlMinSeconds: number
  /** Names that are not cached. */
  readonly disabled: ZoneSet | undefined
}

export interface CacheOptions {
  readonly zones: ZoneSet
  readonly success: KindOptions
  readonly denial: KindOptions
  /** How long a SERVFAIL is cached; 0 = not at all. */
  readonly servfailSeconds: number
  /** Queries in a row after which an answer is refreshed before it expires; 0 = never. */
  readonly prefetchHits: number
  readonly prefetchGapSeconds: number
  /** Share of the lifetime, 0..1, that is left when an answer is refreshed. */
  readonly prefetchShare: number
  /** How long an expired answer is used if there is no other; 0 = not at all. */
  readonly staleSeconds: number
  /** An expired answer is used only after the chain below failed. */
  readonly verifiesStale: boolean
  /** Sends the TTLs that the answer came with. */
  readonly keepsTtl: boolean
}

/** What a thread needs to find, and the control thread to store, answers. */
export interface CacheStores {
  readonly success: CacheStore
  readonly denial: CacheStore
  /** Milliseconds on the clock of all threads, for a monotonic time of this thread. */
  readonly sharedMs: (monotonicMs: number) => number
}

/** Where the handler finds its stores: undefined until the memory exists. */
export interface CacheSource {
  readonly stores: CacheStores | undefined
}

/**
 * Answers from a cache of what the chain below had to wait for. Every thread answers from it; only
 * the control thread stores, because only its chains wait.
 */
export class Cache implements Handler {
  readonly name = 'cache'
  readonly #next: Handler
  readonly #source: CacheSource
  readonly #options: CacheOptions
  readonly #slots: CounterSlots
  #refreshing = 0

  constructor(next: Handler, source: CacheSource, options: CacheOptions, slots: CounterSlots) {
    this.#next = next
    this.#source = source
    this.#options = options
    this.#slots = slots
    slots.length = CACHE_COUNTS
  }

  /** @hot */
  serve(tx: Transaction): number | Promise<number> {
    const { stores } = this.#source
    if (stores === undefined || !this.#concerns(tx.query)) return this.#next.serve(tx)
    const nowMs = stores.sharedMs(tx.startedMs)
    const store = this.#find(tx)
    if (store === undefined) return this.#ask(tx)
    const leftSeconds = store.lifetimeSeconds - (nowMs - store.storedMs) / 1000
    if (leftSeconds <= 0) return this.#useStale(tx, store, leftSeconds)
    if (this.#wantsPrefetch(store, nowMs, leftSeconds) && isRecursive(tx.query)) {
      if (needsOtherThread(tx, store)) return tx.server.handOver()
      if (this.#refresh(tx, store)) this.#count(tx, CacheCount.Prefetches)
    }
    this.#countHit(tx, store)
    return this.#answer(tx, store, leftSeconds)
  }

  #concerns(query: Query): boolean {
    if (query.opcode !== Opcode.QUERY || query.qclass !== RRClass.IN) return false
    if (query.qtype >= META_TYPES && query.qtype < 256) return false
    return query.qtype !== RRType.OPT && this.#options.zones.match(query) !== -1
  }

  #find(tx: Transaction): CacheStore | undefined {
    const { success, denial } = this.#source.stores!
    if (success.find(tx)) return success
    return denial.find(tx) ? denial : undefined
  }

  /** Answers with the entry in `tx.chasedOctets`. @hot */
  #answer(tx: Transaction, store: CacheStore, leftSeconds: number): number {
    const { query, response } = tx
    const entry = tx.chasedOctets
    const isSuccess = store === this.#source.stores!.success
    const { ttlMinSeconds, ttlMaxSeconds } = isSuccess
      ? this.#options.success
      : this.#options.denial
    const age = Math.max(0, Math.floor(store.lifetimeSeconds - leftSeconds))
    if (leftSeconds <= 0) readRecords(tx, entry, 0, 0, 0)
    else if (this.#options.keepsTtl) readRecords(tx, entry, 0, 0, 0xffff_ffff)
    else readRecords(tx, entry, age, Math.min(ttlMinSeconds, Math.ceil(leftSeconds)), ttlMaxSeconds)
    const flags = entry[EntryField.Flags]!
    const wantsAuthentic = query.dnssecOk || (query.flags & FLAG_AD) !== 0
    response.authenticData = wantsAuthentic && (flags & EntryFlag.Authentic) !== 0
    response.recursionAvailable = (flags & EntryFlag.RecursionAvailable) !== 0
    const scopeBits = entry[EntryField.ScopeBits]! | (entry[EntryField.ScopeBits + 1]! << 8)
    // A view may have read the client's address as well.
    response.scopeBits = Math.max(response.scopeBits, scopeBits)
    response.rcode = entry[EntryField.Rcode]!
    response.answeredBy = this.name
    // NOERROR: a cached SERVFAIL is a written reply too.
    return Rcode.NOERROR
  }

  #wantsPrefetch(store: CacheStore, nowMs: number, leftSeconds: number): boolean {
    const { prefetchHits, prefetchGapSeconds, prefetchShare } = this.#options
    if (prefetchHits === 0) return false
    const hits = store.countHit(Math.floor(nowMs / 1000), prefetchGapSeconds)
    // The last second counts in any case, because answers of few seconds have no tenth to speak of.
    const isLate = leftSeconds <= Math.max(1, store.lifetimeSeconds * prefetchShare)
    return hits >= prefetchHits && isLate && !store.isRefreshing
  }

  /** Has an expired entry: answers with it, or asks below. */
  #useStale(tx: Transaction, store: CacheStore, leftSeconds: number): number | Promise<number> {
    const { staleSeconds, verifiesStale } = this.#options
    const isFailure = tx.chasedOctets[EntryField.Rcode] === Rcode.SERVFAIL
    if (isFailure || -leftSeconds >= staleSeconds) return this.#ask(tx)
    if (verifiesStale) {
      const status = this.#ask(tx)
      return typeof status === 'number' ? status : this.#askOrUseStale(tx, status)
    }
    if (!store.isRefreshing && isRecursive(tx.query)) {
      if (needsOtherThread(tx, store)) return tx.server.handOver()
      this.#refresh(tx, store)
    }
    this.#count(tx, CacheCount.ServedStale)
    this.#countHit(tx, store)
    return this.#answer(tx, store, leftSeconds)
  }

  async #askOrUseStale(tx: Transaction, asked: Promise<number>): Promise<number> {
    const status = await asked
    const rcode = isUnwritten(status) ? status : tx.response.rcode
    if (rcode !== Rcode.SERVFAIL) return status
    const store = this.#source.stores!.success
    if (!store.find(tx)) return status
    tx.response.clear()
    tx.response.error = ''
    this.#count(tx, CacheCount.ServedStale)
    return this.#answer(tx, store, 0)
  }

  #ask(tx: Transaction): number | Promise<number> {
    const status = this.#next.serve(tx)
    if (tx.server.isHandingOver) return status
    this.#count(tx, CacheCount.Requests)
    this.#count(tx, CacheCount.Misses)
    return typeof status === 'number' ? status : this.#storeLater(tx, status)
  }

  async #storeLater(tx: Transaction, asked: Promise<number>): Promise<number> {
    const status = await asked
    this.#store(tx, status)
    return status
  }

  /**
   * Asks the chain below, without a client that waits. Returns false if this thread cannot, or if it
   * already asks for too many.
   */
  #refresh(tx: Transaction, store: CacheStore): boolean {
    if (!store.canWrite || this.#refreshing >= REFRESHES_MAX) return false
    this.#refreshing++
    store.startRefresh()
    const copy = tx.server.repeat(tx)
    const done = (): void => {
      this.#refreshing--
      this.#source.stores!.success.endRefresh(copy.query)
      this.#source.stores!.denial.endRefresh(copy.query)
      copy.server.release(copy)
    }
    Promise.resolve()
      .then(() => this.#next.serve(copy))
      .then((status) => this.#store(copy, status))
      .then(done, done)
    return true
  }

  #store(tx: Transaction, status: number): void {
    const { query, response } = tx
    const rcode = isUnwritten(status) ? status : response.rcode
    // A client that asks not to resolve a name may get less than others (a referral of a resolver).
    if (tx.stream !== undefined || response.isSteered || !isRecursive(query)) return
    if (response.truncated) {
      this.#forget(tx)
      return
    }
    if (rcode === Rcode.SERVFAIL) this.#storeFailure(tx, status)
    else this.#storeReply(tx, responseKind(tx, status))
  }

  #storeReply(tx: Transaction, kind: ResponseKind): void {
    if (kind === ResponseKind.Error) return
    const { success, denial } = this.#source.stores!
    const { query, response } = tx
    response.expand(query)
    const isSuccess = kind === ResponseKind.Answer || kind === ResponseKind.Delegation
    const options = isSuccess ? this.#options.success : this.#options.denial
    const isDisabled = options.disabled !== undefined && options.disabled.match(query) !== -1
    if (isDisabled) this.#forget(tx)
    const lifetime = Math.min(
      options.ttlMaxSeconds,
      Math.max(options.ttlMinSeconds, leastTtl(response)),
    )
    if (isDisabled || lifetime <= 0) return
    if (isSuccess) denial.remove(tx)
    else success.remove(tx)
    const store = isSuccess ? success : denial
    store.put(tx, lifetime)
  }

  #storeFailure(tx: Transaction, status: number): void {
    const { success, denial } = this.#source.stores!
    const { servfailSeconds } = this.#options
    // A good answer that may still be used stale is worth more.
    if (servfailSeconds === 0 || this.#isUsable(tx)) return
    success.remove(tx)
    if (isUnwritten(status)) tx.response.clear()
    tx.response.rcode = Rcode.SERVFAIL
    denial.put(tx, servfailSeconds)
  }

  /** Removes what was stored before, because the name has a new answer that is not cached. */
  #forget(tx: Transaction): void {
    this.#source.stores!.success.remove(tx)
    this.#source.stores!.denial.remove(tx)
  }

  /** True if there is a good answer that is or may be used stale. */
  #isUsable(tx: Transaction): boolean {
    const { success, sharedMs } = this.#source.stores!
    if (!success.has(tx.query)) return false
    const age = (sharedMs(tx.startedMs) - success.storedMs) / 1000
    return age < success.lifetimeSeconds + this.#options.staleSeconds
  }

  #countHit(tx: Transaction, store: CacheStore): void {
    this.#count(tx, CacheCount.Requests)
    const isSuccess = store === this.#source.stores!.success
    this.#count(tx, isSuccess ? CacheCount.SuccessHits : CacheCount.DenialHits)
  }

  #count(tx: Transaction, counter: number): void {
    this.#slots.of(tx)[counter]! += 1
  }
}

/** Whether another thread must refresh the entry. If it has too much to do, the old answer is better than none. */
function needsOtherThread(tx: Transaction, store: CacheStore): boolean {
  return !store.canWrite && tx.server.canHandOver
}

function isRecursive(query: Query): boolean {
  return (query.flags & FLAG_RD) !== 0
}

/** The lowest TTL of the records, and the last number of a SOA in the authority section (RFC 2308 section 5). */
function leastTtl(response: Response): number {
  let least = response.count === 0 ? 0 : 0xffff_ffff
  for (let i = 0; i < response.count; i++) {
    least = Math.min(least, response.ttlSeconds[i]!)
    const octets = response.rdataOctets[i]!
    if (response.type[i] !== RRType.SOA || response.section[i] !== Section.Authority) continue
    if (octets < SOA_OCTETS_MIN) continue
    const rdata = response.rdataBytes[i]!
    const at = response.rdataOffset[i]! + octets - 4
    const minimum =
      (rdata[at]! << 24) | (rdata[at + 1]! << 16) | (rdata[at + 2]! << 8) | rdata[at + 3]!
    least = Math.min(least, minimum >>> 0)
  }
  return least
}
