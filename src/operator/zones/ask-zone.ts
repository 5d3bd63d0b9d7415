import { ask, questionOf } from '../../client/ask.ts'
import type { HostPort } from '../../dns/host-port.ts'
import { printRcode, Rcode, RRType } from '../../dns/iana/index.ts'
import { HeaderFlag } from '../../dns/message/message.ts'
import { equalNames } from '../../dns/name/name.ts'
import type { TsigKey } from '../../dns/tsig/key.ts'
import { scanHost } from '../../dnsrecord/validate/names.ts'
import { askSerial } from '../../peering/ask-serial.ts'
import { resolvePeer } from '../../peering/peer-address.ts'
import type { Nameserver } from '../provider/nameserver.ts'

const QUESTION_MS = 1000
const QUESTION_TRIES = 2

/**
 * What a nameserver says of a zone. `silent`: it did not answer, so nothing is known. `hasRecords`: it serves the zone
 * kdrnt, as an exchange does, which serves no other zone.
 */
export type ZoneAnswer =
  | 'served'
  | 'silent'
  | { readonly refusal: string; readonly hasRecords?: boolean }

/**
 * Asks a nameserver for the SOA of a zone, as any client does: unsigned. Never rejects.
 */
async function askZone(
  server: HostPort,
  zone: Uint8Array,
  signal: AbortSignal,
): Promise<ZoneAnswer> {
  const answered = await ask({
    server,
    query: questionOf(zone, RRType.SOA),
    timeoutMs: QUESTION_MS,
    tries: QUESTION_TRIES,
    signal,
  })
  if (answered.kind === 'failed') return 'silent'
  const { rcode, answer, flags } = answered.message
  if (rcode === Rcode.SERVFAIL) return 'silent'
  if (rcode !== Rcode.NOERROR) return { refusal: printRcode(rcode) }
  const hasSoa = answer.some(({ owner, type }) => type === RRType.SOA && equalNames(owner, zone))
  if (!hasSoa) return { refusal: 'no SOA' }
  return (flags & HeaderFlag.AA) === 0 ? { refusal: 'not authoritative' } : 'served'
}

/**
 * As `askZone`, for a nameserver that may be a host name: the first of its addresses that answers counts. `key`: signs
 * the query for kdrnt.
 */
export async function askNameserver(
  nameserver: Nameserver,
  zone: string,
  { key, signal }: { readonly key: TsigKey | undefined; readonly signal: AbortSignal },
): Promise<ZoneAnswer> {
  for (const server of await resolvePeer(nameserver)) {
    const answer = await askZone(server, scanHost(zone)!, signal)
    if (answer === 'silent' && !signal.aborted) continue
    if (typeof answer === 'string') return answer
    const serial = await askSerial(server, { key, source: '', signal })
    return { ...answer, hasRecords: typeof serial === 'number' }
  }
  return 'silent'
}
