import type { InputError } from '../../base/errors.ts'
import { Opcode, printRcode, printType, RRClass, RRType } from '../../dns/iana/index.ts'
import { AnswerCursor } from '../../dns/message/answer-cursor.ts'
import { HeaderFlag } from '../../dns/message/header.ts'
import type { ResourceRecord } from '../../dns/message/message.ts'
import type { MessageHead } from '../../dns/message/parse-message.ts'
import { equalNames, printName } from '../../dns/name/name.ts'
import { isSerialAfter } from '../../dns/serial.ts'
import { OutsideNames } from '../../zone/zonefile/outside-names.ts'
import { endsWithZone } from '../../zone/zonefile/owner.ts'
import { type LoggedRecord, RecordLog } from '../../zone/zonefile/record-log.ts'
import { OWNER_RECORDS_MAX } from '../../zone/zonefile/records.ts'
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
      readonly records: RecordLog
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

/** Memory of a record of a whole zone beside its name and data, and of one of a difference: an object. */
const RECORD_OCTETS = 128
const STEP_RECORD_OCTETS = 400

/** Which records of a transfer are kept, in addition to its SOAs, and how many. */
export interface TransferFilter {
  readonly keeps: (record: Pick<ResourceRecord, 'owner' | 'type'>) => boolean
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
  /** The current record. */
  readonly #record = new AnswerCursor()
  #soa: ResourceRecord | undefined
  #serial = 0
  /** Records of names in the zone so far, including the first SOA. */
  #count = 0
  /** Records so far. */
  #seen = 0
  /** Octets of their names and data. */
  #octets = 0
  #whole: RecordLog | undefined
  readonly #steps: Step[] = []
  readonly #outside = new OutsideNames()
  #isAdding = false
  /** Octets of owners and data in the differences. */
  #stepOctets = 0
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
  take(octets: Uint8Array): Received | undefined {
    const record = this.#record
    const head = record.open(octets)
    if (head === undefined) throw malformed()
    this.#checkHead(head)
    while (record.next()) {
      this.#checkBudget()
      if (this.#received !== undefined) throw new TransferFault('records follow the last SOA')
      this.#take()
    }
    const rcode = record.end()
    if (rcode === -1) throw malformed()
    if (rcode !== 0) throw answered(rcode)
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
  }

  #isOld(): boolean {
    const { serial } = this.#question
    return serial !== undefined && !isSerialAfter(this.#serial, serial)
  }

  #checkHead({ id, flags, opcode, rcode, question, answers }: MessageHead): void {
    if (id !== this.#question.id) throw new TransferFault('the reply is for another question')
    if ((flags & HeaderFlag.QR) === 0 || opcode !== Opcode.QUERY) {
      throw new TransferFault('the message is not a reply')
    }
    if (rcode !== 0) throw answered(rcode)
    if ((flags & HeaderFlag.TC) !== 0) throw new TransferFault('a message is truncated')
    const isOurs = question === undefined || equalNames(question.name, this.#question.zone)
    if (!isOurs) throw new TransferFault('the reply is about another zone')
    if (answers === 0) throw new TransferFault('a message has no records')
  }

  #take(): void {
    const record = this.#record
    const { zone, origin } = this.#question
    const isOutside = !endsWithZone(record.owner, record.ownerOctets, zone)
    this.#checkRecord(isOutside)
    const isSoa = record.type === RRType.SOA
    this.#seen++
    this.#octets += record.ownerOctets + record.rdataOctets
    const { seenRecordsMax, seenOctetsMax } = this.#filter
    if (this.#seen > seenRecordsMax)
      throw new TransferFault(`the transfer has more than ${seenRecordsMax} records`)
    if (this.#octets > seenOctetsMax)
      throw new TransferFault(`the transfer has more than ${seenOctetsMax} octets`)
    if (this.#soa === undefined) {
      if (!isSoa || isOutside) throw new TransferFault('the first record is not the SOA')
      this.#soa = record.copy()
      this.#count = 1
      this.#serial = soaSerial(this.#soa)
      return
    }
    if (isOutside) {
      this.#outside.count(record.owner, origin, this.#seen)
      return
    }
    this.#count++
    if (this.#count === 2) this.#choose(isSoa)
    if (this.#whole === undefined) this.#takeStep(isSoa)
    else if (isSoa) this.#endWhole(this.#whole)
    else this.#keep(this.#whole)
  }

  /** Chooses between IXFR and AXFR by the second record. */
  #choose(isSoa: boolean): void {
    const { serial, zone, origin } = this.#question
    const isIxfr = isSoa && serial !== undefined && soaSerial(this.#record.copy()) === serial
    if (isIxfr && serial !== this.#serial) return
    this.#whole = new RecordLog(zone, origin)
    const { owner, type, ttlSeconds, rdata } = this.#soa!
    const sizes = { ownerOctets: owner.length, rdataOffset: 0, rdataOctets: rdata.length }
    this.#log(this.#whole, { owner: zone, type, ttlSeconds, rdata, ...sizes }, 1)
  }

  #endWhole(records: RecordLog): void {
    if (soaSerial(this.#record.copy()) !== this.#serial)
      throw new TransferFault('the transfer ends with another SOA')
    this.#received = { kind: 'whole', records, serial: this.#serial, warnings: this.#warnings() }
  }

  #warnings(): InputError[] {
    return this.#outside.warnings(this.#question.zone, (them) => `remove ${them} at the primary`)
  }

  #takeStep(isSoa: boolean): void {
    const { ownerOctets, rdataOctets } = this.#record
    const step = this.#steps.at(-1)
    const isKept = isSoa || this.#filter.keeps(this.#record)
    if (isKept) this.#stepOctets += ownerOctets + rdataOctets
    if (this.#seen > this.#filter.stepRecordsMax || this.#stepOctets > STEP_OCTETS_MAX) {
      throw new TransferFault('too many differences')
    }
    if (!isKept) return
    this.#budget.add(this.#holding, ownerOctets + rdataOctets + STEP_RECORD_OCTETS)
    this.#checkBudget()
    const record = this.#record.copy()
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

  #checkRecord(isOutside: boolean): void {
    const { ownerOctets, type, rrclass, rdataOctets } = this.#record
    if (rrclass !== RRClass.IN) throw new TransferFault('a record is not of class IN')
    const isMeta = type === 0 || (type >= 128 && type <= 255)
    if (isMeta) throw new TransferFault(`type ${printType(type)} is not allowed in a zone`)
    if (type !== RRType.SOA || isOutside) return
    const isAtApex = ownerOctets === this.#question.zone.length
    if (!isAtApex) throw new TransferFault('a SOA is not at the apex')
    if (rdataOctets < SOA_OCTETS_MIN) throw new TransferFault('a SOA is malformed')
  }

  #keep(records: RecordLog): void {
    const record = this.#record
    if (!this.#filter.keeps(record)) return
    const { recordsMax, octetsMax } = this.#filter
    // The zone's SOA counts as one more.
    if (records.recordCount > recordsMax) {
      throw new TransferFault(`the zone has more than ${recordsMax} records`)
    }
    if (records.octetCount + record.ownerOctets + record.rdataOctets > octetsMax) {
      throw new TransferFault(`the zone has more than ${octetsMax} octets`)
    }
    this.#log(records, record, this.#seen)
  }

  #log(records: RecordLog, record: LoggedRecord, line: number): void {
    records.add(record, line)
    if (records.runCount > OWNER_RECORDS_MAX) {
      const owner = printName(record.owner)
      throw new TransferFault(`${owner} has more than ${OWNER_RECORDS_MAX} records`)
    }
    this.#budget.add(this.#holding, record.ownerOctets + record.rdataOctets + RECORD_OCTETS)
    this.#checkBudget()
  }
}

function malformed(): TransferFault {
  return new TransferFault('a message is malformed')
}

function answered(rcode: number): TransferFault {
  return new TransferFault(`the primary answered ${printRcode(rcode)}`, rcode)
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
