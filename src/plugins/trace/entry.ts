import { copyOctets } from '../../base/octets.ts'
import type { OctetChannel } from '../../base/telemetry/octet-channel.ts'
import type { Span } from '../../base/telemetry/spans/span.ts'
import { printRcode, printType } from '../../dns/iana/index.ts'
import { PROTOCOL_NAMES } from '../../dns/message/query.ts'
import { printName } from '../../dns/name/name.ts'
import { type AddressFamily, printAddress } from '../../dns/text/address.ts'
import type { SlotLabels } from '../../plugin/counter-slots.ts'
import type { Transaction } from '../../plugin/transaction.ts'

/*
 * A sampled query on its way to the thread that exports spans:
 *
 *     OCTETS   of the entry, a multiple of 8 (32)
 *     ID       of the trace (128) and of the span (64)
 *     START    milliseconds since the Unix epoch (64-bit floating point)
 *     DURATION milliseconds (64-bit floating point)
 *     QTYPE, RCODE (16 each); NO_REPLY in place of an rcode
 *     PROTOCOL, PEER_FAMILY, LOCAL_FAMILY, NAME_OCTETS (8 each)
 *     PEER_PORT, LOCAL_PORT (16 each)
 *     PEER, LOCAL  addresses (128 each)
 *     TEXTS    the name, then the server, zone, view, plugin and error: octets with their number (16) in front
 */
const OCTETS = 0
const ID = 4
const START = 28
const DURATION = 36
const QTYPE = 44
const RCODE = 46
const PROTOCOL = 48
const PEER_FAMILY = 49
const LOCAL_FAMILY = 50
const NAME_OCTETS = 51
const PEER_PORT = 52
const LOCAL_PORT = 54
const PEER = 56
const LOCAL = 72
const TEXTS = 88

const NO_REPLY = 0xffff
const TRACE_OCTETS = 16
const ID_OCTETS = 24
/** Names are shorter, also in presentation form. A longer error is cut. */
const TEXT_OCTETS_MAX = 1024
const TEXT_COUNT = 5
export const ENTRY_OCTETS_MAX: number = TEXTS + 256 + TEXT_COUNT * (2 + TEXT_OCTETS_MAX) + 8

/** `ID_OCTETS` octets: those of a trace and its first span. */
export type TraceId = Buffer

/** Returns a random identifier, in `id` if it is given. `random`: as Math.random. @hot */
export function createId(random: () => number, id: TraceId = Buffer.alloc(ID_OCTETS)): TraceId {
  for (let at = 0; at < ID_OCTETS; at += 4) id.writeUInt32LE(Math.floor(random() * 2 ** 32), at)
  return id
}

/** Returns the identifier of the trace, in hexadecimal digits. */
export function printTraceId(id: TraceId): string {
  return id.toString('hex', 0, TRACE_OCTETS)
}

/** What a transaction does not have. */
export interface Sample {
  id: TraceId
  isReplied: boolean
  /** Since the Unix epoch. */
  startMs: number
  durationMs: number
}

/** Writes an entry of a query. Returns false if there is no room. @hot */
export function sendEntry(out: OctetChannel, tx: Transaction, sample: Readonly<Sample>): boolean {
  const { query, response } = tx
  const { id, isReplied, startMs, durationMs } = sample
  const { octets } = out
  const at = out.begin(ENTRY_OCTETS_MAX)
  if (at === -1) return false
  copyOctets(id, 0, octets, at + ID, ID_OCTETS)
  octets.writeDoubleLE(startMs, at + START)
  octets.writeDoubleLE(durationMs, at + DURATION)
  octets.writeUInt16LE(query.qtype, at + QTYPE)
  octets.writeUInt16LE(isReplied ? response.rcode : NO_REPLY, at + RCODE)
  octets[at + PROTOCOL] = query.protocol
  octets[at + PEER_FAMILY] = query.peerFamily
  octets[at + LOCAL_FAMILY] = query.localFamily
  octets[at + NAME_OCTETS] = query.qnameOctets
  octets.writeUInt16LE(query.peerPort, at + PEER_PORT)
  octets.writeUInt16LE(query.localPort, at + LOCAL_PORT)
  copyOctets(query.peerAddress, 0, octets, at + PEER, 16)
  copyOctets(query.localAddress, 0, octets, at + LOCAL, 16)
  copyOctets(query.qname, 0, octets, at + TEXTS, query.qnameOctets)
  let end = at + TEXTS + query.qnameOctets
  end = putText(octets, end, tx.server.address)
  end = putText(octets, end, tx.zone)
  end = putText(octets, end, tx.view)
  end = putText(octets, end, response.answeredBy)
  end = putText(octets, end, response.error)
  end = (end + 7) & ~7
  octets.writeUInt32LE(end - at, at + OCTETS)
  out.end(end)
  return true
}

function putText(octets: Buffer, at: number, text: string): number {
  const count = text === '' ? 0 : octets.write(text, at + 2, TEXT_OCTETS_MAX)
  octets.writeUInt16LE(count, at)
  return at + 2 + count
}

/** A sampled query. */
export interface TracedQuery {
  readonly span: Span
  readonly labels: SlotLabels
}

/** Octets of the entry at `at`. */
export function octetsOf(entries: Buffer, at: number): number {
  return entries.readUInt32LE(at + OCTETS)
}

/** Reads the entry at `at`. */
export function readEntry(entries: Buffer, at: number): TracedQuery {
  const nameEnd = at + TEXTS + entries[at + NAME_OCTETS]!
  const [server = '', zone = '', view = '', plugin = '', error = ''] = readTexts(entries, nameEnd)
  const rcode = entries.readUInt16LE(at + RCODE)
  const remote = readEndpoint(entries, at + PEER, at + PEER_PORT, entries[at + PEER_FAMILY]!)
  const span: Span = {
    traceId: entries.toString('hex', at + ID, at + ID + TRACE_OCTETS),
    spanId: entries.toString('hex', at + ID + TRACE_OCTETS, at + ID + ID_OCTETS),
    name: 'servedns',
    kind: 'server',
    startMs: entries.readDoubleLE(at + START),
    durationMs: entries.readDoubleLE(at + DURATION),
    attributes: {
      'coredns.io/name': printName(entries.subarray(at + TEXTS, nameEnd)),
      'coredns.io/type': printType(entries.readUInt16LE(at + QTYPE)),
      ...(rcode === NO_REPLY ? {} : { 'coredns.io/rcode': printRcode(rcode) }),
      'coredns.io/proto': PROTOCOL_NAMES[entries[at + PROTOCOL]!] ?? '',
      'coredns.io/remote': remote.address,
      'sextant/server': server,
      'sextant/zone': zone,
      ...(view === '' ? {} : { 'sextant/view': view }),
      ...(plugin === '' ? {} : { 'sextant/plugin': plugin }),
    },
    error,
    local: readEndpoint(entries, at + LOCAL, at + LOCAL_PORT, entries[at + LOCAL_FAMILY]!),
    remote,
  }
  return { span, labels: { server, zone, view } }
}

function readTexts(entries: Buffer, start: number): string[] {
  const texts: string[] = []
  let at = start
  for (let i = 0; i < TEXT_COUNT; i++) {
    const end = at + 2 + entries.readUInt16LE(at)
    texts.push(entries.toString('utf8', at + 2, end))
    at = end
  }
  return texts
}

function readEndpoint(entries: Buffer, at: number, portAt: number, family: number) {
  // 1 = IPv4, 2 = IPv6.
  const kind: AddressFamily = family === 1 ? 1 : 2
  const octets = entries.subarray(at, at + (kind === 1 ? 4 : 16))
  return { address: printAddress(octets, kind), port: entries.readUInt16LE(portAt) }
}
