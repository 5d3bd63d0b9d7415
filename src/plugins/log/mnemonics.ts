import { printClass, printRcode, printType } from '../../dns/iana/index.ts'
import { putWords, wordsOf } from '../../dns/text/put.ts'

/** Most octets of a mnemonic, and of all flags. */
export const WORD_OCTETS_MAX = 16
export const FLAGS_OCTETS_MAX = 32

/** Larger codes are rare enough to be printed each time. */
const KNOWN_CODES = 512
const MNEMONIC_WORDS = WORD_OCTETS_MAX / 4

/** Mnemonics by code, printed once each. */
class Mnemonics {
  readonly #print: (code: number) => string
  /** After those of known codes, one for the last printed code of all others. */
  readonly #words = new Int32Array((KNOWN_CODES + 1) * MNEMONIC_WORDS)
  /** 0 = not printed yet. */
  readonly #octets = new Uint8Array(KNOWN_CODES + 1)

  constructor(print: (code: number) => string) {
    this.#print = print
  }

  /** @hot */
  put(out: DataView, at: number, code: number): number {
    const index = Math.min(code, KNOWN_CODES)
    if (index === KNOWN_CODES || this.#octets[index] === 0) this.#keep(index, code)
    return putWords(out, at, this.#words, index * MNEMONIC_WORDS, this.#octets[index]!)
  }

  #keep(index: number, code: number): void {
    const text = Buffer.from(this.#print(code)).subarray(0, WORD_OCTETS_MAX)
    this.#words.set(wordsOf(text), index * MNEMONIC_WORDS)
    this.#octets[index] = text.length
  }
}

export const TYPES = new Mnemonics(printType)
export const CLASSES = new Mnemonics(printClass)
export const RCODES = new Mnemonics(printRcode)

const TRUE = wordsOf(Buffer.from('true'))
const FALSE = wordsOf(Buffer.from('false'))

export function putBoolean(out: DataView, at: number, value: boolean): number {
  return value ? putWords(out, at, TRUE, 0, 4) : putWords(out, at, FALSE, 0, 5)
}

const DASH = 0x2d

/** Prints a placeholder for an unknown value. */
export function putUnknown(out: DataView, at: number): number {
  out.setUint8(at, DASH)
  return at + 1
}

/** Bit i of an index into `FLAG_WORDS` stands for flag i. */
const FLAGS = ['aa', 'tc', 'rd', 'ra', 'ad', 'cd']
const FLAG_TEXTS = Array.from({ length: 2 ** FLAGS.length }, (_, set) => {
  return ['qr', ...FLAGS.filter((_, i) => (set & (1 << i)) !== 0)].join()
})
const FLAGS_WORDS = FLAGS_OCTETS_MAX / 4
const FLAG_WORDS = new Int32Array(FLAG_TEXTS.length * FLAGS_WORDS)
FLAG_TEXTS.forEach((text, i) => {
  FLAG_WORDS.set(wordsOf(Buffer.from(text)), i * FLAGS_WORDS)
})
const FLAG_OCTETS = Uint8Array.from(FLAG_TEXTS, (text) => text.length)

/** `set`: one bit per flag, as in FLAGS. @hot */
export function putFlags(out: DataView, at: number, set: number): number {
  return putWords(out, at, FLAG_WORDS, set * FLAGS_WORDS, FLAG_OCTETS[set]!)
}
