import { LABEL_OCTETS_MAX } from '../../dns/name/name.ts'

const STAR = 0x2a
/** Characters that a pattern may have, and that `*` stands for, in lower case. */
const CHARACTERS = 'abcdefghijklmnopqrstuvwxyz0123456789-_'
/** Place of each octet in CHARACTERS, plus 1; 0 = no such character. */
const PLACES: Uint8Array = Uint8Array.from({ length: 256 }, (_, octet) => {
  return CHARACTERS.indexOf(String.fromCharCode(octet)) + 1
})

/**
 * A pattern for one label, where `*` stands for any number of letters, digits, `-` and `_`. The
 * automaton of the pattern runs in 64 bits: bit i is set if the octets so far match the first i
 * characters other than `*`. So the time is proportional to the length of the label, whatever the
 * pattern.
 */
export class Glob {
  /** Bit i of the two words of a character: it is the pattern's character i. */
  readonly #steps = new Int32Array((CHARACTERS.length + 1) * 2)
  /** Bit i: a `*` stands before character i. */
  readonly #loopsLow: number
  readonly #loopsHigh: number
  /** The bit of the whole pattern. */
  readonly #end: number

  /** `pattern`: letters in lower case, digits, `-`, `_`, and `*`; at most 63 of them no `*`. */
  constructor(pattern: string) {
    const loops = new Int32Array(2)
    let at = 0
    for (let i = 0; i < pattern.length; i++) {
      const octet = pattern.charCodeAt(i)
      if (octet === STAR) {
        loops[at >> 5]! |= 1 << (at & 31)
        continue
      }
      this.#steps[PLACES[octet]! * 2 + (at >> 5)]! |= 1 << (at & 31)
      at++
    }
    this.#loopsLow = loops[0]!
    this.#loopsHigh = loops[1]!
    this.#end = at
  }

  /** True if the pattern matches the label whose length octet is `name[offset]`. @hot */
  matches(name: Uint8Array, offset: number): boolean {
    const steps = this.#steps
    let low = 1
    let high = 0
    const end = offset + name[offset]!
    for (let i = offset + 1; i <= end; i++) {
      const place = PLACES[name[i]!]! * 2
      if (place === 0) return false
      const stepLow = low & steps[place]!
      const stepHigh = high & steps[place + 1]!
      high = (stepHigh << 1) | (stepLow >>> 31) | (high & this.#loopsHigh)
      low = (stepLow << 1) | (low & this.#loopsLow)
      if ((low | high) === 0) return false
    }
    const word = this.#end < 32 ? low : high
    return ((word >>> (this.#end & 31)) & 1) === 1
  }
}

/** True if a label can match the pattern: it has at most 63 characters other than `*`. */
export function isPossible(pattern: string): boolean {
  return pattern.replaceAll('*', '').length <= LABEL_OCTETS_MAX
}

/** True if all octets of the label at `name[offset]` are characters of patterns. @hot */
export function isPatternLabel(name: Uint8Array, offset: number): boolean {
  const end = offset + name[offset]!
  for (let i = offset + 1; i <= end; i++) if (PLACES[name[i]!] === 0) return false
  return true
}

/** True if the character, in lower case, may stand in names of selectors. */
export function isNameCharacter(octet: number): boolean {
  return octet < 256 && PLACES[octet] !== 0
}
