import { InputError } from '../../base/errors.ts'
import { nsec3Excess } from '../../dns/dnssec/nsec3.ts'
import { printType, RRType } from '../../dns/iana/index.ts'
import type { ResourceRecord } from '../../dns/message/message.ts'
import { lowerName, nameKey, printName } from '../../dns/name/name.ts'
import type { ZoneId } from '../../zone/image/types.ts'
import type { ZoneImage } from '../../zone/image/writer.ts'
import type { VersionView } from '../journal/version-view.ts'
import { type ReceivedStep, TransferFault } from './transfer-reader.ts'

/** RRsets between two pauses. */
const SLICE_SETS = 128
/** Limits of the zone image: records per RRset, RRsets per name. */
const RDATA_MAX = 65_535
const RRSETS_MAX = 255

/** An RRset after the change. */
interface Draft {
  readonly owner: Uint8Array
  readonly type: number
  ttlSeconds: number
  readonly rdata: Uint8Array[]
}

/** The result of applying differences to a zone, before it is written. */
export class StepsPlan {
  readonly #view: VersionView
  readonly #drafts = new Map<string, Draft>()
  /** Types of the drafts, by owner; computed once they are complete. */
  #byOwner: Map<string, number[]> | undefined

  /** `view`: the version that the first difference starts from. */
  constructor(view: VersionView) {
    this.#view = view
  }

  /** The RRsets that differ. */
  get changed(): readonly Pick<Draft, 'owner' | 'type'>[] {
    return [...this.#drafts.values()]
  }

  /**
   * Applies the differences and checks the result; pauses at intervals. Throws TransferFault if
   * they do not fit the zone, or if the result can't be served.
   */
  *work(steps: readonly ReceivedStep[], soa: ResourceRecord): Generator<void, void> {
    let count = 0
    for (const { removed, added } of steps) {
      for (const record of removed) {
        this.#remove(record)
        if (++count % SLICE_SETS === 0) yield
      }
      for (const record of added) {
        this.#add(record)
        if (++count % SLICE_SETS === 0) yield
      }
    }
    const apexSoa = this.#draft(soa)
    apexSoa.rdata.splice(0, apexSoa.rdata.length, soa.rdata)
    apexSoa.ttlSeconds = soa.ttlSeconds
    for (const { owner } of this.#drafts.values()) {
      this.#checkOwner(owner)
      if (++count % SLICE_SETS === 0) yield
    }
  }

  /**
   * Writes the result, unpublished; pauses at intervals. Throws InputError if the image is full.
   */
  *write(image: ZoneImage, zone: ZoneId): Generator<void, void> {
    let count = 0
    for (const { owner, type, ttlSeconds, rdata } of this.#drafts.values()) {
      if (rdata.length === 0) image.removeRRset(zone, owner, type)
      else image.putRRset(zone, owner, { type, ttlSeconds, rdata })
      if (++count % SLICE_SETS === 0) yield
    }
    yield* image.updateChain(zone, this.#chained())
  }

  /** Returns the owners of the NSEC and NSEC3 RRsets that differ. */
  #chained(): Uint8Array[] {
    const owners: Uint8Array[] = []
    for (const { owner, type } of this.#drafts.values()) {
      if (type === RRType.NSEC || type === RRType.NSEC3) owners.push(owner)
    }
    return owners
  }

  #remove(record: ResourceRecord): void {
    const draft = this.#draft(record)
    const at = draft.rdata.findIndex((rdata) => Buffer.compare(rdata, record.rdata) === 0)
    if (at === -1) {
      const what = `${printName(record.owner)} ${printType(record.type)}`
      throw new TransferFault(`a difference removes a missing record: ${what}`)
    }
    draft.rdata.splice(at, 1)
  }

  #add(record: ResourceRecord): void {
    const draft = this.#draft(record)
    draft.ttlSeconds = record.ttlSeconds > 0x7fff_ffff ? 0 : record.ttlSeconds
    const isThere = draft.rdata.some((rdata) => Buffer.compare(rdata, record.rdata) === 0)
    if (!isThere) draft.rdata.push(new Uint8Array(record.rdata))
  }

  #draft({ owner, type }: ResourceRecord): Draft {
    const key = `${type} ${nameKey(owner)}`
    const known = this.#drafts.get(key)
    if (known !== undefined) return known
    const draft: Draft = { owner: lowerName(owner), type, ttlSeconds: 0, rdata: [] }
    const set = this.#view.find(draft.owner, type)
    if (set !== 0) {
      for (const record of this.#view.records(draft.owner, set)) {
        draft.ttlSeconds = record.ttlSeconds
        const { rdata, rdataOffset, rdataOctets } = record
        draft.rdata.push(rdata.slice(rdataOffset, rdataOffset + rdataOctets))
      }
    }
    this.#drafts.set(key, draft)
    return draft
  }

  /** Applies the checks that `checkZone` makes for zone files. */
  #checkOwner(owner: Uint8Array): void {
    const types = new Set(this.#view.typesAt(owner))
    for (const type of [...types, ...(this.#typesByOwner().get(nameKey(owner)) ?? [])]) {
      const draft = this.#drafts.get(`${type} ${nameKey(owner)}`)
      if (draft === undefined) continue
      if (draft.rdata.length === 0) types.delete(type)
      else types.add(type)
      checkRRset(draft)
    }
    if (types.size > RRSETS_MAX) throw unservable(owner, RRType.ANY)
    if (!types.has(RRType.CNAME)) return
    for (const type of types) {
      const isBeside = type === RRType.CNAME || type === RRType.RRSIG || type === RRType.NSEC
      if (!isBeside) throw unservable(owner, RRType.CNAME)
    }
  }

  #typesByOwner(): Map<string, number[]> {
    if (this.#byOwner !== undefined) return this.#byOwner
    const byOwner = new Map<string, number[]>()
    for (const { owner, type } of this.#drafts.values()) {
      const key = nameKey(owner)
      byOwner.set(key, [...(byOwner.get(key) ?? []), type])
    }
    this.#byOwner = byOwner
    return byOwner
  }
}

function checkRRset(draft: Draft): void {
  const { owner, type, rdata } = draft
  const isSingle = type === RRType.CNAME || type === RRType.DNAME
  if (rdata.length > (isSingle ? 1 : RDATA_MAX)) throw unservable(owner, type)
  if (type === RRType.NSEC3 || type === RRType.NSEC3PARAM) checkIterations(draft)
}

function checkIterations({ owner, type, rdata }: Draft): void {
  for (const octets of rdata) {
    const excess = nsec3Excess(octets, 0)
    if (excess === '') continue
    throw new TransferFault(`${printName(owner)} ${printType(type)} has ${excess}`)
  }
}

function unservable(owner: Uint8Array, type: number): TransferFault {
  const what = `${printName(owner)} ${printType(type)}`
  return new TransferFault(`the differences lead to an invalid zone: ${what}`)
}

/** True if `error` means that the image has no more room. */
export function isFull(error: unknown): boolean {
  return error instanceof InputError || error instanceof RangeError
}
