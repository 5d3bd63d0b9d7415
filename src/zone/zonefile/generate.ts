/** Maximum of records of one $GENERATE; the same as in CoreDNS. */
const GENERATE_STEPS_MAX = 65_535
/** Longest record text of a $GENERATE. */
const TEMPLATE_MAX = 4096
/** Widest field that a modifier can ask for. */
const WIDTH_MAX = 255
const RANGE_MAX = 2 ** 31 - 1

/** A parsed $GENERATE line. Values run from `start` to `stop` in steps of `step`. */
export interface GenerateRange {
  readonly start: number
  readonly stop: number
  readonly step: number
  /** The record's text with its `$`, one character per octet. */
  readonly template: string
}

/** Parses `START-STOP[/STEP]`; returns an error message if the range or the template is out of bounds. */
export function scanRange(text: string, template: string): GenerateRange | string {
  const found = /^(\d{1,10})-(\d{1,10})(?:\/(\d{1,10}))?$/.exec(text)
  if (found === null) {
    return `${JSON.stringify(text.slice(0, 40))} is not a range; write START-STOP or START-STOP/STEP`
  }
  const start = Number(found[1])
  const stop = Number(found[2])
  const step = Number(found[3] ?? 1)
  if (start > stop || stop > RANGE_MAX) {
    return `bad range; START must not be above STOP, and STOP not above ${RANGE_MAX}`
  }
  if (step === 0) return 'step 0 never ends; use 1 or more'
  if ((stop - start) / step + 1 > GENERATE_STEPS_MAX) {
    return `more than ${GENERATE_STEPS_MAX} steps; split the range`
  }
  if (template.length > TEMPLATE_MAX)
    return `the record has more than ${TEMPLATE_MAX} octets; shorten it`
  return { start, stop, step, template }
}

/**
 * Returns the record's text for one value. `$` is the value, `${OFFSET[,WIDTH[,BASE]]}` a modified
 * value, `$$` and `\$` a dollar sign. The dollar sign remains escaped, so that no step can make a
 * directive. BASE: d, o, x, X, or n, N for reversed nibbles (BIND's `$GENERATE`).
 */
export function expandTemplate(template: string, value: number): string | { complaint: string } {
  let text = ''
  for (let i = 0; i < template.length; i++) {
    const c = template[i]!
    if (c === '\\') {
      text += c + (template[i + 1] ?? '')
      i++
    } else if (c !== '$') text += c
    else if (template[i + 1] === '$') {
      text += '\\$'
      i++
    } else if (template[i + 1] === '{') {
      const end = template.indexOf('}', i)
      const part = printModified(template.slice(i + 2, end === -1 ? i + 2 : end), value)
      if (part === undefined) return { complaint: badModifier(template.slice(i, i + 40)) }
      text += part
      i = end
    } else text += String(value)
  }
  return text
}

function badModifier(text: string): string {
  return `bad modifier at ${JSON.stringify(text)}; write \${OFFSET,WIDTH,BASE}, as in \${0,3,d}`
}

/**
 * Returns the value modified by `OFFSET[,WIDTH[,BASE]]`; undefined if the modifier is invalid or
 * the result is below 0.
 */
function printModified(modifier: string, value: number): string | undefined {
  const found = /^([+-]?\d{1,10})(?:,(\d{1,3})(?:,([doxXnN]))?)?$/.exec(modifier)
  if (found === null) return undefined
  const shifted = value + Number(found[1])
  const width = Number(found[2] ?? 0)
  if (shifted < 0 || shifted > RANGE_MAX || width > WIDTH_MAX) return undefined
  switch (found[3]) {
    case 'o':
      return shifted.toString(8).padStart(width, '0')
    case 'x':
      return shifted.toString(16).padStart(width, '0')
    case 'X':
      return shifted.toString(16).toUpperCase().padStart(width, '0')
    case 'n':
      return printNibbles(shifted, width)
    case 'N':
      return printNibbles(shifted, width).toUpperCase()
    default:
      return shifted.toString().padStart(width, '0')
  }
}

/** Returns hex digits in reverse with dots between them, as in ip6.arpa; `width` counts digits and dots. */
function printNibbles(value: number, width: number): string {
  const digits = [...value.toString(16)].reverse()
  while (digits.length * 2 - 1 < width) digits.push('0')
  return digits.join('.')
}
