import type { RdataField } from './part.ts'

/**
 * Splits one line of rdata text into its fields. Blanks separate fields, double quotes enclose a
 * field, and the character after a backslash has no special meaning. Comments and parentheses are
 * not supported. A quote that opens inside a field (`alpn="h2,h3"`) belongs to that field. Returns
 * undefined if a quote is not closed.
 */
export function splitFields(text: string): RdataField[] | undefined {
  const fields: RdataField[] = []
  let at = 0
  while (at < text.length) {
    if (isBlank(text[at])) {
      at += 1
      continue
    }
    const quoted = text[at] === '"'
    const end = quoted ? closingQuote(text, at) : endOfWord(text, at)
    if (end < 0) return undefined
    fields.push({ text: text.slice(quoted ? at + 1 : at, end), quoted })
    at = quoted ? end + 1 : end
  }
  return fields
}

function isBlank(character: string | undefined): boolean {
  return character === ' ' || character === '\t' || character === '\r' || character === '\n'
}

/** Returns the index of the quote that closes the one at `start`; -1 if none does. */
function closingQuote(text: string, start: number): number {
  for (let i = start + 1; i < text.length; i++) {
    if (text[i] === '"') return i
    if (text[i] === '\\') i += 1
  }
  return -1
}

/** Returns the index behind the field at `start`; -1 if a quote inside it is not closed. */
function endOfWord(text: string, start: number): number {
  for (let i = start; i < text.length; i++) {
    if (isBlank(text[i])) return i
    if (text[i] === '\\') i += 1
    else if (text[i] === '"') i = closingQuote(text, i)
    if (i < 0) return -1
  }
  return text.length
}
