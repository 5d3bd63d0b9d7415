import { nameKey, scanName } from '../name/name.ts'

/** A MAC algorithm (RFC 8945 section 6). */
export interface TsigAlgorithm {
  /** As in key files and `dig -y`: `hmac-sha256`. */
  readonly text: string
  /** Lower-case wire form. */
  readonly name: Uint8Array
  /** The name of the hash in node:crypto. */
  readonly hash: string
  readonly macOctets: number
}

/** HMAC-MD5 is missing: RFC 8945 no longer requires it, and it is insecure. */
const ALGORITHMS: readonly TsigAlgorithm[] = [
  algorithm('hmac-sha1', 'sha1', 20),
  algorithm('hmac-sha224', 'sha224', 28),
  algorithm('hmac-sha256', 'sha256', 32),
  algorithm('hmac-sha384', 'sha384', 48),
  algorithm('hmac-sha512', 'sha512', 64),
]

const byName = new Map(ALGORITHMS.map((one) => [nameKey(one.name), one]))

/** The algorithm of a key that is configured without one. */
export const HMAC_SHA256: TsigAlgorithm = ALGORITHMS[2]!

/** The names of all algorithms, for messages to operators. */
export const ALGORITHM_NAMES: string = ALGORITHMS.map(({ text }) => text).join(', ')

/** Returns the algorithm with that wire name, in any case; undefined if it is not supported. */
export function findAlgorithm(name: Uint8Array): TsigAlgorithm | undefined {
  return byName.get(nameKey(name))
}

/** Returns the algorithm that `text` names, in any case, with or without the final dot. */
export function scanAlgorithm(text: string): TsigAlgorithm | undefined {
  const name = scanName(text)
  return name === undefined ? undefined : findAlgorithm(name)
}

function algorithm(text: string, hash: string, macOctets: number): TsigAlgorithm {
  return { text, name: scanName(text)!, hash, macOctets }
}
