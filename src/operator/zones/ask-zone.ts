import { type Answered, ask, questionOf } from '../../client/ask.ts'
import type { HostPort } from '../../dns/host-port.ts'
import { printRcode, Rcode, RRType } from '../../dns/iana/index.ts'
import { HeaderFlag } from '../../dns/message/header.ts'
import type { Message, ResourceRecord } from '../../dns/message/message.ts'
import { equalNames } from '../../dns/name/name.ts'
import type { TsigKey } from '../../dns/tsig/key.ts'
import { resolvePeer } from '../../peering/peer-address.ts'
import { KDRNT_ZONE } from '../../records/local-zone.ts'
import { scanHost } from '../../records/validate/names.ts'
import type { Nameserver } from '../provider/nameserver.ts'

const QUESTION_MS = 1000
const QUESTION_TRIES = 2

/**
 * What a nameserver says of a zone. `silent`: nothing is known, because it did not answer, or did not say whether it
 * serves kdrnt. `hasRecords`: it serves the zone kdrnt, as an exchange does, which serves no other zone.
 */
export type ZoneAnswer =
  | 'served'
  | 'silent'
  | { readonly refusal: string; readonly hasRecords?: boolean }

interface AskOptions {
  /** Signs the query for kdrnt. */
  readonly key: TsigKey | undefined
  readonly signal: AbortSignal
}

/**
 * Asks a nameserver for the SOA of a zone, as any client does: unsigned. If it does not serve the zone, asks whether it
 * serves kdrnt. A host name: the first of its addresses that answers counts. Never rejects.
 */
export async function askNameserver(
  nameserver: Nameserver,
  zone: string,
  options: AskOptions,
): Promise<ZoneAnswer> {
  for (const server of await resolvePeer(nameserver)) {
    const answer = await askAddress(server, scanHost(zone)!, options)
    if (answer !== 'silent' || options.signal.aborted) return answer
  }
  return 'silent'
}

async function askAddress(
  server: HostPort,
  zone: Uint8Array,
  { key, signal }: AskOptions,
): Promise<ZoneAnswer> {
  const answered = await askSoa(server, zone, { key: undefined, signal })
  if (answered.kind === 'failed') return 'silent'
  const { rcode, flags } = answered.message
  if (rcode === Rcode.SERVFAIL) return 'silent'
  const isServed = hasSoa(answered.message, zone)
  if (isServed && (flags & HeaderFlag.AA) !== 0) return 'served'
  const fault = isServed ? 'not authoritative' : 'no SOA'
  const refusal = rcode === Rcode.NOERROR ? fault : printRcode(rcode)
  const hasRecords = await servesKdrnt(server, { key, signal })
  return hasRecords === undefined ? 'silent' : { refusal, hasRecords }
}

/** Returns undefined if the server does not say whether it serves kdrnt. */
async function servesKdrnt(server: HostPort, options: AskOptions): Promise<boolean | undefined> {
  const answered = await askSoa(server, KDRNT_ZONE, options)
  const isVerified = answered.kind === 'reply'
  if (isVerified && hasSoa(answered.message, KDRNT_ZONE)) return true
  // A server without TSIG refuses without a signature.
  const message = isVerified ? answered.message : answered.unverified
  if (message === undefined || hasSoa(message, KDRNT_ZONE)) return undefined
  return message.rcode === Rcode.REFUSED || message.rcode === Rcode.NOERROR ? false : undefined
}

function askSoa(server: HostPort, zone: Uint8Array, options: AskOptions): Promise<Answered> {
  const query = questionOf(zone, RRType.SOA)
  return ask({ server, query, timeoutMs: QUESTION_MS, tries: QUESTION_TRIES, ...options })
}

function hasSoa({ rcode, answer }: Message, zone: Uint8Array): boolean {
  const isSoa = ({ owner, type }: ResourceRecord): boolean =>
    type === RRType.SOA && equalNames(owner, zone)
  return rcode === Rcode.NOERROR && answer.some(isSoa)
}
