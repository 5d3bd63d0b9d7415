import { SHA1_OCTETS, Sha1, sha1Blocks } from './sha1.ts'

/** The only hash algorithm of NSEC3: SHA-1 (RFC 5155 section 11). */
export const NSEC3_SHA1 = 1
/**
 * Maximum of extra iterations in a zone. Since 2021, validators treat answers with more as insecure
 * or reject them. Each iteration costs processor time for every negative answer (RFC 9276 section
 * 3.2).
 */
const NSEC3_ITERATIONS_MAX = 150
/** Above this number, validators that were updated for CVE-2023-50868 treat answers as insecure. */
export const NSEC3_ITERATIONS_SAFE = 50
/** Offset of the salt's length in the rdata of NSEC3 and NSEC3PARAM, after algorithm, flags and iterations. */
const SALT_LENGTH = 4
/** Characters of a hashed name in base32hex. */
const HASHED_LABEL_OCTETS = 32

const BASE32HEX = Buffer.from('0123456789abcdefghijklmnopqrstuv', 'latin1')

/** Returns the extra iterations in the rdata of NSEC3 or NSEC3PARAM at `bytes[at]`. */
export function nsec3Iterations(bytes: Uint8Array, at: number): number {
  return (bytes[at + 2]! << 8) | bytes[at + 3]!
}

/**
 * Returns what exceeds the limits for iterations and salt in the rdata of NSEC3 or NSEC3PARAM at
 * `bytes[at]`; '' = nothing. With a long salt, each iteration needs several blocks of SHA-1, so the
 * limit for iterations is lower.
 */
export function nsec3Excess(bytes: Uint8Array, at: number): string {
  const iterations = nsec3Iterations(bytes, at)
  const saltOctets = bytes[at + SALT_LENGTH]!
  const most = Math.floor(NSEC3_ITERATIONS_MAX / sha1Blocks(SHA1_OCTETS + saltOctets))
  if (iterations <= most) return ''
  const salt = most === NSEC3_ITERATIONS_MAX ? '' : ` and a salt of ${saltOctets} octets`
  return `${iterations} iterations${salt}; at most ${most} are accepted: sign the zone with 0 and no salt (RFC 9276)`
}

/** True if both rdata, of NSEC3 or NSEC3PARAM, have the same algorithm, iterations and salt. */
export function hasSameNsec3Parameters(
  a: Uint8Array,
  aOffset: number,
  b: Uint8Array,
  bOffset: number,
): boolean {
  if (a[aOffset] !== b[bOffset]) return false
  const end = SALT_LENGTH + 1 + a[aOffset + SALT_LENGTH]!
  for (let i = 2; i < end; i++) if (a[aOffset + i] !== b[bOffset + i]) return false
  return true
}

/** Returns the owner label of the record that follows the one with this NSEC3 rdata. */
export function nsec3NextLabel(rdata: Uint8Array): Uint8Array {
  const at = SALT_LENGTH + 1 + rdata[SALT_LENGTH]!
  const label = new Uint8Array(HASHED_LABEL_OCTETS + 1)
  label[0] = HASHED_LABEL_OCTETS
  encode(rdata.subarray(at + 1, at + 1 + SHA1_OCTETS), label)
  return label
}

/** Number of names whose hashes are cached: a power of two. */
const KEPT_NAMES = 64
/** Octets of the longest name with the label `*` before it. The hasher accepts it although no name is that long. */
const KEPT_OCTETS = 257
/** The basis and the prime of 32-bit FNV-1a. */
const FNV_BASIS = 0x811c9dc5
const FNV_PRIME = 0x01000193

/**
 * Computes the owner labels of NSEC3 records (RFC 5155 section 5). Caches the labels of some names:
 * queries for random names below one name need the hashes of that name and of its wildcard each
 * time. Reused; does not allocate.
 */
export class Nsec3Hasher {
  /** The last result as a label: its length octet and base32hex in lower case. */
  readonly label: Uint8Array = new Uint8Array(HASHED_LABEL_OCTETS + 1).fill(
    HASHED_LABEL_OCTETS,
    0,
    1,
  )
  readonly #sha1 = new Sha1()
  readonly #digest = new Uint8Array(SHA1_OCTETS)
  /** The NSEC3PARAM rdata that the cached labels were computed with. */
  readonly #keptParameters = new Uint8Array(SALT_LENGTH + 1 + 255)
  readonly #keptNames = new Uint8Array(KEPT_NAMES * KEPT_OCTETS)
  /** Octets of each cached name; 0 = the slot is empty. */
  readonly #keptOctets = new Uint16Array(KEPT_NAMES)
  readonly #keptLabels = new Uint8Array(KEPT_NAMES * HASHED_LABEL_OCTETS)

  /**
   * Hashes the lower-case wire name at `name[start..end)`, with the label `*` before it if
   * `wildcard`. The parameters are in the NSEC3PARAM or NSEC3 rdata at `parameters[at]`. @hot
   */
  hash(
    name: Uint8Array,
    start: number,
    end: number,
    wildcard: boolean,
    parameters: Uint8Array,
    at: number,
  ): void {
    const sha1 = this.#sha1
    const { input } = sha1
    let octets = 0
    if (wildcard) {
      input[0] = 1
      input[1] = 0x2a
      octets = 2
    }
    for (let i = start; i < end; i++) input[octets++] = name[i]!
    if (!hasSameNsec3Parameters(this.#keptParameters, 0, parameters, at)) {
      this.#keptOctets.fill(0)
      const parameterOctets = SALT_LENGTH + 1 + parameters[at + SALT_LENGTH]!
      for (let i = 0; i < parameterOctets; i++) this.#keptParameters[i] = parameters[at + i]!
    }
    const slot = this.#slot(octets)
    const kept = slot * HASHED_LABEL_OCTETS
    if (this.#isKept(slot, octets)) {
      for (let i = 0; i < HASHED_LABEL_OCTETS; i++) this.label[i + 1] = this.#keptLabels[kept + i]!
      return
    }
    this.#keptOctets[slot] = octets
    for (let i = 0; i < octets; i++) this.#keptNames[slot * KEPT_OCTETS + i] = input[i]!
    this.#digestName(octets, parameters, at)
    for (let i = 0; i < HASHED_LABEL_OCTETS; i++) this.#keptLabels[kept + i] = this.label[i + 1]!
  }

  /** Returns the slot of the name in the first `octets` octets of the input. @hot */
  #slot(octets: number): number {
    const { input } = this.#sha1
    let hash = FNV_BASIS
    for (let i = 0; i < octets; i++) hash = Math.imul(hash ^ input[i]!, FNV_PRIME)
    return (hash ^ (hash >>> 16)) & (KEPT_NAMES - 1)
  }

  /** True if `slot` caches the label of the name in the input. @hot */
  #isKept(slot: number, octets: number): boolean {
    if (this.#keptOctets[slot] !== octets) return false
    const { input } = this.#sha1
    const at = slot * KEPT_OCTETS
    for (let i = 0; i < octets; i++) if (this.#keptNames[at + i] !== input[i]) return false
    return true
  }

  /** Writes the hash of the first `nameOctets` octets of the input to `label`. @hot */
  #digestName(nameOctets: number, parameters: Uint8Array, at: number): void {
    const sha1 = this.#sha1
    const { input } = sha1
    let octets = nameOctets
    const saltOctets = parameters[at + SALT_LENGTH]!
    const salt = at + SALT_LENGTH + 1
    for (let left = nsec3Iterations(parameters, at); ; left--) {
      for (let i = 0; i < saltOctets; i++) input[octets + i] = parameters[salt + i]!
      sha1.digest(octets + saltOctets)
      if (left === 0) break
      sha1.write(input, 0)
      octets = SHA1_OCTETS
    }
    sha1.write(this.#digest, 0)
    encode(this.#digest, this.label)
  }
}

/**
 * Writes base32 after the length octet of a label, with the alphabet that preserves the order (RFC
 * 4648 section 7). @hot
 */
function encode(digest: Uint8Array, label: Uint8Array): void {
  let bits = 0
  let count = 0
  let to = 1
  for (let i = 0; i < SHA1_OCTETS; i++) {
    bits = ((bits << 8) | digest[i]!) & 0xfff
    count += 8
    while (count >= 5) {
      count -= 5
      label[to++] = BASE32HEX[(bits >>> count) & 31]!
    }
  }
}
