import { copyOctets, equalOctets } from '../../base/octets.ts'
import { RRType } from '../../dns/iana/types.ts'
import { isSubdomain } from '../../dns/name/name.ts'
import { delegationDigestFault } from '../../dns/rdata/digests.ts'
import { RecordRun } from '../image/record-run.ts'
import type { ZoneId } from '../image/types.ts'
import type { ZoneImage } from '../image/writer.ts'
import { RRSETS_MAX, repeatedApex, TARGET_AT } from './check.ts'
import { soaSerial } from './load.ts'
import { PAIRWISE_MAX } from './node-records.ts'
import { OWNER_RECORDS_MAX } from './records.ts'
import { ScannedRecord, type ZoneSink } from './sink.ts'
import { MADE_BY_SIGNERS } from './unsigned-zone.ts'

/**
 * Writes records straight into an image: a large zone then needs no memory beside its text and its image. It works for
 * zones whose records of one name follow each other and that no check complains of: `isPlain` is false for all others,
 * which `ZoneRecords` must hold. They are then scanned again.
 */
export class DirectSink implements ZoneSink {
  readonly image: ZoneImage
  serial = -1
  /** The SOA has the serial that the caller has already. */
  isKnown = false
  recordCount = 0
  #isPlain = true
  #hasNs = false
  readonly #apex: Uint8Array
  readonly #knownSerial: number
  readonly #zone: ZoneId
  /** Names that end with it lack a final dot. */
  readonly #repeated: Uint8Array | undefined
  readonly #run = new RecordRun()
  /** The owner of the run. */
  readonly #owner = new ScannedRecord().owner
  #ownerOctets = 0
  /** Octets of the run's rdata. */
  #used = 0

  /** `image`: an empty one. `knownSerial`: that of the version of the caller; -1 = none. */
  constructor(apex: Uint8Array, image: ZoneImage, knownSerial: number) {
    this.#apex = apex
    this.#knownSerial = knownSerial
    this.#repeated = repeatedApex(apex)
    this.image = image
    this.#zone = image.addZone(apex)
    this.#run.octets = new Uint8Array(1024)
  }

  add(record: ScannedRecord): boolean {
    const { owner, ownerOctets, type, ttlSeconds, rdata, rdataOffset, rdataOctets } = record
    const isSame =
      ownerOctets === this.#ownerOctets && equalOctets(owner, 0, this.#owner, 0, ownerOctets)
    if (!isSame) {
      this.#flush()
      copyOctets(owner, 0, this.#owner, 0, ownerOctets)
      this.#ownerOctets = ownerOctets
    }
    const at = this.#used
    this.#reserve(at + rdataOctets)
    copyOctets(rdata, rdataOffset, this.#run.octets, at, rdataOctets)
    this.#used = at + rdataOctets
    this.#run.add(type, ttlSeconds, at, rdataOctets)
    this.recordCount++
    // Records of signed zones are checked against each other.
    if (this.#run.count > OWNER_RECORDS_MAX || MADE_BY_SIGNERS.has(type)) this.#isPlain = false
    if (type === RRType.SOA) this.#readSoa(at + rdataOctets)
    return this.#isPlain && !this.isKnown
  }

  #reserve(octets: number): void {
    const old = this.#run.octets
    if (octets <= old.length) return
    this.#run.octets = new Uint8Array(Math.max(octets, old.length * 2))
    this.#run.octets.set(old)
  }

  #readSoa(end: number): void {
    const isAtApex = this.#ownerOctets === this.#apex.length
    if (!isAtApex || this.serial !== -1) this.#isPlain = false
    if (this.serial !== -1) return
    this.serial = soaSerial(this.#run.octets, end)
    this.isKnown = isAtApex && this.serial === this.#knownSerial
  }

  /** Ends the records. Returns true if the image has the zone, and publishes it. */
  finish(): boolean {
    this.#flush()
    const isWhole = this.#isPlain && this.serial !== -1 && this.#hasNs
    if (isWhole) this.image.publish()
    return isWhole
  }

  #flush(): void {
    const run = this.#run
    if (run.count > 0 && this.#isPlain) {
      sortByType(run)
      this.#isPlain =
        this.#isInOrder() && this.image.putName(this.#zone, this.#owner, this.#ownerOctets, run)
    }
    run.count = 0
    this.#used = 0
  }

  /** True if `checkZone` would report nothing of the name. */
  #isInOrder(): boolean {
    const run = this.#run
    let setCount = 0
    for (let from = 0; from < run.count; setCount++) {
      const end = run.setEnd(from)
      const type = run.type[from]!
      if (end - from > 1 && !this.#isSetInOrder(type, from, end)) return false
      if (type === RRType.CNAME && run.count > 1) return false
      if (type === RRType.NS && this.#ownerOctets === this.#apex.length) this.#hasNs = true
      const targetAt = TARGET_AT.get(type) ?? -1
      if (targetAt !== -1 || type === RRType.DS || type === RRType.CDS) {
        for (let i = from; i < end; i++) if (!this.#isDataInOrder(i, targetAt)) return false
      }
      from = end
    }
    return setCount <= RRSETS_MAX
  }

  /** True if a set of several records has one TTL, no copies, and a type that allows several. */
  #isSetInOrder(type: number, from: number, end: number): boolean {
    const { ttlSeconds } = this.#run
    if (type === RRType.DNAME) return false
    for (let i = from + 1; i < end; i++) if (ttlSeconds[i] !== ttlSeconds[from]) return false
    if (end - from > PAIRWISE_MAX) return this.#areUnlike(from, end)
    for (let i = from + 1; i < end; i++)
      for (let j = from; j < i; j++) if (this.#isCopy(i, j)) return false
    return true
  }

  #areUnlike(from: number, end: number): boolean {
    const { octets, rdataOffset, rdataOctets } = this.#run
    const seen = new Set<string>()
    for (let i = from; i < end; i++) {
      const at = rdataOffset[i]!
      seen.add(Buffer.from(octets.buffer, at, rdataOctets[i]!).toString('latin1'))
    }
    return seen.size === end - from
  }

  #isCopy(i: number, j: number): boolean {
    const { octets, rdataOffset, rdataOctets } = this.#run
    const length = rdataOctets[i]!
    if (length !== rdataOctets[j]) return false
    return equalOctets(octets, rdataOffset[i]!, octets, rdataOffset[j]!, length)
  }

  /** `targetAt`: where the target begins in the rdata; -1 = the rdata has a digest. */
  #isDataInOrder(i: number, targetAt: number): boolean {
    const { octets, rdataOffset, rdataOctets } = this.#run
    const [at, length] = [rdataOffset[i]!, rdataOctets[i]!]
    if (targetAt === -1) return delegationDigestFault(octets, at, length) === undefined
    const target = octets.subarray(at + targetAt, at + length)
    return this.#repeated === undefined || !isSubdomain(target, this.#repeated)
  }
}

/** Sorts the records of a run, which mostly are in order; those of one type keep it. */
function sortByType(run: RecordRun): void {
  const { type, ttlSeconds, rdataOffset, rdataOctets, count } = run
  let isSorted = true
  for (let i = 1; i < count && isSorted; i++) isSorted = type[i - 1]! <= type[i]!
  if (isSorted) return
  const records = Array.from({ length: count }, (_, i) => {
    return [type[i]!, ttlSeconds[i]!, rdataOffset[i]!, rdataOctets[i]!] as const
  })
  records.sort(([a], [b]) => a - b)
  run.count = 0
  for (const record of records) run.add(...record)
}
