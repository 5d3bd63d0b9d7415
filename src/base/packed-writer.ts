import { assert } from './assert.ts'

// biome-ignore lint/suspicious/noControlCharactersInRegex: all of ASCII is meant
const ASCII = /^[\u0000-\u007f]*$/

export function isAscii(text: string): boolean {
  return ASCII.test(text)
}

/**
 * Builds a string of octets, each character 0..255. Numbers are big endian. A number or a length that does not fit its
 * field fails an assertion: what follows would be read as something else.
 */
export class PackedWriter {
  #octets = Buffer.alloc(16384)
  #length = 0

  /** Forgets what was written before. */
  begin(): void {
    this.#length = 0
  }

  /** Returns what was written since `begin`. */
  take(): string {
    return this.#octets.toString('latin1', 0, this.#length)
  }

  u8(value: number): void {
    assert(value <= 0xff, 'a number or length of 8 bits')
    this.#reserve(1)
    this.#octets[this.#length++] = value
  }

  u16(value: number): void {
    assert(value <= 0xffff, 'a number or length of 16 bits')
    this.#reserve(2)
    this.#octets[this.#length++] = value >>> 8
    this.#octets[this.#length++] = value
  }

  u32(value: number): void {
    this.u16(value >>> 16)
    this.u16(value & 0xffff)
  }

  /** Length as u8, then the text. `text`: characters 0..255. */
  text8(text: string): void {
    this.u8(text.length)
    this.#text(text)
  }

  /** Length as u16, then the text in UTF-8. It is nearly always ASCII, which needs no buffer of its own. */
  utf8(text: string): void {
    if (!isAscii(text)) {
      this.octets16(Buffer.from(text, 'utf8'))
      return
    }
    this.u16(text.length)
    this.#text(text)
  }

  octets8(octets: Uint8Array): void {
    this.u8(octets.length)
    this.#put(octets)
  }

  octets16(octets: Uint8Array): void {
    this.u16(octets.length)
    this.#put(octets)
  }

  #text(text: string): void {
    this.#reserve(text.length)
    for (let i = 0; i < text.length; i++) this.#octets[this.#length++] = text.charCodeAt(i)
  }

  #put(octets: Uint8Array): void {
    this.#reserve(octets.length)
    for (let i = 0; i < octets.length; i++) this.#octets[this.#length++] = octets[i]!
  }

  #reserve(count: number): void {
    if (this.#length + count <= this.#octets.length) return
    const grown = Buffer.alloc(Math.max(this.#octets.length * 2, this.#length + count))
    this.#octets.copy(grown, 0, 0, this.#length)
    this.#octets = grown
  }
}
