import { Opcode, Rcode, RRClass, RRType } from '../dns/iana/index.ts'
import type { Query } from '../dns/message/query.ts'
import type { Response } from '../dns/message/response.ts'
import type { AddressSet } from '../dns/text/address-set.ts'
import type { CounterSlots } from '../plugin/counter-slots.ts'
import type { Handler } from '../plugin/handler.ts'
import { isUnwritten, ResponseKind } from '../plugin/status.ts'
import type { Transaction } from '../plugin/transaction.ts'
import type { ZoneSet } from '../zone/lookup/zone-set.ts'
import type { CacheStore } from './cache-store.ts'
import { cacheableKind, leastTtl, signedSeconds } from './cacheable.ts'
import { EntryField, EntryFlag, readRecords } from './entry.ts'

/** Types from here to 255 are not types of records (RFC 6895 section 3.1). */
const META_TYPES = 128
const TTL_MAX = 0xffff_ffff
/** The limits of TTLs that are sent as they came. */
const ANY_TTL = { ttlMinSeconds: 0, ttlMaxSeconds: TTL_MAX }
const FLAG_AD = 0x0020
const FLAG_RD = 0x0100
/** Maximum of answers that are being refreshed: each may wait for an upstream. */
const REFRESHES_MAX = 256

/** Counters of a cache, by server, zone and view. */
export const CacheCount = {
  Requests: 0,
  Misses: 1,
  SuccessHits: 2,
  DenialHits: 3,
  Prefetches: 4,
  ServedStale: 5,
  SuccessEvictions: 6,
  DenialEvictions: 7,
} as const

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
  /** How much longer than early clients the others get a positive answer; 0 = all get the same. */
  readonly earlySeconds: number
}

/** What a thread needs to find, and the control thread to store, answers. */
export interface CacheStores {
  readonly success: CacheStore
  /** Positive answers for all but early clients; undefined = `success` has them. */
  readonly late: CacheStore | undefined
  readonly denial: CacheStore
  /** Milliseconds on the clock of all threads, for a monotonic time of this thread. */
  readonly sharedMs: (monotonicMs: number) => number
}

/** Where the handler finds its stores: undefined until the memory exists. */
export interface CacheSource {
  readonly stores: CacheStores | undefined
  /** The early clients. */
  readonly early: AddressSet
  /** Milliseconds since the Unix epoch. */
  readonly now: () => number
}

/**
 * Answers from a cache of what the chain below had to wait for. Every thread answers from it; only
 * the control thread stores, because only its chains wait.
 *
 * With a late store, early clients get a new positive answer as soon as the old one has expired. All others
 * get the old one `earlySeconds` longer:
 *
 *     early clients: ├─ answer 1 ──┤├─ answer 2 ───┤
 *     others:        ├─ answer 1 ─────────┤├─ answer 2 ──
 */
export class Cache implements Handler {
  readonly name: string
  readonly #next: Handler
  readonly #source: CacheSource
  readonly #options: CacheOptions
  readonly #slots: CounterSlots
  #refreshing = 0

  constructor(
    name: string,
    next: Handler,
    source: CacheSource,
    options: CacheOptions,
    slots: CounterSlots,
  ) {
    this.name = name
    this.#next = next
    this.#source = source
    this.#options = options
    this.#slots = slots
    slots.length = Object.keys(CacheCount).length
  }

  /** @hot */
  serve(tx: Transaction): number | Promise<number> {
    const { stores } = this.#source
    if (stores === undefined || !this.#concerns(tx.query)) return this.#next.serve(tx)
    const nowMs = stores.sharedMs(tx.startedMs)
    const { late } = stores
    const store = late === undefined ? this.#find(tx) : this.#findInTurn(tx, late, nowMs)
    if (store === undefined) return this.#ask(tx)
    const leftSeconds = store.leftSeconds(nowMs)
    if (leftSeconds <= 0) return this.#useStale(tx, store, leftSeconds)
    if (this.#wantsPrefetch(tx, store, nowMs) && isRecursive(tx.query)) {
      if (needsOtherThread(tx, store)) return tx.server.handOver(this.name)
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

  /** As `#find`, in the order that the client's turn asks for. */
  #findInTurn(tx: Transaction, late: CacheStore, nowMs: number): CacheStore | undefined {
    const { success, denial } = this.#source.stores!
    const isEarly = this.#isEarly(tx.query)
    if (!isEarly && late.find(tx) && late.leftSeconds(nowMs) > 0) return late
    const store = this.#find(tx)
    if (store === denial) return denial
    const isValid = store === success && success.leftSeconds(nowMs) > 0
    // Early clients get no expired positive answer.
    if (isEarly) return isValid ? success : undefined
    if (isValid) return this.#copyToLate(tx, late)
    return late.find(tx) ? late : undefined
  }

  #isEarly({ peerAddress, peerFamily }: Query): boolean {
    return this.#source.early.has(peerAddress, 0, peerFamily)
  }

  /**
   * The turn of the answer that early clients already have has come for all others. From now on they get
   * this one, also if early clients get another.
   */
  #copyToLate(tx: Transaction, late: CacheStore): CacheStore | undefined {
    const { success } = this.#source.stores!
    // Only the control thread can copy. If it has too much to do, it copies at a later query.
    if (!late.canWrite) return tx.server.canHandOver ? undefined : success
    const lifetimeSeconds = success.lifetimeSeconds + this.#options.earlySeconds
    readRecords(tx, tx.chasedOctets, 0, 0, TTL_MAX)
    readHeader(tx)
    late.put(tx, lifetimeSeconds, success.signedSeconds, success.storedMs)
    tx.response.clear()
    return late.find(tx) ? late : undefined
  }

  /** Answers with the entry in `tx.chasedOctets`. @hot */
  #answer(tx: Transaction, store: CacheStore, leftSeconds: number): number {
    const { response } = tx
    const entry = tx.chasedOctets
    const { denial, late } = this.#source.stores!
    const { ttlMinSeconds, ttlMaxSeconds } =
      store === denial ? this.#options.denial : this.#options.success
    const age = Math.max(0, Math.floor(store.lifetimeSeconds - leftSeconds))
    const extra = store === late ? this.#options.earlySeconds : 0
    const ttlMin = Math.min(ttlMinSeconds, Math.ceil(leftSeconds))
    if (leftSeconds <= 0) readRecords(tx, entry, 0, 0, 0)
    else if (this.#options.keepsTtl) readRecords(tx, entry, -extra, 0, TTL_MAX)
    else readRecords(tx, entry, age - extra, ttlMin, ttlMaxSeconds)
    readHeader(tx)
    hideAuthenticity(tx)
    response.answeredBy = this.name
    // NOERROR: a cached SERVFAIL is a written reply too.
    return Rcode.NOERROR
  }

  #wantsPrefetch(tx: Transaction, store: CacheStore, nowMs: number): boolean {
    const { prefetchHits, prefetchGapSeconds } = this.#options
    if (prefetchHits === 0) return false
    const hits = store.countHit(Math.floor(nowMs / 1000), prefetchGapSeconds)
    if (hits < prefetchHits || store.isRefreshing) return false
    const { late } = this.#source.stores!
    if (store !== late) return this.#expiresSoon(store, nowMs, 0)
    if (!this.#expiresSoon(late, nowMs, this.#options.earlySeconds)) return false
    return !this.#isRenewed(tx.query, nowMs)
  }

  /** Whether the entry found last is in the share of its lifetime in which it is refreshed. */
  #expiresSoon(store: CacheStore, nowMs: number, extraSeconds: number): boolean {
    const lifetimeSeconds = store.lifetimeSeconds - extraSeconds
    const leftSeconds = store.leftSeconds(nowMs) - extraSeconds
    // The last second counts in any case, because answers of few seconds have no tenth to speak of.
    return leftSeconds <= Math.max(1, lifetimeSeconds * this.#options.prefetchShare)
  }

  /** Whether early clients already have a newer answer than the late one. */
  #isRenewed(query: Query, nowMs: number): boolean {
    const { success, denial } = this.#source.stores!
    if (success.has(query)) return !this.#expiresSoon(success, nowMs, 0)
    return denial.has(query) && denial.leftSeconds(nowMs) > 0
  }

  /**
   * How long the expired entry found last is used: not longer than its signatures are valid. A validator would refuse
   * it, although a server below may answer (RFC 8767 section 10).
   */
  #staleSecondsOf(store: CacheStore): number {
    const { staleSeconds, earlySeconds } = this.#options
    const isLate = store === this.#source.stores!.late
    const maxSeconds = isLate ? Math.max(0, staleSeconds - earlySeconds) : staleSeconds
    return Math.min(maxSeconds, store.signedSeconds - store.lifetimeSeconds)
  }

  /** Has an expired entry: answers with it, or asks below. */
  #useStale(tx: Transaction, store: CacheStore, leftSeconds: number): number | Promise<number> {
    const isFailure = tx.chasedOctets[EntryField.Rcode] === Rcode.SERVFAIL
    if (isFailure || -leftSeconds >= this.#staleSecondsOf(store)) return this.#ask(tx)
    if (this.#options.verifiesStale) {
      const status = this.#ask(tx)
      // What is stored beside a denial is older.
      if (typeof status === 'number' || store === this.#source.stores!.denial) return status
      return this.#askOrUseStale(tx, status)
    }
    if (!store.isRefreshing && isRecursive(tx.query)) {
      if (needsOtherThread(tx, store)) return tx.server.handOver(this.name)
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
    const { success, late } = this.#source.stores!
    const store = late ?? success
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
    if (typeof status !== 'number') return this.#storeLater(tx, status)
    hideAuthenticity(tx)
    return status
  }

  async #storeLater(tx: Transaction, asked: Promise<number>): Promise<number> {
    const status = await asked
    this.#store(tx, status)
    hideAuthenticity(tx)
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
      const { success, late, denial } = this.#source.stores!
      success.endRefresh(copy.query)
      late?.endRefresh(copy.query)
      denial.endRefresh(copy.query)
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
    else this.#storeReply(tx, status)
  }

  #storeReply(tx: Transaction, status: number): void {
    const { success, denial } = this.#source.stores!
    const { query, response } = tx
    response.expand(query)
    const kind = cacheableKind(tx, status)
    const { earlySeconds, keepsTtl } = this.#options
    const validSeconds = signedSeconds(query, response, this.#source.now())
    const signed = validSeconds - earlySeconds
    if (kind === ResponseKind.Error || signed <= 0) return
    const isSuccess = kind === ResponseKind.Answer || kind === ResponseKind.Delegation
    const options = isSuccess ? this.#options.success : this.#options.denial
    const isDisabled = options.disabled !== undefined && options.disabled.match(query) !== -1
    if (isDisabled) this.#forget(tx)
    const ttl = Math.max(options.ttlMinSeconds, leastTtl(response))
    const lifetime = Math.min(options.ttlMaxSeconds, ttl, signed)
    if (isDisabled || lifetime <= 0) return
    if (isSuccess) denial.remove(tx)
    else success.remove(tx)
    this.#put(tx, isSuccess ? success : denial, lifetime, validSeconds)
    this.#storeLate(tx, isSuccess ? lifetime + earlySeconds : 0, validSeconds)
    const extra = isSuccess && !this.#isEarly(query) ? earlySeconds : 0
    sendTtlsAsCached(response, keepsTtl ? ANY_TTL : options, extra)
  }

  #put(tx: Transaction, store: CacheStore, lifetimeSeconds: number, validSeconds?: number): void {
    const evictions = store.evictions
    store.put(tx, lifetimeSeconds, validSeconds)
    const counter =
      store === this.#source.stores!.denial
        ? CacheCount.DenialEvictions
        : CacheCount.SuccessEvictions
    this.#slots.of(tx)[counter]! += store.evictions - evictions
  }

  /** Stores the response for all but early clients, unless they have a valid answer; lifetime 0: only removes. */
  #storeLate(tx: Transaction, lifetimeSeconds: number, validSeconds?: number): void {
    const { late, sharedMs } = this.#source.stores!
    if (late === undefined) return
    if (late.has(tx.query) && late.leftSeconds(sharedMs(tx.startedMs)) > 0) return
    if (lifetimeSeconds > 0) this.#put(tx, late, lifetimeSeconds, validSeconds)
    else late.remove(tx)
  }

  #storeFailure(tx: Transaction, status: number): void {
    const { success, denial } = this.#source.stores!
    const { servfailSeconds } = this.#options
    // An upstream may refuse to hide the client (ECS /0). The clients without ECS share its key.
    if (tx.query.hasEcs && tx.query.ecsSourceBits === 0) return
    // A good answer that may still be used stale is worth more.
    if (servfailSeconds === 0 || this.#isUsable(tx)) return
    success.remove(tx)
    this.#storeLate(tx, 0)
    if (isUnwritten(status)) tx.response.clear()
    tx.response.rcode = Rcode.SERVFAIL
    this.#put(tx, denial, servfailSeconds)
  }

  /** Removes what was stored before, because the name has a new answer that is not cached. */
  #forget(tx: Transaction): void {
    this.#source.stores!.success.remove(tx)
    this.#source.stores!.denial.remove(tx)
    this.#storeLate(tx, 0)
  }

  /** True if there is a good answer that is or may be used stale. */
  #isUsable(tx: Transaction): boolean {
    const { success, late, sharedMs } = this.#source.stores!
    const nowMs = sharedMs(tx.startedMs)
    if (late === undefined) {
      return success.has(tx.query) && success.leftSeconds(nowMs) > -this.#staleSecondsOf(success)
    }
    if (late.has(tx.query) && late.leftSeconds(nowMs) > -this.#staleSecondsOf(late)) return true
    // Early clients have a new answer whose turn for the others has not come.
    return success.has(tx.query) && success.leftSeconds(nowMs) > 0
  }

  #countHit(tx: Transaction, store: CacheStore): void {
    this.#count(tx, CacheCount.Requests)
    const isDenial = store === this.#source.stores!.denial
    this.#count(tx, isDenial ? CacheCount.DenialHits : CacheCount.SuccessHits)
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

/** Fills the response from the entry in `tx.chasedOctets`, except for the records. @hot */
function readHeader({ chasedOctets: entry, response }: Transaction): void {
  const flags = entry[EntryField.Flags]!
  response.authenticData = (flags & EntryFlag.Authentic) !== 0
  response.recursionAvailable = (flags & EntryFlag.RecursionAvailable) !== 0
  const scopeBits = entry[EntryField.ScopeBits]! | (entry[EntryField.ScopeBits + 1]! << 8)
  // A view may have read the client's address as well.
  response.scopeBits = Math.max(response.scopeBits, scopeBits)
  response.rcode = entry[EntryField.Rcode]!
}

/** Clears AD for a client that asked for neither DO nor AD (RFC 6840 section 5.8). */
function hideAuthenticity({ query, response }: Transaction): void {
  if (!query.dnssecOk && (query.flags & FLAG_AD) === 0) response.authenticData = false
}

/** Makes the TTLs those that the cache sends from now on, so that clients keep no answer longer than it does. */
function sendTtlsAsCached(
  response: Response,
  { ttlMinSeconds, ttlMaxSeconds }: Pick<KindOptions, 'ttlMinSeconds' | 'ttlMaxSeconds'>,
  extraSeconds: number,
): void {
  for (let i = 0; i < response.count; i++) {
    const ttl = Math.min(ttlMaxSeconds, Math.max(ttlMinSeconds, response.ttlSeconds[i]!))
    response.ttlSeconds[i] = ttl + extraSeconds
  }
}
