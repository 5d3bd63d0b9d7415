import { ask, questionOf } from '../../client/ask.ts'
import { type HostPort, printHostPort } from '../../dns/host-port.ts'
import { printRcode, Rcode, RRType } from '../../dns/iana/index.ts'
import { ALIASES_MAX } from '../../dns/message/direct-answer.ts'
import { HeaderFlag } from '../../dns/message/header.ts'
import type { ResourceRecord } from '../../dns/message/message.ts'
import { lowerName, nameKey } from '../../dns/name/name.ts'
import type { TsigKey } from '../../dns/tsig/key.ts'
import { scanActiveGroups } from './active-groups.ts'

/** Of one server: attempts over UDP, the wait for each reply, and for the exchange over TCP. */
const TRIES = 2
const TIMEOUT_MS = 1500

/** A server that may know the TXT record. */
export interface GroupServer extends HostPort {
  /** Signs the query; undefined = it is unsigned. */
  readonly key?: TsigKey | undefined
}

/** The active groups of a zone, or the reason why the lookup failed. */
export type FoundGroups =
  | { readonly groups: readonly string[]; readonly ttlSeconds: number }
  | { readonly fault: string }

/** Asks the servers one after the other until one has a valid TXT record. Never rejects. */
export async function askGroups(
  name: Uint8Array,
  servers: readonly GroupServer[],
  signal: AbortSignal,
): Promise<FoundGroups> {
  const query = { ...questionOf(name, RRType.TXT), flags: HeaderFlag.RD }
  let fault = 'no server to query'
  for (const server of servers) {
    const { key } = server
    const how = { timeoutMs: TIMEOUT_MS, tries: TRIES, key, signal }
    const answered = await ask({ server, query, ...how })
    if (signal.aborted) return { fault: 'closed' }
    const at = printHostPort(server)
    if (answered.kind === 'failed') {
      fault = `${at}: ${answered.reason}`
      continue
    }
    const { rcode, answer } = answered.message
    const texts = rcode === Rcode.NOERROR ? textsOf(name, answer) : []
    if (texts.length === 0) {
      fault = `${at} answered ${rcode === Rcode.NOERROR ? 'no TXT record' : printRcode(rcode)}`
      continue
    }
    const ttlSeconds = Math.min(...answer.map((record) => record.ttlSeconds))
    const found = readGroups(texts, ttlSeconds, at)
    if (!('fault' in found)) return found
    fault = found.fault
  }
  return { fault }
}

/** Reads the first valid TXT record. `place`: where it comes from. */
export function readGroups(
  rdata: readonly Uint8Array[],
  ttlSeconds: number,
  place: string,
): FoundGroups {
  for (const one of rdata) {
    const groups = scanActiveGroups(joinStrings(one))
    if (groups !== undefined) return { groups, ttlSeconds }
  }
  return { fault: `${place} has no text of the form version=1;groups=g1&&g2` }
}

/** Returns the TXT records of the name, also behind aliases. Those of other names do not count. */
function textsOf(name: Uint8Array, answer: readonly ResourceRecord[]): readonly Uint8Array[] {
  let key = keyOf(name)
  for (let step = 0; step <= ALIASES_MAX; step++) {
    const own = answer.filter(({ owner }) => keyOf(owner) === key)
    const texts = own.filter(({ type }) => type === RRType.TXT)
    const alias = own.find(({ type }) => type === RRType.CNAME)
    if (texts.length > 0 || alias === undefined) return texts.map(({ rdata }) => rdata)
    key = keyOf(alias.rdata)
  }
  return []
}

function keyOf(name: Uint8Array): string {
  return nameKey(lowerName(name))
}

/** Returns the strings of a TXT record as one text (RFC 1035 section 3.3.14). */
function joinStrings(rdata: Uint8Array): string {
  let text = ''
  for (let at = 0; at < rdata.length; at += rdata[at]! + 1) {
    text += Buffer.from(rdata.subarray(at + 1, at + 1 + rdata[at]!)).toString('latin1')
  }
  return text
}
