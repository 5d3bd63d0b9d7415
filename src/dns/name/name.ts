/**
 * Domain names outside the hot path. A name is in uncompressed wire form: length-prefixed labels
 * and the root's zero octet, 1..255 octets, case kept. Every function here requires well-formed
 * names, as `scanName` and `parseName` return them.
 */

/** Maximum length of a name in wire form (RFC 1035 section 2.3.4). */
export const NAME_OCTETS_MAX = 255
/** Maximum length of a label. */
export const LABEL_OCTETS_MAX = 63

export const ROOT_NAME: Uint8Array = new Uint8Array(1)

const BACKSLASH = 0x5c
const DOT = 0x2e

/**
 * Parses a name in presentation form (RFC 1035 section 5.1): `\X` and `\DDD` escapes, case kept,
 * characters above ASCII as their UTF-8 octets. Completes a name without a final dot with `origin`,
 * by default the root. A lone `@` means `origin` if the caller passes one. Returns undefined for an
 * empty name or label, a label over 63 octets, a name over 255 octets, or an invalid escape.
 */
export function scanName(text: string, origin?: Uint8Array): Uint8Array | undefined {
  if (origin !== undefined && text === '@') return origin
  if (text === '.') return ROOT_NAME
  if (text === '' || text.length > NAME_OCTETS_MAX * 4) return undefined
  const input = Buffer.from(text, 'utf8')
  const name = new Uint8Array(NAME_OCTETS_MAX + 1)
  let labelStart = 0
  let at = 1
  for (let i = 0; i < input.length; ) {
    let octet = input[i]!
    i += 1
    if (octet === DOT) {
      if (!closeLabel(name, labelStart, at)) return undefined
      labelStart = at
      at += 1
      continue
    }
    if (octet === BACKSLASH) {
      const escaped = scanEscape(input, i)
      if (escaped < 0) return undefined
      i += isDigit(input[i]) ? 3 : 1
      octet = escaped
    }
    if (at >= NAME_OCTETS_MAX) return undefined
    name[at] = octet
    at += 1
  }
  const isAbsolute = at === labelStart + 1
  if (isAbsolute) return name.slice(0, at)
  if (!closeLabel(name, labelStart, at)) return undefined
  const relative = name.slice(0, at + 1)
  relative[at] = 0
  return concatNames(relative, origin ?? ROOT_NAME)
}

/** Writes the label's length; returns false if the label is empty, too long, or leaves no space for the root. */
function closeLabel(name: Uint8Array, labelStart: number, end: number): boolean {
  const octets = end - labelStart - 1
  if (octets < 1 || octets > LABEL_OCTETS_MAX || end >= NAME_OCTETS_MAX) return false
  name[labelStart] = octets
  return true
}

/**
 * Returns the octet that the escape after a backslash encodes (`at`: behind the backslash); -1 if
 * the escape is invalid.
 */
export function scanEscape(input: Uint8Array, at: number): number {
  const first = input[at]
  if (first === undefined) return -1
  if (!isDigit(first)) return first
  const second = input[at + 1]
  const third = input[at + 2]
  if (!isDigit(second) || !isDigit(third)) return -1
  const octet = (first - 48) * 100 + (second! - 48) * 10 + (third! - 48)
  return octet <= 255 ? octet : -1
}

function isDigit(octet: number | undefined): boolean {
  return octet !== undefined && octet >= 48 && octet <= 57
}

/**
 * Returns the presentation form of the name at `offset`, absolute. Escapes all characters with a
 * special meaning in zone files, so that `scanName` restores the name.
 */
export function printName(name: Uint8Array, offset = 0): string {
  let at = offset
  let length = name[at] ?? 0
  if (length === 0) return '.'
  let text = ''
  while (length > 0) {
    for (let i = at + 1; i <= at + length; i++) text += printNameOctet(name[i] ?? 0)
    text += '.'
    at += length + 1
    length = name[at] ?? 0
  }
  return text
}

function printNameOctet(octet: number): string {
  if (octet <= 0x20 || octet >= 0x7f) return `\\${String(octet).padStart(3, '0')}`
  const character = String.fromCharCode(octet)
  return '."\\;()@$'.includes(character) ? `\\${character}` : character
}

/** Returns a copy with ASCII letters in lower case. */
export function lowerName(name: Uint8Array): Uint8Array {
  // Length octets are at most 63, below 'A', so the conversion does not change them.
  return name.map(lowerOctet)
}

/** Returns a key for Maps: the lower-case wire form, one character per octet. Equal names have equal keys. */
export function nameKey(name: Uint8Array): string {
  return Buffer.from(lowerName(name)).toString('latin1')
}

/** Returns the presentation form of the name that has this key. */
export function printKey(key: string): string {
  return printName(Buffer.from(key, 'latin1'))
}

/** True if both names are equal, ignoring ASCII case (RFC 4343). */
export function equalNames(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && endsAlike(a, 0, b)
}

/** True if `name` is `zone` or below it. */
export function isSubdomain(name: Uint8Array, zone: Uint8Array): boolean {
  const start = name.length - zone.length
  let at = 0
  while (at < start) at += name[at]! + 1
  return at === start && endsAlike(name, start, zone)
}

function endsAlike(name: Uint8Array, start: number, suffix: Uint8Array): boolean {
  for (let i = 0; i < suffix.length; i++) {
    if (lowerOctet(name[start + i]!) !== lowerOctet(suffix[i]!)) return false
  }
  return true
}

/**
 * Compares in canonical order (RFC 4034 section 6.1): returns below 0, 0 or above 0, as
 * `Array.prototype.sort` requires.
 */
export function compareNames(a: Uint8Array, b: Uint8Array): number {
  const aOffsets = labelOffsets(a)
  const bOffsets = labelOffsets(b)
  const shared = Math.min(aOffsets.length, bOffsets.length)
  for (let i = 1; i <= shared; i++) {
    const order = compareLabels(a, aOffsets.at(-i)!, b, bOffsets.at(-i)!)
    if (order !== 0) return order
  }
  return aOffsets.length - bOffsets.length
}

function compareLabels(a: Uint8Array, aOffset: number, b: Uint8Array, bOffset: number): number {
  const aOctets = a[aOffset]!
  const bOctets = b[bOffset]!
  const shared = Math.min(aOctets, bOctets)
  for (let i = 1; i <= shared; i++) {
    const order = lowerOctet(a[aOffset + i]!) - lowerOctet(b[bOffset + i]!)
    if (order !== 0) return order
  }
  return aOctets - bOctets
}

/** Returns the offset of each label, leftmost first, without the root. */
export function labelOffsets(name: Uint8Array): number[] {
  const offsets: number[] = []
  for (let at = 0; (name[at] ?? 0) > 0; at += name[at]! + 1) offsets.push(at)
  return offsets
}

/** Returns the name without its leftmost label; the root's parent is the root. */
export function parentName(name: Uint8Array): Uint8Array {
  return name[0] === 0 ? name : name.subarray(name[0]! + 1)
}

/** Returns `relative` with its root replaced by `origin`; undefined if the result is longer than 255 octets. */
export function concatNames(relative: Uint8Array, origin: Uint8Array): Uint8Array | undefined {
  const head = relative.length - 1
  if (head + origin.length > NAME_OCTETS_MAX) return undefined
  const name = new Uint8Array(head + origin.length)
  name.set(relative.subarray(0, head))
  name.set(origin, head)
  return name
}

function lowerOctet(octet: number): number {
  return octet >= 0x41 && octet <= 0x5a ? octet | 0x20 : octet
}
