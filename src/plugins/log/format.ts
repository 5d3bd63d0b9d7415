import type { Clock } from '../../base/clock.ts'
import { trimFraction } from '../../base/duration.ts'
import { printClass, printRcode, printType } from '../../dns/iana/index.ts'
import { Protocol, type Query } from '../../dns/message/query.ts'
import { printName } from '../../dns/name/name.ts'
import { type AddressFamily, printAddress } from '../../dns/text/address.ts'
import { DROP } from '../../plugin/handler.ts'
import type { MetadataProvider } from '../../plugin/metadata.ts'
import { isUnwritten, sentOctets, sentRcode } from '../../plugin/status.ts'
import type { Transaction } from '../../plugin/transaction.ts'
import { escapeControls } from '../../telemetry/log.ts'

export const COMMON_FORMAT =
  '{remote}:{port} - {>id} "{type} {class} {name} {proto} {size} {>do} {>bufsize}" {rcode} {>rflags} {rsize} {duration}'
export const COMBINED_FORMAT = `${COMMON_FORMAT} "{>opcode}"`

/** Stands for what is not known. */
const EMPTY = '-'
/** Least size that a client takes (RFC 1035 section 4.2.1), and what a TCP message holds. */
const UDP_OCTETS_MIN = 512
const TCP_OCTETS_MAX = 65_535

/** Prints one part of a line, after the chain returned `status`. */
export type Part = (tx: Transaction, status: number) => string

export interface FormatParts {
  readonly clock: Clock
  /** Finds the provider of a metadata label; asked per line, since providers come after formats. */
  readonly findMetadata: (label: string) => MetadataProvider | undefined
}

/**
 * Compiles a format: text with fields in braces. A brace pair that names no field is text. Every part
 * prints printable characters only, whatever the query holds.
 */
export function compileFormat(format: string, parts: FormatParts): readonly Part[] {
  const compiled: Part[] = []
  let literal = ''
  let rest = format
  for (;;) {
    const close = rest.indexOf('}')
    if (close < 0) break
    const open = rest.lastIndexOf('{', close)
    const part = open < 0 ? undefined : fieldPart(rest.slice(open + 1, close), parts)
    if (part === undefined) {
      literal += rest.slice(0, close + 1)
    } else {
      compiled.push(textPart(literal + rest.slice(0, open)), part)
      literal = ''
    }
    rest = rest.slice(close + 1)
  }
  compiled.push(textPart(literal + rest))
  return compiled
}

/** The line of a query. */
export function printLine(format: readonly Part[], tx: Transaction, status: number): string {
  let line = ''
  for (const part of format) line += part(tx, status)
  return line
}

function textPart(text: string): Part {
  const escaped = escapeControls(text)
  return () => escaped
}

function fieldPart(field: string, parts: FormatParts): Part | undefined {
  if (field.startsWith('/')) return metadataPart(field.slice(1), parts)
  if (field === 'duration') return durationPart(parts.clock)
  return FIELDS.get(field)
}

function metadataPart(label: string, parts: FormatParts): Part {
  return (tx) => {
    const provider = parts.findMetadata(label)
    return provider === undefined ? EMPTY : escapeControls(provider(tx))
  }
}

function durationPart(clock: Clock): Part {
  return (tx) => `${trimFraction(Math.max(0, clock.monotonic() - tx.startedMs) / 1000, 9)}s`
}

/** Fields by name, without their braces. `>` marks what is in the header or its extension. */
const FIELDS: ReadonlyMap<string, Part> = new Map<string, Part>([
  ['type', (tx) => printType(tx.query.qtype)],
  ['class', (tx) => printClass(tx.query.qclass)],
  ['name', (tx) => printName(tx.query.qname)],
  ['proto', (tx) => (tx.query.protocol === Protocol.Udp ? 'udp' : 'tcp')],
  ['size', (tx) => String(tx.query.packetOctets)],
  ['remote', (tx) => printHost(tx.query.peerAddress, tx.query.peerFamily)],
  ['port', (tx) => String(tx.query.peerPort)],
  ['local', (tx) => printHost(tx.query.localAddress, tx.query.localFamily)],
  ['>id', (tx) => String(tx.query.id)],
  ['>opcode', (tx) => String(tx.query.opcode)],
  ['>do', (tx) => String(tx.query.dnssecOk)],
  ['>bufsize', (tx) => String(takenOctets(tx.query))],
  ['rcode', (tx, status) => (status === DROP ? EMPTY : printRcode(sentRcode(tx, status)))],
  ['rsize', (tx, status) => String(sentOctets(tx, status))],
  ['>rflags', (tx, status) => (status === DROP ? EMPTY : printFlags(tx, status))],
])

function printHost(bytes: Uint8Array, family: number): string {
  const text = printAddress(bytes, family as AddressFamily)
  return family === 1 ? text : `[${text}]`
}

/** How large a reply the client takes. */
function takenOctets(query: Query): number {
  if (query.protocol === Protocol.Tcp) return TCP_OCTETS_MAX
  return query.hasEdns ? Math.max(UDP_OCTETS_MIN, query.payloadOctets) : UDP_OCTETS_MIN
}

function printFlags(tx: Transaction, status: number): string {
  const { response } = tx
  const written = !isUnwritten(status)
  let flags = 'qr'
  if (written && response.authoritative) flags += ',aa'
  if (written && response.truncated) flags += ',tc'
  if (response.recursionDesired) flags += ',rd'
  if (response.recursionAvailable) flags += ',ra'
  if (written && response.authenticData) flags += ',ad'
  if (response.checkingDisabled) flags += ',cd'
  return flags
}
