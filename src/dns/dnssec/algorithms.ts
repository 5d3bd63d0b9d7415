/** Numbers of DNSSEC algorithms that signatures are made or checked with (RFC 8624, RFC 9904). */
export const Algorithm = {
  RsaSha1: 5,
  RsaSha1Nsec3: 7,
  RsaSha256: 8,
  RsaSha512: 10,
  EcdsaP256: 13,
  EcdsaP384: 14,
  Ed25519: 15,
  Ed448: 16,
} as const

/** Numbers by mnemonic, as zone files and BIND's key files write them (RFC 4034 section 2.2). */
export const algorithmOfName: ReadonlyMap<string, number> = new Map([
  ['RSAMD5', 1],
  ['DH', 2],
  ['DSA', 3],
  ['RSASHA1', 5],
  ['DSA-NSEC3-SHA1', 6],
  ['RSASHA1-NSEC3-SHA1', 7],
  ['RSASHA256', 8],
  ['RSASHA512', 10],
  ['ECC-GOST', 12],
  ['ECDSAP256SHA256', 13],
  ['ECDSAP384SHA384', 14],
  ['ED25519', 15],
  ['ED448', 16],
  ['INDIRECT', 252],
  ['PRIVATEDNS', 253],
  ['PRIVATEOID', 254],
])

/** Those that new signatures may have. */
const SIGNING: readonly number[] = [
  Algorithm.RsaSha256,
  Algorithm.RsaSha512,
  Algorithm.EcdsaP256,
  Algorithm.EcdsaP384,
  Algorithm.Ed25519,
]

/** Not to be used for new signatures: RFC 9904, RFC 9905. */
const DISCOURAGED: ReadonlySet<number> = new Set([1, 3, 5, 6, 7, Algorithm.RsaSha512, 12])
/** Digests of a DS that are not to be used: SHA-1 (RFC 9905) and GOST (RFC 9904). */
const DISCOURAGED_DIGESTS: ReadonlySet<number> = new Set([1, 3])

/** True if zones should not be signed with the algorithm any more. */
export function isDiscouraged(algorithm: number): boolean {
  return DISCOURAGED.has(algorithm)
}

/** Returns why keys should not have the algorithm, and the fix; '' = they may. */
export function discouragement(algorithm: number): string {
  if (!isDiscouraged(algorithm)) return ''
  const name = printAlgorithm(algorithm)
  return `algorithm ${name} should not be used any more (RFC 9904); use ECDSAP256SHA256`
}

/** Returns the same for the algorithms of DNSKEYs, each once. */
export function discouragements(dnskeys: readonly Uint8Array[]): readonly string[] {
  const algorithms = new Set(dnskeys.map((dnskey) => dnskey[3]!))
  return [...algorithms].map(discouragement).filter((advice) => advice !== '')
}

/** True if a DS should not have the digest any more. */
export function isDiscouragedDigest(digest: number): boolean {
  return DISCOURAGED_DIGESTS.has(digest)
}

/** Mnemonics of the algorithms that `canSign`. */
export const SIGNING_NAMES: readonly string[] = SIGNING.map(printAlgorithm)

/** Returns the number of a mnemonic, in upper or lower case, or of a decimal number; undefined = neither. */
export function scanAlgorithm(text: string): number | undefined {
  const known = algorithmOfName.get(text.toUpperCase())
  if (known !== undefined || !/^\d{1,3}$/.test(text)) return known
  const number = Number(text)
  return number <= 255 ? number : undefined
}

/** Returns the mnemonic of an algorithm, or its number. */
export function printAlgorithm(algorithm: number): string {
  for (const [name, number] of algorithmOfName) if (number === algorithm) return name
  return String(algorithm)
}

/** True if we make signatures with the algorithm. */
export function canSign(algorithm: number): boolean {
  return SIGNING.includes(algorithm)
}

/** How Node.js's `crypto` signs with an algorithm. */
export interface SignatureScheme {
  /** Null = the algorithm hashes by itself. */
  readonly hash: string | null
  readonly keyType: 'rsa' | 'ec' | 'ed25519' | 'ed448'
  readonly curve?: string
  /** Of the curve, in JSON Web Keys. */
  readonly jwkCurve?: string
  /** Of a coordinate, or of the key. */
  readonly octets?: number
}

const SCHEMES: ReadonlyMap<number, SignatureScheme> = new Map<number, SignatureScheme>([
  [Algorithm.RsaSha1, { hash: 'sha1', keyType: 'rsa' }],
  [Algorithm.RsaSha1Nsec3, { hash: 'sha1', keyType: 'rsa' }],
  [Algorithm.RsaSha256, { hash: 'sha256', keyType: 'rsa' }],
  [Algorithm.RsaSha512, { hash: 'sha512', keyType: 'rsa' }],
  [
    Algorithm.EcdsaP256,
    { hash: 'sha256', keyType: 'ec', curve: 'prime256v1', jwkCurve: 'P-256', octets: 32 },
  ],
  [
    Algorithm.EcdsaP384,
    { hash: 'sha384', keyType: 'ec', curve: 'secp384r1', jwkCurve: 'P-384', octets: 48 },
  ],
  [Algorithm.Ed25519, { hash: null, keyType: 'ed25519', jwkCurve: 'Ed25519', octets: 32 }],
  [Algorithm.Ed448, { hash: null, keyType: 'ed448', jwkCurve: 'Ed448', octets: 57 }],
])

/** Undefined = signatures of the algorithm can be neither made nor checked. */
export function schemeOf(algorithm: number): SignatureScheme | undefined {
  return SCHEMES.get(algorithm)
}
