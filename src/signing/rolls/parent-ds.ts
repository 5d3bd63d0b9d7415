import { type Answered, type Asked, ask, questionOf } from '../../client/ask.ts'
import { type HostPort, printHostPort } from '../../dns/host-port.ts'
import { printRcode, Rcode, RRType } from '../../dns/iana/index.ts'
import { HeaderFlag } from '../../dns/message/header.ts'
import type { Message } from '../../dns/message/message.ts'
import { equalNames, printName } from '../../dns/name/name.ts'

/** The DS RRset that all servers of the parent have. */
export interface ParentDs {
  readonly rdata: readonly Uint8Array[]
  readonly ttlSeconds: number
}

/** Sends a query. Never rejects. */
export type AskServer = (asked: Asked) => Promise<Answered>

const TIMEOUT_MS = 5000
/** Caches keep no record longer (RFC 8767 section 4), so a roll must not wait for years if the parent says so. */
const TTL_SECONDS_MAX = 604_800
/** DS records of a parent that are read: a reply of 64 KiB could have thousands. */
const DS_MAX = 64

/**
 * Asks all servers of the parent for the DS of a zone, over TCP, because a forged reply could end a wait too early.
 * Returns what they agree on, or why that is not known.
 */
export async function askParentDs(
  zone: Uint8Array,
  parents: readonly HostPort[],
  askServer: AskServer = ask,
): Promise<ParentDs | string> {
  const query = { ...questionOf(zone, RRType.DS), flags: HeaderFlag.RD }
  const replies = await Promise.all(
    parents.map(async (server) => {
      const answered = await askServer({ server, query, timeoutMs: TIMEOUT_MS, tries: 0 })
      const found = answered.kind === 'failed' ? answered.reason : readDs(zone, answered.message)
      return typeof found === 'string' ? `${printHostPort(server)}: ${found}` : found
    }),
  )
  const fault = replies.find((reply) => typeof reply === 'string')
  if (fault !== undefined) return fault
  const sets = replies.filter((reply) => typeof reply !== 'string')
  const texts = new Set(sets.map(({ rdata }) => printSet(rdata)))
  if (texts.size > 1) return 'the servers of the parent have different DS records'
  return { rdata: sets[0]!.rdata, ttlSeconds: Math.max(...sets.map((set) => set.ttlSeconds)) }
}

function printSet(rdata: readonly Uint8Array[]): string {
  return rdata
    .map((one) => Buffer.from(one).toString('hex'))
    .sort()
    .join()
}

function readDs(zone: Uint8Array, { rcode, answer, authority }: Message): ParentDs | string {
  const name = printName(zone)
  if (rcode === Rcode.NXDOMAIN) return `it does not know ${name}`
  if (rcode !== Rcode.NOERROR) return `its rcode is ${printRcode(rcode)}`
  const isOfZone = ({ owner }: { owner: Uint8Array }): boolean => equalNames(owner, zone)
  const records = answer.filter((record) => record.type === RRType.DS && isOfZone(record))
  // A server that has the zone but not its parent answers from the wrong side (RFC 4035 section 3.1.4.1).
  const isChild = authority.some((record) => record.type === RRType.SOA && isOfZone(record))
  if (records.length === 0 && isChild) return `it does not have the parent zone of ${name}`
  const isReferral = records.length === 0 && !authority.some(({ type }) => type === RRType.SOA)
  if (isReferral) return `it does not have the parent zone of ${name}`
  if (records.length > DS_MAX) return `it has more than ${DS_MAX} DS records of ${name}`
  const longest = Math.max(0, ...records.map(({ ttlSeconds }) => ttlSeconds))
  return {
    rdata: records.map(({ rdata }) => rdata),
    ttlSeconds: Math.min(longest, TTL_SECONDS_MAX),
  }
}
