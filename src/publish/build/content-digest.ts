import type { OwnerSet } from './owner-set.ts'
import { packSet } from './pack-set.ts'

/**
 * Digest of a zone's RRsets that does not depend on the order of changes: the sum of their hashes
 * modulo 2^106. Equal digests mean equal content; the digest does not protect against forgery.
 * The hash of an RRset is that of its owner, a space, and `packSet`.
 */
export class ContentDigest {
  #high = 0
  #low = 0

  /** `key`: `lowerNameKey` of the owner. */
  add(key: string, set: OwnerSet): void {
    hashSet(key, set)
    this.#high = (this.#high + high()) % MODULUS
    this.#low = (this.#low + low()) % MODULUS
  }

  remove(key: string, set: OwnerSet): void {
    hashSet(key, set)
    this.#high = (this.#high + MODULUS - high()) % MODULUS
    this.#low = (this.#low + MODULUS - low()) % MODULUS
  }

  print(): string {
    return `${this.#high.toString(16)}-${this.#low.toString(16)}`
  }
}

/** The sum of two numbers below this is exact. */
const MODULUS = 2 ** 52

/** Four hash states of 32 bits, joined at the end into two numbers below 2^52. */
let a = 0
let b = 0
let c = 0
let d = 0

/** Hashes the owner and the octets of the RRset. */
function hashSet(key: string, set: OwnerSet): void {
  a = 0x2c1b3c6d
  b = 0x297a2d39
  c = 0x165667b1
  d = 0x7feb352d
  hashText(key)
  hashText(' ')
  hashText(packSet(set))
}

function hashText(text: string): void {
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    a = Math.imul(a ^ code, 0x9e3779b1)
    b = Math.imul(b ^ code, 0x85ebca77)
    c = Math.imul(c ^ code, 0xc2b2ae3d)
    d = Math.imul(d ^ code, 0x27d4eb2f)
  }
}

function high(): number {
  return (((a ^ (a >>> 15)) >>> 0) * 2 ** 20 + ((b ^ (b >>> 11)) >>> 12)) % MODULUS
}

function low(): number {
  return (((c ^ (c >>> 13)) >>> 0) * 2 ** 20 + ((d ^ (d >>> 11)) >>> 12)) % MODULUS
}
