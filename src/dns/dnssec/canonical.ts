import { RRType } from '../iana/types.ts'
import { LOWER } from '../name/lower.ts'

/** Where the names in the rdata of a type are that signatures cover in lower case. */
interface NamesAt {
  /** Octets before the first name. */
  readonly skip: number
  /** Character strings after them. */
  readonly strings?: number
  readonly names: number
}

/** The types of RFC 4034 section 6.2 that are still used, corrected by RFC 6840 section 5.1. */
const NAMES = new Map<number, NamesAt>([
  ...[
    RRType.NS,
    RRType.MD,
    RRType.MF,
    RRType.CNAME,
    RRType.MB,
    RRType.MG,
    RRType.MR,
    RRType.PTR,
    RRType.DNAME,
    RRType.NXT,
  ].map((type): [number, NamesAt] => [type, { skip: 0, names: 1 }]),
  ...[RRType.SOA, RRType.MINFO, RRType.RP].map((type): [number, NamesAt] => {
    return [type, { skip: 0, names: 2 }]
  }),
  ...[RRType.MX, RRType.AFSDB, RRType.RT, RRType.KX].map((type): [number, NamesAt] => {
    return [type, { skip: 2, names: 1 }]
  }),
  [RRType.PX, { skip: 2, names: 2 }],
  [RRType.SRV, { skip: 6, names: 1 }],
  [RRType.NAPTR, { skip: 4, strings: 3, names: 1 }],
  [RRType.SIG, { skip: 18, names: 1 }],
  [RRType.RRSIG, { skip: 18, names: 1 }],
])

/** Returns uncompressed rdata in canonical form (RFC 4034 section 6.2); `rdata` itself if it is so already. */
function canonicalRdata(type: number, rdata: Uint8Array): Uint8Array {
  const names = NAMES.get(type)
  if (names === undefined) return rdata
  let at = names.skip
  for (let i = 0; i < (names.strings ?? 0); i++) at += 1 + (rdata[at] ?? 0)
  const start = at
  for (let i = 0; i < names.names; i++) {
    while ((rdata[at] ?? 0) > 0) at += 1 + rdata[at]!
    at++
  }
  const end = Math.min(at, rdata.length)
  let canonical = rdata
  for (let i = start; i < end; i++) {
    const lower = LOWER[rdata[i]!]!
    if (lower === rdata[i]) continue
    if (canonical === rdata) canonical = rdata.slice()
    canonical[i] = lower
  }
  return canonical
}

/** Returns the rdata of an RRset in canonical form and order, each once (RFC 4034 section 6.3). */
export function canonicalSet(type: number, rdata: readonly Uint8Array[]): Uint8Array[] {
  if (rdata.length === 1) return [canonicalRdata(type, rdata[0]!)]
  const sorted = rdata.map((one) => canonicalRdata(type, one)).sort(Buffer.compare)
  return sorted.filter((one, i) => i === 0 || Buffer.compare(one, sorted[i - 1]!) !== 0)
}
