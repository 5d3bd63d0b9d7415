import type { Clock } from '../../base/clock.ts'
import { type SignedSet, signSet } from '../../dns/dnssec/rrsig.ts'
import { RRClass } from '../../dns/iana/classes.ts'
import { RRType } from '../../dns/iana/types.ts'
import { type Response, signedType } from '../../dns/message/response.ts'
import type { Section } from '../../dns/message/section.ts'
import { NameBuffer } from '../../dns/name/hashed-name.ts'
import { equalNames } from '../../dns/name/name.ts'
import { equalNamesAt } from '../../dns/name/name-at.ts'
import type { CounterSlots } from '../../plugin/counter-slots.ts'
import type { Transaction } from '../../plugin/transaction.ts'
import { ClockGuard } from '../../signing/zone/clock-guard.ts'
import { signersOf } from '../../signing/zone/signers-of.ts'
import type { SigningPolicy } from '../../signing/zone-keys.ts'
import { composeProof, nameAfter } from './compact-denial.ts'
import type { SignatureBudget } from './signature-budget.ts'
import { type CachedSignatures, SignatureCache, Stored } from './signature-cache.ts'
import type { LinkedZone } from './signing-zones.ts'

/** Counters, by server. */
export const DnssecCount = {
  Hits: 0,
  Misses: 1,
  /** Entries that were stored in a free place of a cache. */
  Entries: 2,
  /** Signatures that were made. */
  Signatures: 3,
  /** Replies that were not signed, because the limit was reached or the clock is wrong. */
  Refused: 4,
} as const
export const DNSSEC_COUNTS = 5

interface SignerParts {
  readonly policy: SigningPolicy
  /** Entries of the cache of this thread. */
  readonly capacity: number
  readonly budget: SignatureBudget
  readonly slots: CounterSlots
  readonly clock: Clock
  /** Returns a number in [0, 1). */
  readonly random: () => number
}

/** Adds signatures to responses: those of a cache, or new ones, as far as the budget allows. */
export class ResponseSigner {
  readonly #parts: SignerParts
  #cache: SignatureCache | undefined = undefined
  readonly #owner = new NameBuffer()
  readonly #guard: ClockGuard
  /** No signature may be made of the set that was searched last. */
  #isRefused = false
  /** Why the clock did not allow the last signature that was not cached; '' = it did. */
  clockFault = ''

  constructor(parts: SignerParts) {
    this.#parts = parts
    this.#guard = new ClockGuard(parts.clock)
  }

  /**
   * Adds the signatures of the RRset that record `first` belongs to. Returns false if the budget is exhausted, or the
   * clock is wrong (`clockFault`). `isFree`: the set does not depend on the query, so it needs no budget.
   */
  signSetOf(tx: Transaction, zone: LinkedZone, first: number, isFree: boolean): boolean {
    const { response } = tx
    const cache = this.#useCache()
    const { ttlSeconds, authoritative } = response
    const type = response.type[first]!
    const owner = response.ownerBytes[first]!
    const ownerAt = response.ownerOffset[first]!
    let ttl = ttlSeconds[first]!
    cache.begin(0)
    for (let i = first; i < response.count; i++) {
      if (!isSameSet(response, first, i)) continue
      ttl = Math.min(ttl, ttlSeconds[i]!)
      cache.add(response.rdataBytes[i]!, response.rdataOffset[i]!, response.rdataOctets[i]!)
    }
    const originalTtl = authoritative ? ttl : roundUp(ttl)
    this.#endKey(owner, ownerAt, type, originalTtl, zone)
    let signatures = this.#find(tx, isFree)
    if (signatures === undefined) {
      if (this.#isRefused) return false
      const rdata = rdataOf(response, first)
      const set = { owner: this.#ownerName(), type, ttlSeconds: originalTtl, rdata }
      signatures = this.#sign(tx, zone, set, undefined)
    }
    addSignatures(response, first, ttl, signatures)
    return true
  }

  /** Adds an NSEC record for the name at `owner[at]`, with its signatures. Returns false as `signSetOf`. */
  addProof(
    tx: Transaction,
    zone: LinkedZone,
    section: Section,
    name: { readonly owner: Uint8Array; readonly at: number; readonly ttlSeconds: number },
    proof: number,
  ): boolean {
    const { owner, at, ttlSeconds } = name
    const cache = this.#useCache()
    cache.begin(proof)
    this.#endKey(owner, at, RRType.NSEC, ttlSeconds, zone)
    let signatures = this.#find(tx, false)
    if (signatures === undefined) {
      if (this.#isRefused) return false
      const isApex = this.#owner.labelCount === zone.labels
      const record = composeProof(nameAfter(owner, at, zone.apex), proof, isApex)
      const set = { owner: this.#ownerName(), type: RRType.NSEC, ttlSeconds, rdata: [record] }
      signatures = this.#sign(tx, zone, set, record)
    }
    const record = signatures.record!
    const { length } = record
    const { response } = tx
    const first = response.count
    response.add(section, owner, at, RRType.NSEC, RRClass.IN, ttlSeconds, record, 0, length)
    addSignatures(response, first, ttlSeconds, signatures)
    return true
  }

  #useCache(): SignatureCache {
    this.#cache ??= new SignatureCache(this.#parts.capacity)
    return this.#cache
  }

  #endKey(owner: Uint8Array, at: number, type: number, ttl: number, zone: LinkedZone): void {
    const name = this.#owner
    name.set(owner, at, owner.length)
    this.#cache!.end(name, type, ttl, zone.generation)
  }

  #ownerName(): Uint8Array {
    return this.#owner.qname.slice(0, this.#owner.qnameOctets)
  }

  #nowSeconds(): number {
    return Math.floor(this.#parts.clock.now() / 1000)
  }

  /**
   * Returns the cached signatures of the set that was hashed last. While the clock is wrong, also those that it calls
   * old. Undefined = they must be made, unless `#isRefused`.
   */
  #find(tx: Transaction, isFree: boolean): CachedSignatures | undefined {
    const cache = this.#cache!
    this.clockFault = ''
    let found = cache.find(this.#nowSeconds())
    if (found === undefined) {
      this.clockFault = this.#guard.refusal(0)
      if (this.clockFault !== '') found = cache.find(0)
    }
    if (found !== undefined) {
      this.clockFault = ''
      this.#count(tx, DnssecCount.Hits)
      return found
    }
    const { budget } = this.#parts
    this.#isRefused = this.clockFault !== '' || !(isFree || budget.take(tx.query, tx.startedMs))
    if (this.#isRefused) this.#count(tx, DnssecCount.Refused)
    return undefined
  }

  #count(tx: Transaction, counter: number, count = 1): void {
    this.#parts.slots.of(tx)[counter]! += count
  }

  #sign(
    tx: Transaction,
    zone: LinkedZone,
    set: SignedSet,
    record: Uint8Array | undefined,
  ): CachedSignatures {
    const { policy, random } = this.#parts
    const { validitySeconds, jitterSeconds, inceptionOffsetSeconds, refreshSeconds } = policy
    const now = this.#nowSeconds()
    const expirationSeconds = now + validitySeconds - Math.floor(random() * jitterSeconds)
    const times = { inceptionSeconds: now - inceptionOffsetSeconds, expirationSeconds }
    const signers = signersOf(zone.keys!, set.type, equalNames(set.owner, zone.apex))
    const rrsigs = signers.map((key) => signSet(set, key, zone.apex, times))
    const signatures = { rrsigs, record, dueSeconds: expirationSeconds - refreshSeconds }
    const isNew = this.#cache!.store(signatures) === Stored.New
    this.#count(tx, DnssecCount.Misses)
    this.#count(tx, DnssecCount.Signatures, rrsigs.length)
    if (isNew) this.#count(tx, DnssecCount.Entries)
    return signatures
  }
}

/** Adds the RRSIG records of the set that record `first` belongs to, with its TTL (RFC 4034 section 3). */
function addSignatures(
  response: Response,
  first: number,
  ttlSeconds: number,
  { rrsigs }: CachedSignatures,
): void {
  const section = response.section[first]! as Section
  const owner = response.ownerBytes[first]!
  const at = response.ownerOffset[first]!
  for (const rrsig of rrsigs) {
    const { length } = rrsig
    response.add(section, owner, at, RRType.RRSIG, RRClass.IN, ttlSeconds, rrsig, 0, length)
  }
}

/** True if record `i` belongs to the RRset of record `first`. */
export function isSameSet(response: Response, first: number, i: number): boolean {
  if (i === first) return true
  if (response.type[i] !== response.type[first]) return false
  return isAtName(response, first, i)
}

/** True if both records are of one section and owner. */
function isAtName(response: Response, first: number, i: number): boolean {
  if (response.section[i] !== response.section[first]) return false
  const owner = response.ownerBytes[first]!
  const at = response.ownerOffset[first]!
  if (response.ownerBytes[i] === owner && response.ownerOffset[i] === at) return true
  return equalNamesAt(response.ownerBytes[i]!, response.ownerOffset[i]!, owner, at)
}

/** Index of a signature of the RRset of record `first`; -1 = it has none. */
export function findSignature(response: Response, first: number): number {
  const type = response.type[first]
  for (let i = 0; i < response.count; i++) {
    if (response.type[i] !== RRType.RRSIG || signedType(response, i) !== type) continue
    if (isAtName(response, first, i)) return i
  }
  return -1
}

function rdataOf(response: Response, first: number): readonly Uint8Array[] {
  const rdata: Uint8Array[] = []
  for (let i = first; i < response.count; i++) {
    if (!isSameSet(response, first, i)) continue
    const at = response.rdataOffset[i]!
    rdata.push(response.rdataBytes[i]!.subarray(at, at + response.rdataOctets[i]!))
  }
  return rdata
}

/**
 * Returns the TTL that the signature of a set of another server covers. Its TTL falls with each second, and would
 * otherwise need a signature for each value. A signature may cover a higher one (RFC 4035 section 5.3.3).
 */
function roundUp(ttlSeconds: number): number {
  let rounded = 1
  while (rounded < ttlSeconds) rounded *= 2
  return rounded
}
