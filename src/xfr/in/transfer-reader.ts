import type { InputError } from '../../base/errors.ts'
import { Opcode, printRcode, printType, RRClass, RRType } from '../../dns/iana/index.ts'
import { HeaderFlag } from '../../dns/message/header.ts'
import type { Message, ResourceRecord } from '../../dns/message/message.ts'
import { equalNames, isSubdomain, lowerName, printName } from '../../dns/name/name.ts'
import { HEAP_OCTETS_MAX } from '../../dns/rdata/octets.ts'
import { isSerialAfter } from '../../dns/serial.ts'
import { OutsideNames } from '../../zone/zonefile/outside-names.ts'
import { OWNER_RECORDS_MAX, ZoneRecords } from '../../zone/zonefile/records.ts'
import { ScannedRecord } from '../../zone/zonefile/sink.ts'
import { type Holding, type TransferBudget, transferBudget } from './transfer-budget.ts'

/** `rcode` of a fault that does not show what the primary has. */
export const UNREACHED = -2

/** Why a transfer failed. The caller tries again, at another primary or later. */
export class TransferFault extends Error {
  /** The rcode of the primary's error response; -1 = invalid data; UNREACHED = no answer. */
  readonly rcode: number

  constructor(message: string, rcode = -1) {
    super(message)
    this.name = 'TransferFault'
    this.rcode = rcode
  }
}

/** One difference as received (RFC 1995 section 4). */
export interface ReceivedStep {
  readonly removed: readonly ResourceRecord[]
  readonly added: readonly ResourceRecord[]
  readonly fromSerial: number
  readonly toSerial: number
}

/** The result of a transfer. */
export type Received =
  /** The primary has nothing newer than our version; `serial` is the primary's. */
  | { readonly kind: 'current'; readonly serial: number }
  | {
      readonly kind: 'whole'
      readonly records: ZoneRecords
      readonly serial: number
      readonly warnings: readonly InputError[]
    }
  | {
      readonly kind: 'steps'
      readonly steps: readonly ReceivedStep[]
      readonly serial: number
      readonly soa: ResourceRecord
      readonly warnings: readonly InputError[]
    }

interface TransferQuestion {
  /** Lower-case wire form. */
  readonly zone: Uint8Array
  readonly id: number
  /** The serial of our version, for an IXFR; undefined = an AXFR. */
  readonly serial: number | undefined
  /** Source of the records, for messages. */
  readonly origin: string
}

type Step = { -readonly [K in keyof ReceivedStep]: ReceivedStep[K] } & {
  removed: ResourceRecord[]
  added: ResourceRecord[]
}

/** Minimum size of SOA rdata: two names and five numbers. */
const SOA_OCTETS_MIN = 22

/** Limits of differences, which are stored as received. Above them, the whole zone is requested instead. */
const STEP_RECORDS_MAX = 500_000
const STEP_OCTETS_MAX = 64 * 1024 * 1024

/** Memory of a record of a whole zone, beside its name and data, and of one of a difference: an object. */
const RECORD_OCTETS = 128
const STEP_RECORD_OCTETS = 400

/** Which records of a transfer are kept, in addition to its SOAs, and how many. */
export interface TransferFilter {
  readonly keeps: (record: ResourceRecord) => boolean
  /**
   * Limits for the kept records of a whole zone; above them, the transfer fails. Octets: of names
   * and data, uncompressed.
   */
  readonly recordsMax: number
  readonly octetsMax: number
  /** The same limits for all records, kept or not. */
  readonly seenRecordsMax: number
  readonly seenOctetsMax: number
  /** Limit for the records of differences, kept or not. */
  readonly stepRecordsMax: number
}

/** Names and data of a zone are limited to two gigabytes. */
const ALL: TransferFilter = {
  keeps: () => true,
  recordsMax: Number.POSITIVE_INFINITY,
  octetsMax: Number.POSITIVE_INFINITY,
  seenRecordsMax: Number.POSITIVE_INFINITY,
  seenOctetsMax: Number.POSITIVE_INFINITY,
  stepRecordsMax: STEP_RECORDS_MAX,
}

/**
 * Reads the messages of an AXFR (RFC 5936) or an IXFR, in each form that the server may choose:
 *
 *     SOA                                          current, if it is not newer
 *     SOA  record…  SOA                            whole
 *     SOA  (SOA record… SOA record…)…  SOA         steps, if the second SOA is our version
 */
export class TransferReader {
  readonly #question: TransferQuestion
  readonly #filter: TransferFilter
  readonly #scanned = new ScannedRecord()
  #soa: ResourceRecord | undefined
  #serial = 0
  /** Records of names in the zone so far, including the first SOA. */
  #count = 0
  /** Records so far. */
  #seen = 0
  /** Octets of their names and data. */
  #octets = 0
  #whole: ZoneRecords | undefined
  readonly #steps: Step[] = []
  readonly #outside = new OutsideNames()
  #isAdding = false
  /** Octets of owners and data in the differences. */
  #stepOctets = 0
  /** The memory of the last message that a record of a difference is in. */
  #message: ArrayBufferLike | undefined
  #received: Received | undefined
  readonly #budget: TransferBudget
  readonly #holding: Holding
  #isCut = false

  /** The caller must call `close`. */
  constructor(
    question: TransferQuestion,
    filter: TransferFilter = ALL,
    budget: TransferBudget = transferBudget,
  ) {
    this.#question = question
    this.#filter = filter
    this.#budget = budget
    this.#holding = budget.open(() => this.#cut())
  }

  /** The transfer has ended: what it holds does not count any more. */
  close(): void {
    this.#budget.close(this.#holding)
  }

  /**
   * Reads the next message. Returns the result after the last message, undefined before it. Throws
   * TransferFault.
   */
  take(message: Message): Received | undefined {
    this.#checkMessage(message)
    for (const record of message.answer) {
      this.#checkBudget()
      if (this.#received !== undefined) throw new TransferFault('records follow the last SOA')
      this.#take(record)
    }
    // If the zone is not newer, the answer is only its SOA.
    if (this.#received === undefined && this.#count === 1 && this.#isOld()) {
      this.#received = { kind: 'current', serial: this.#serial }
    }
    return this.#received
  }

  /** Another transfer may have caused it. */
  #checkBudget(): void {
    if (!this.#isCut) return
    const megabytes = Math.floor(this.#budget.octetsMax / 2 ** 20)
    throw new TransferFault(
      `this is the largest of the transfers, which hold more than ${megabytes} MiB together; give the process more memory`,
    )
  }

  #cut(): void {
    this.#isCut = true
    this.#whole = undefined
    this.#steps.length = 0
    this.#message = undefined
  }

  #isOld(): boolean {
    const { serial } = this.#question
    return serial !== undefined && !isSerialAfter(this.#serial, serial)
  }

  #checkMessage(message: Message): void {
    const { id, flags, opcode, rcode, question } = message
    if (id !== this.#question.id) throw new TransferFault('the reply is for another question')
    if ((flags & HeaderFlag.QR) === 0 || opcode !== Opcode.QUERY) {
      throw new TransferFault('the message is not a reply')
    }
    if (rcode !== 0) throw new TransferFault(`the primary answered ${printRcode(rcode)}`, rcode)
    if ((flags & HeaderFlag.TC) !== 0) throw new TransferFault('a message is truncated')
    const isOurs = question === undefined || equalNames(question.name, this.#question.zone)
    if (!isOurs) throw new TransferFault('the reply is about another zone')
    if (message.answer.length === 0) throw new TransferFault('a message has no records')
  }

  #take(record: ResourceRecord): void {
    this.#checkRecord(record)
    const isSoa = record.type === RRType.SOA
    this.#seen++
    this.#octets += record.owner.length + record.rdata.length
    const { seenRecordsMax, seenOctetsMax } = this.#filter
    if (this.#seen > seenRecordsMax)
      throw new TransferFault(`the transfer has more than ${seenRecordsMax} records`)
    if (this.#octets > seenOctetsMax)
      throw new TransferFault(`the transfer has more than ${seenOctetsMax} octets`)
    const isOutside = !isSubdomain(record.owner, this.#question.zone)
    if (this.#soa === undefined) {
      if (!isSoa || isOutside) throw new TransferFault('the first record is not the SOA')
      this.#soa = record
      this.#count = 1
      this.#serial = soaSerial(record)
      return
    }
    if (isOutside) {
      this.#outside.count(record.owner, this.#question.origin, this.#seen)
      return
    }
    this.#count++
    if (this.#count === 2) this.#choose(record)
    if (this.#whole === undefined) this.#takeStep(record, isSoa)
    else if (isSoa) this.#endWhole(this.#whole, record)
    else this.#keep(this.#whole, record)
  }

  /** Chooses between IXFR and AXFR by the second record. */
  #choose(record: ResourceRecord): void {
    const { serial } = this.#question
    const isSoa = record.type === RRType.SOA
    const isIxfr = isSoa && serial !== undefined && soaSerial(record) === serial
    if (isIxfr && serial !== this.#serial) return
    this.#whole = new ZoneRecords()
    this.#keep(this.#whole, this.#soa!)
  }

  #endWhole(records: ZoneRecords, soa: ResourceRecord): void {
    if (soaSerial(soa) !== this.#serial)
      throw new TransferFault('the transfer ends with another SOA')
    this.#received = { kind: 'whole', records, serial: this.#serial, warnings: this.#warnings() }
  }

  #warnings(): InputError[] {
    return this.#outside.warnings(this.#question.zone, (them) => `remove ${them} at the primary`)
  }

  #takeStep(record: ResourceRecord, isSoa: boolean): void {
    const step = this.#steps.at(-1)
    const isKept = isSoa || this.#filter.keeps(record)
    if (isKept) this.#stepOctets += record.owner.length + record.rdata.length
    if (this.#seen > this.#filter.stepRecordsMax || this.#stepOctets > STEP_OCTETS_MAX) {
      throw new TransferFault('too many differences')
    }
    if (!isKept) return
    const octets = record.owner.length + record.rdata.length + STEP_RECORD_OCTETS
    this.#budget.add(this.#holding, octets + this.#messageOctets(record))
    this.#checkBudget()
    if (!isSoa) {
      if (this.#isAdding) step!.added.push(record)
      else step!.removed.push(record)
      return
    }
    const serial = soaSerial(record)
    if (step !== undefined && !this.#isAdding) {
      step.toSerial = serial
      this.#isAdding = true
      return
    }
    const reached = step?.toSerial ?? this.#question.serial
    if (serial !== reached) throw new TransferFault('the differences are not consecutive')
    this.#isAdding = false
    if (step !== undefined && serial === this.#serial) {
      const warnings = this.#warnings()
      this.#received = { kind: 'steps', steps: this.#steps, serial, soa: this.#soa!, warnings }
      return
    }
    this.#steps.push({ removed: [], added: [], fromSerial: serial, toSerial: serial })
  }

  /** Octets of the message that the record keeps in memory: long data is a view of it. 0 = an earlier record does. */
  #messageOctets({ rdata }: ResourceRecord): number {
    // Reading `buffer` of shorter arrays moves them out of the heap of V8.
    if (rdata.length <= HEAP_OCTETS_MAX || rdata.buffer === this.#message) return 0
    this.#message = rdata.buffer
    return rdata.buffer.byteLength - rdata.length
  }

  #checkRecord({ owner, type, rrclass, rdata }: ResourceRecord): void {
    const { zone } = this.#question
    if (rrclass !== RRClass.IN) throw new TransferFault('a record is not of class IN')
    const isMeta = type === 0 || (type >= 128 && type <= 255)
    if (isMeta) throw new TransferFault(`type ${printType(type)} is not allowed in a zone`)
    if (type !== RRType.SOA || !isSubdomain(owner, zone)) return
    if (owner.length !== zone.length) throw new TransferFault('a SOA is not at the apex')
    if (rdata.length < SOA_OCTETS_MIN) throw new TransferFault('a SOA is malformed')
  }

  #keep(records: ZoneRecords, record: ResourceRecord): void {
    const { owner, type, ttlSeconds, rdata } = record
    if (type !== RRType.SOA && !this.#filter.keeps(record)) return
    const { recordsMax, octetsMax } = this.#filter
    // The zone's SOA counts as one more.
    if (records.recordCount > recordsMax) {
      throw new TransferFault(`the zone has more than ${recordsMax} records`)
    }
    if (records.octetCount + owner.length + rdata.length > octetsMax) {
      throw new TransferFault(`the zone has more than ${octetsMax} octets`)
    }
    const scanned = this.#scanned
    scanned.owner.set(lowerName(owner))
    scanned.ownerOctets = owner.length
    scanned.type = type
    // RFC 2181 section 8.
    scanned.ttlSeconds = ttlSeconds > 0x7fff_ffff ? 0 : ttlSeconds
    scanned.rdata = rdata
    scanned.rdataOctets = rdata.length
    scanned.file = this.#question.origin
    scanned.line = this.#seen
    if (records.add(scanned)) {
      this.#budget.add(this.#holding, owner.length + rdata.length + RECORD_OCTETS)
      this.#checkBudget()
      return
    }
    const { crowded } = records
    throw new TransferFault(
      crowded
        ? `${printName(scanned.owner)} has more than ${OWNER_RECORDS_MAX} records`
        : 'the zone is larger than two gigabytes',
    )
  }
}

/** Returns the serial of a SOA record that was validated before. */
export function soaSerial({ rdata }: Pick<ResourceRecord, 'rdata'>): number {
  const view = new DataView(rdata.buffer, rdata.byteOffset, rdata.byteLength)
  return view.getUint32(rdata.length - 20)
}

/** The timers of a SOA, in seconds. */
export interface SoaTimers {
  readonly refreshSeconds: number
  readonly retrySeconds: number
  readonly expireSeconds: number
}

export function soaTimers(rdata: Uint8Array): SoaTimers {
  const view = new DataView(rdata.buffer, rdata.byteOffset, rdata.byteLength)
  return {
    refreshSeconds: view.getUint32(rdata.length - 16),
    retrySeconds: view.getUint32(rdata.length - 12),
    expireSeconds: view.getUint32(rdata.length - 8),
  }
}
