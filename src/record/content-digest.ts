/**
 * Digest of a set of texts, whatever the order in which they came and went: the sum of their hashes
 * modulo 2^106. Tells whether two zones hold the same; no defence against forgery, and needs none.
 */
export class ContentDigest {
  #high = 0
  #low = 0

  add(text: string): void {
    const [high, low] = hashText(text)
    this.#high = (this.#high + high) % MODULUS
    this.#low = (this.#low + low) % MODULUS
  }

  remove(text: string): void {
    const [high, low] = hashText(text)
    this.#high = (this.#high + MODULUS - high) % MODULUS
    this.#low = (this.#low + MODULUS - low) % MODULUS
  }

  print(): string {
    return `${this.#high.toString(16)}-${this.#low.toString(16)}`
  }
}

/** Sums of two stay exact. */
const MODULUS = 2 ** 52

/** Four lanes of 32 bits, joined to two numbers below 2^52. */
function hashText(text: string): [number, number] {
  let a = 0x2c1b3c6d
  let b = 0x297a2d39
  let c = 0x165667b1
  let d = 0x7feb352d
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    a = Math.imul(a ^ code, 0x9e3779b1)
    b = Math.imul(b ^ code, 0x85ebca77)
    c = Math.imul(c ^ code, 0xc2b2ae3d)
    d = Math.imul(d ^ code, 0x27d4eb2f)
  }
  a ^= a >>> 15
  c ^= c >>> 13
  return [
    ((a >>> 0) * 2 ** 20 + ((b ^ (b >>> 11)) >>> 12)) % MODULUS,
    ((c >>> 0) * 2 ** 20 + ((d ^ (d >>> 11)) >>> 12)) % MODULUS,
  ]
}
