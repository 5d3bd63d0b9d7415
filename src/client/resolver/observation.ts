import { printRcode, Rcode, RRClass, RRType } from '../../dns/iana/index.ts'
import type { Message, ResourceRecord } from '../../dns/message/message.ts'
import { equalNames, lowerName, nameKey } from '../../dns/name/name.ts'
import { svcHints } from '../../dns/rdata/svc-hints.ts'
import { type AddressFamily, printAddress } from '../../dns/text/address.ts'

/** Longest TTL that counts, in seconds: a week, as in RFC 8767 section 4. */
export const TTL_SECONDS_MAX: number = 7 * 24 * 3600
/** Larger values count as 0 (RFC 2181 section 8). */
const TTL_WIRE_MAX = 2 ** 31 - 1
/** Of an address, by family. */
const OCTETS = { 1: 4, 2: 16 } as const

/** One address of an answer. */
interface AddressFact {
  readonly family: AddressFamily
  /** In canonical form. */
  readonly address: string
  readonly ttlSeconds: number
  /** Targets of the CNAME records between the name and the address, in their order, as in `name`. */
  readonly chain: readonly Uint8Array[]
}

/** What one query for the addresses of a name found. */
export type Observation = ObservedBase &
  (
    | { readonly kind: 'answer'; readonly facts: readonly AddressFact[] }
    /** The name has no addresses of this family. `chain`: as in AddressFact; missing = no CNAME. */
    | { readonly kind: 'nodata'; readonly chain?: readonly Uint8Array[] }
    | Failed
  )

interface Failed {
  readonly kind: 'failed'
  /** The rcode, such as `NXDOMAIN`, or why there was no reply. */
  readonly reason: string
  /** False: there was no reply. */
  readonly isReply: boolean
}

interface ObservedBase {
  /** Lower-case wire form. */
  readonly name: Uint8Array
  /** The family that was asked for: 1 = A, 2 = AAAA. */
  readonly family: AddressFamily
  /** Monotonic milliseconds. */
  readonly atMs: number
  /** '' = unknown. */
  readonly server: string
}

/**
 * Reads a reply. Accepts only addresses that its CNAME chain leads to from the name in the question,
 * whatever the order of the records; the other sections do not count. Returns undefined if the
 * question is not for addresses. IPv4-mapped IPv6 addresses become IPv4 addresses.
 */
export function observeReply(
  message: Pick<Message, 'question' | 'rcode' | 'answer'>,
  atMs: number,
  server: string,
): Observation | undefined {
  const { question, rcode, answer } = message
  const type = question?.type
  if (question === undefined || question.rrclass !== RRClass.IN) return undefined
  if (type !== RRType.A && type !== RRType.AAAA) return undefined
  const family: AddressFamily = type === RRType.A ? 1 : 2
  const base = { name: lowerName(question.name), family, atMs, server }
  const failed = (reason: string): Observation => ({
    ...base,
    kind: 'failed',
    reason,
    isReply: true,
  })
  if (rcode !== Rcode.NOERROR) return failed(printRcode(rcode))
  const chain = followChain(question.name, answer)
  if (chain === undefined) return failed('CNAME loop')
  const facts: AddressFact[] = []
  for (const { rdata, ttlSeconds } of recordsAt(chain.end, type, answer)) {
    if (rdata.length === OCTETS[family]) facts.push(factOf(rdata, ttlSeconds, chain))
  }
  if (facts.length > 0) return { ...base, kind: 'answer', facts }
  const { targets } = chain
  return { ...base, kind: 'nodata', ...(targets.length === 0 ? {} : { chain: targets }) }
}

/**
 * Reads a reply to a query for HTTPS or SVCB: the addresses in the hints of the records that its CNAME chain leads
 * to, as addresses of the name in the question. Returns an observation for each family that has some.
 */
export function observeHints(
  message: Pick<Message, 'question' | 'rcode' | 'answer'>,
  atMs: number,
  server: string,
): readonly Observation[] {
  const { question, rcode, answer } = message
  const type = question?.type
  if (question === undefined || question.rrclass !== RRClass.IN) return []
  if (type !== RRType.HTTPS && type !== RRType.SVCB) return []
  const chain = rcode === Rcode.NOERROR ? followChain(question.name, answer) : undefined
  if (chain === undefined) return []
  const hints = recordsAt(chain.end, type, answer).flatMap(({ rdata, ttlSeconds }) => {
    return svcHints(rdata).map((address) => ({ address, ttlSeconds }))
  })
  return ([1, 2] as const).flatMap((family): readonly Observation[] => {
    const base = { name: lowerName(question.name), family, atMs, server }
    const own = hints.filter(({ address }) => address.length === OCTETS[family])
    const facts = own.map(({ address, ttlSeconds }) => factOf(address, ttlSeconds, chain))
    return facts.length === 0 ? [] : [{ ...base, kind: 'answer', facts }]
  })
}

/**
 * Returns the same addresses as those of the name that the client's user wrote, if the question has a suffix of the
 * search path behind it; otherwise undefined. The first CNAME record shows it:
 *
 *     www.example.org.default.svc.cluster.local. CNAME www.example.org.
 *
 * `isSearched`: this record leads to another name of the search path, whatever it is.
 */
export function observeSearched(
  observed: Observation,
  isSearched: boolean,
): Observation | undefined {
  const name = observed.kind === 'answer' ? observed.facts[0]?.chain[0] : undefined
  if (name === undefined || name.length === 1) return undefined
  const isWritten = name.subarray(0, -1).every((octet, i) => octet === observed.name[i])
  return isWritten || isSearched ? { ...observed, name } : undefined
}

function recordsAt(
  owner: Uint8Array,
  type: number,
  answer: readonly ResourceRecord[],
): readonly ResourceRecord[] {
  return answer.filter((record) => {
    if (record.type !== type || record.rrclass !== RRClass.IN) return false
    return equalNames(record.owner, owner)
  })
}

/** The observation of a query that got no reply. */
export function observeSilence(
  asked: Pick<Observation, 'name' | 'family' | 'atMs' | 'server'>,
  reason: string,
): ObservedBase & Failed {
  return { ...asked, kind: 'failed', reason, isReply: false }
}

interface Chain {
  /** The name that the chain ends at. */
  readonly end: Uint8Array
  readonly targets: readonly Uint8Array[]
}

/** Returns undefined if the chain is a loop. */
function followChain(name: Uint8Array, answer: readonly ResourceRecord[]): Chain | undefined {
  const aliases = new Map<string, ResourceRecord>()
  for (const record of answer) {
    if (record.type !== RRType.CNAME || record.rrclass !== RRClass.IN) continue
    const owner = nameKey(record.owner)
    if (!aliases.has(owner)) aliases.set(owner, record)
  }
  const targets: Uint8Array[] = []
  let end = name
  for (;;) {
    const alias = aliases.get(nameKey(end))
    if (alias === undefined) return { end, targets }
    // Without a loop, each record is used once at most.
    if (targets.length === aliases.size) return undefined
    end = alias.rdata
    targets.push(lowerName(end))
  }
}

/** `octets`: an address. `wireSeconds`: the TTL of its record. */
function factOf(octets: Uint8Array, wireSeconds: number, { targets }: Chain): AddressFact {
  const isMapped = octets.length === OCTETS[2] && isMappedAddress(octets)
  const family: AddressFamily = octets.length === OCTETS[1] || isMapped ? 1 : 2
  return {
    family,
    address: printAddress(isMapped ? octets.subarray(12) : octets, family),
    ttlSeconds: ttlOf(wireSeconds),
    chain: targets,
  }
}

/** True for an address of ::ffff:0:0/96 (RFC 4291 section 2.5.5.2). */
function isMappedAddress(address: Uint8Array): boolean {
  for (let i = 0; i < 10; i++) if (address[i] !== 0) return false
  return address[10] === 0xff && address[11] === 0xff
}

function ttlOf(ttlSeconds: number): number {
  return ttlSeconds > TTL_WIRE_MAX ? 0 : Math.min(ttlSeconds, TTL_SECONDS_MAX)
}
