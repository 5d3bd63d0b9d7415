import { Random } from '../../src/base/random.ts'
import { printClass, printRcode, printType, RRClass, RRType } from '../../src/dns/iana/index.ts'
import { Protocol, type Query } from '../../src/dns/message/query.ts'
import { Section } from '../../src/dns/message/section.ts'
import { hashLabel, NAME_HASH_SEED } from '../../src/dns/name/hash.ts'
import { labelOffsets, lowerName, printName, scanName } from '../../src/dns/name/name.ts'
import { scanAddress } from '../../src/dns/text/address.ts'
import { DROP, type Handler } from '../../src/plugin/handler.ts'
import { type ServerView, Transaction } from '../../src/plugin/transaction.ts'

/** A question as a test writes it down; everything but the name has a default. */
export interface Question {
  readonly name: string
  readonly type?: number
  readonly class?: number
  /** Source address; default `127.0.0.1`. */
  readonly from?: string
  readonly port?: number
  /** Destination address; default `127.0.0.53`. */
  readonly to?: string
  readonly tcp?: boolean
  readonly recursionDesired?: boolean
  /** The bit AD. */
  readonly authenticData?: boolean
  readonly dnssecOk?: boolean
  /** EDNS payload size; absent = no EDNS. */
  readonly payloadOctets?: number
  readonly zone?: string
  readonly view?: string
  readonly startedMs?: number
  readonly seed?: number
}

/** A server that serves no internal lookup. */
export const lonelyServer: ServerView = {
  address: 'dns://:53',
  zones: { deepest: 0, apexOctets: () => 0 },
  lookupInternally: () => undefined,
  release: () => undefined,
  isHandingOver: false,
  handOver: () => DROP,
  canHandOver: true,
  repeat: () => {
    throw new Error('not used')
  },
}

/** A transaction as the server hands it to a chain: the query parsed, the response reset. */
export function transaction(question: Question, server: ServerView = lonelyServer): Transaction {
  return refill(new Transaction(new Random(question.seed ?? 1), server), question)
}

/** Hands a transaction to a chain once more. For many queries: to make one takes a millisecond, because it has all buffers. */
export function refill(tx: Transaction, question: Question): Transaction {
  fillQuery(tx.query, question)
  tx.response.reset(tx.query)
  tx.zone = question.zone ?? '.'
  tx.view = question.view ?? ''
  tx.startedMs = question.startedMs ?? 0
  return tx
}

function fillQuery(query: Query, question: Question): void {
  const written = scanName(question.name)
  if (written === undefined) throw new Error(`no name: ${question.name}`)
  const name = lowerName(written)
  query.id = 4660
  query.flags = question.recursionDesired === true ? 0x0100 : 0
  if (question.authenticData === true) query.flags |= 0x0020
  query.qtype = question.type ?? RRType.A
  query.qclass = question.class ?? RRClass.IN
  query.qname.set(name)
  query.qnameOctets = name.length
  fillLabels(query, name)
  query.questionOctets = name.length + 4
  query.packetOctets = 12 + query.questionOctets + (question.payloadOctets === undefined ? 0 : 11)
  query.packet = composeQuestion(query, written)
  query.hasEdns = question.payloadOctets !== undefined
  query.payloadOctets = question.payloadOctets ?? 0
  query.dnssecOk = question.dnssecOk === true
  query.protocol = question.tcp === true ? Protocol.Tcp : Protocol.Udp
  const peer = address(question.from ?? '127.0.0.1')
  query.peerAddress.set(peer.bytes)
  query.peerFamily = peer.family
  query.peerPort = question.port ?? 40000
  query.clientAddress.set(peer.bytes)
  query.clientFamily = peer.family
  query.clientBits = peer.bytes.length * 8
  const local = address(question.to ?? '127.0.0.53')
  query.localAddress.set(local.bytes)
  query.localFamily = local.family
  query.localPort = 53
}

function fillLabels(query: Query, name: Uint8Array): void {
  const offsets = labelOffsets(name)
  query.labelCount = offsets.length
  query.labelOffset.set([...offsets, name.length - 1])
  query.suffixHash[offsets.length] = NAME_HASH_SEED
  for (let i = offsets.length - 1; i >= 0; i--) {
    query.suffixHash[i] = hashLabel(query.suffixHash[i + 1]!, name, offsets[i]!)
  }
}

function composeQuestion(query: Query, name: Uint8Array): Uint8Array {
  const packet = new Uint8Array(query.packetOctets)
  const view = new DataView(packet.buffer)
  view.setUint16(0, query.id)
  view.setUint16(2, query.flags)
  view.setUint16(4, 1)
  packet.set(name, 12)
  view.setUint16(12 + name.length, query.qtype)
  view.setUint16(14 + name.length, query.qclass)
  return packet
}

function address(text: string) {
  const found = scanAddress(text)
  if (found === undefined) throw new Error(`no address: ${text}`)
  return found
}

/** What a handler made of a query, for comparing. */
export interface Shown {
  /** `NOERROR`, …, or `DROP`; with `(sent: RCODE)` where the response says otherwise. */
  readonly status: string
  /** `aa`, `ad`, `tc`, `rd`, `ra`, as set. */
  readonly flags: string
  /** `owner ttl class type hex-rdata` per record. */
  readonly answer: readonly string[]
  readonly authority: readonly string[]
  readonly additional: readonly string[]
}

/** Runs `handler` and shows the response. */
export async function show(handler: Handler, tx: Transaction): Promise<Shown> {
  const status = await handler.serve(tx)
  const response = tx.response
  const flags = [
    response.authoritative ? 'aa' : '',
    response.authenticData ? 'ad' : '',
    response.truncated ? 'tc' : '',
    response.recursionDesired ? 'rd' : '',
    response.recursionAvailable ? 'ra' : '',
  ]
  const sent = status === response.rcode ? '' : ` (sent: ${printRcode(response.rcode)})`
  return {
    status: (status === -1 ? 'DROP' : printRcode(status)) + (status === -1 ? '' : sent),
    flags: flags.filter((flag) => flag !== '').join(' '),
    answer: records(tx, Section.Answer),
    authority: records(tx, Section.Authority),
    additional: records(tx, Section.Additional),
  }
}

function records(tx: Transaction, section: Section): string[] {
  const { response } = tx
  const shown: string[] = []
  for (let i = 0; i < response.count; i++) {
    if (response.section[i] !== section) continue
    const at = response.rdataOffset[i]!
    const rdata = response.rdataBytes[i]!.subarray(at, at + response.rdataOctets[i]!)
    const owner = printName(response.ownerBytes[i]!, response.ownerOffset[i]!)
    const kind = `${printClass(response.rrclass[i]!)} ${printType(response.type[i]!)}`
    const hex = Buffer.from(rdata).toString('hex')
    shown.push(`${owner} ${response.ttlSeconds[i]} ${kind} ${hex}`)
  }
  return shown
}

/** A last link that runs `fill` and returns its status, at once or, with `late`, by a promise. */
export function answering(fill: (tx: Transaction) => number, late = false): Handler {
  return {
    name: 'answering',
    serve: (tx) => (late ? Promise.resolve().then(() => fill(tx)) : fill(tx)),
  }
}
