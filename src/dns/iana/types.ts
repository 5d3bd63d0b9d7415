/** Resource record types (IANA "Resource Record (RR) TYPEs"), by mnemonic. */
export const RRType = {
  A: 1,
  NS: 2,
  MD: 3,
  MF: 4,
  CNAME: 5,
  SOA: 6,
  MB: 7,
  MG: 8,
  MR: 9,
  PTR: 12,
  HINFO: 13,
  MINFO: 14,
  MX: 15,
  TXT: 16,
  RP: 17,
  AFSDB: 18,
  RT: 21,
  SIG: 24,
  KEY: 25,
  PX: 26,
  AAAA: 28,
  LOC: 29,
  SRV: 33,
  NAPTR: 35,
  KX: 36,
  DNAME: 39,
  OPT: 41,
  DS: 43,
  SSHFP: 44,
  RRSIG: 46,
  NSEC: 47,
  DNSKEY: 48,
  NSEC3: 50,
  NSEC3PARAM: 51,
  TLSA: 52,
  SMIMEA: 53,
  CDS: 59,
  CDNSKEY: 60,
  OPENPGPKEY: 61,
  CSYNC: 62,
  ZONEMD: 63,
  SVCB: 64,
  HTTPS: 65,
  SPF: 99,
  TKEY: 249,
  TSIG: 250,
  IXFR: 251,
  AXFR: 252,
  ANY: 255,
  URI: 256,
  CAA: 257,
} as const

const nameOfType = new Map<number, string>(
  Object.entries(RRType).map(([name, type]) => [type, name]),
)
const typeOfName = new Map<string, number>(Object.entries(RRType))

/** The mnemonic of `type`, or `TYPEn` (RFC 3597 section 5). */
export function printType(type: number): string {
  return nameOfType.get(type) ?? `TYPE${type}`
}

/** The type of a mnemonic or `TYPEn`, in any case; undefined if it is neither. */
export function scanType(text: string): number | undefined {
  const upper = text.toUpperCase()
  const known = typeOfName.get(upper)
  if (known !== undefined) return known
  const unknown = /^TYPE(\d{1,5})$/.exec(upper)
  const value = Number(unknown?.[1] ?? Number.NaN)
  return value <= 65535 ? value : undefined
}
