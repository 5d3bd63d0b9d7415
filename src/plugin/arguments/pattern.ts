import { LinearRegExp } from '../../base/re2/linear-regexp.ts'
import { PatternError } from '../../base/re2/syntax.ts'
import type { Dispenser } from '../../corefile/dispenser.ts'

/**
 * Reads a regular expression in Go's syntax. Throws InputError if it is invalid, or uses what Go
 * does not support (look-around, back-references) or Sextant does not (`\p`).
 */
export function scanPattern(d: Dispenser, text: string): LinearRegExp {
  try {
    return new LinearRegExp(text)
  } catch (error) {
    if (!(error instanceof PatternError)) throw error
    throw d.error(
      `invalid regular expression ${JSON.stringify(text.slice(0, 200))}: ${error.message}`,
    )
  }
}
