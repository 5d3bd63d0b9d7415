import { mmdbFault } from './fault.ts'

/** Types of values, with their numbers in control octets. */
const ValueType = {
  Pointer: 1,
  Text: 2,
  Double: 3,
  Bytes: 4,
  Uint16: 5,
  Uint32: 6,
  Map: 7,
  Int32: 8,
  Uint64: 9,
  Uint128: 10,
  Array: 11,
  Boolean: 14,
  Float: 15,
} as const

/** Maximum nesting of maps and arrays; a City record has four levels. */
const DEPTH_MAX = 16
/** Maximum of values of one entry; a City record has about 150. */
const VALUES_MAX = 10_000
/**
 * Maximum of values per octet that all reads of a section skip, and a base for small files. A read of a place searches
 * its entry about ten times, and a value has at least one octet: only entries that share large maps need more.
 */
const SKIPS_PER_OCTET = 32
const SKIPS_BASE = 1_000_000
/** Longer texts count as missing: the longest text of a known database has some 100 octets. */
const TEXT_OCTETS_MAX = 4096
/** Added to the second octet of an extended type. */
const TYPE_BASE = 7
/** No size is valid: the type is unknown. */
const NONE = -1
const ANY = Number.POSITIVE_INFINITY
/**
 * Minimum and maximum of octets by type, 0 to 15. For a boolean the size is the value; for maps and
 * arrays it is a count.
 */
const SIZE_LEAST = [0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4]
const SIZE_MOST = [NONE, ANY, ANY, 8, ANY, 2, 4, ANY, 4, 8, 16, ANY, NONE, NONE, 1, 4]
/** Added to a pointer by its size class. */
const POINTER_BASE = [0, 2048, 526_336, 0] as const

/**
 * Reads the data section of a MaxMind DB in place: finds one value without decoding the others.
 * Checks every read: a corrupt file throws InputError and never loops, recurses without end, or
 * causes a read outside the section. Offsets count from the start of the section.
 */
export class DataSection {
  readonly #file: string
  readonly #bytes: Buffer
  readonly #base: number
  readonly #octets: number
  /** Values that the current operation skipped. */
  #skipped = 0
  /** Values that may still be skipped. */
  #skipsLeft = Number.POSITIVE_INFINITY

  /** Header that `#readHeader` read last. A map's size counts pairs, an array's size counts items. */
  #type = 0
  #size = 0
  /** Offset of that value's payload. For a pointer, `#size` is the target. */
  #payload = 0

  constructor(file: string, bytes: Uint8Array, base: number, octets: number) {
    this.#file = file
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.#base = base
    this.#octets = octets
  }

  /**
   * Bounds the time of all reads from now on by the size of the section: a small file with many entries that share
   * one large map could take hours. Call it before all entries are read.
   */
  boundReads(): void {
    this.#skipsLeft = SKIPS_BASE + this.#octets * SKIPS_PER_OCTET
  }

  /** Returns the offset of the value under `key` of the map at `offset`; -1 if it is not a map or lacks the key. */
  find(offset: number, key: string): number {
    this.#resolve(offset)
    if (this.#type !== ValueType.Map) return -1
    const pairs = this.#boundedSize()
    let at = this.#payload
    this.#skipped = 0
    for (let i = 0; i < pairs; i++) {
      const value = this.#skip(at, 0)
      if (this.#equalsText(at, key)) return value
      at = this.#skip(value, 0)
    }
    return -1
  }

  /**
   * Sets `found[i]` to what `find(offset, keys[i])` returns, for all keys in one pass. `keys` are different.
   */
  findEach(offset: number, keys: readonly string[], found: Int32Array): void {
    found.fill(-1)
    this.#resolve(offset)
    if (this.#type !== ValueType.Map) return
    const pairs = this.#boundedSize()
    let at = this.#payload
    this.#skipped = 0
    for (let i = 0; i < pairs; i++) {
      const value = this.#skip(at, 0)
      const key = this.#indexOfText(at, keys)
      if (key !== -1 && found[key] === -1) found[key] = value
      at = this.#skip(value, 0)
    }
  }

  /** Returns the offset of the value at `offset`, or of the one that it points to. -1 stays -1. */
  targetOf(offset: number): number {
    if (offset === -1) return -1
    this.#readHeader(offset)
    return this.#type === ValueType.Pointer ? this.#size : offset
  }

  /** Returns the offset of the value at the end of a path of keys, or -1. */
  findPath(offset: number, ...keys: string[]): number {
    return keys.reduce((at, key) => (at === -1 ? -1 : this.find(at, key)), offset)
  }

  /** Returns the offsets of the items of the array at `offset`; empty if it is not an array. */
  items(offset: number): number[] {
    if (offset === -1) return []
    this.#resolve(offset)
    if (this.#type !== ValueType.Array) return []
    const offsets: number[] = []
    let at = this.#payload
    this.#skipped = 0
    for (let count = this.#boundedSize(); count > 0; count--) {
      offsets.push(at)
      at = this.#skip(at, 0)
    }
    return offsets
  }

  /** Returns the text at `offset`; '' if the value is not text, or longer than 4096 octets. */
  text(offset: number): string {
    if (offset === -1) return ''
    this.#resolve(offset)
    return this.#type === ValueType.Text ? this.#utf8() : ''
  }

  /**
   * Returns the integer at `offset`, of any width; 0 if the value is negative or not an integer.
   * Above 2^53 it is rounded.
   */
  uint(offset: number): number {
    if (offset === -1) return 0
    this.#resolve(offset)
    return isInteger(this.#type) ? Math.max(0, Number(this.#integer())) : 0
  }

  /**
   * Returns the string, number or boolean at `offset` as text; '' if it is missing, octets, a map, an array or a string
   * of more than 4096 octets.
   */
  print(offset: number): string {
    if (offset === -1) return ''
    this.#resolve(offset)
    const at = this.#base + this.#payload
    switch (this.#type) {
      case ValueType.Text:
        return this.#utf8()
      case ValueType.Double:
        return String(this.#bytes.readDoubleBE(at))
      case ValueType.Float:
        return String(this.#bytes.readFloatBE(at))
      case ValueType.Boolean:
        return String(this.#size !== 0)
      default:
        return isInteger(this.#type) ? String(this.#integer()) : ''
    }
  }

  /** Returns the text after the header that was read last. */
  #utf8(): string {
    if (this.#size > TEXT_OCTETS_MAX) return ''
    const at = this.#base + this.#payload
    return this.#bytes.toString('utf8', at, at + this.#size)
  }

  /** Returns the integer after the header that was read last. Files omit leading zeros, so 0 has no octets. */
  #integer(): bigint {
    const at = this.#base + this.#payload
    if (this.#size === 0) return 0n
    const value = BigInt(`0x${this.#bytes.toString('hex', at, at + this.#size)}`)
    // Only a 4-octet Int32 can be negative: shorter ones are padded with zeros on the left.
    return this.#type === ValueType.Int32 && this.#size === 4 ? BigInt.asIntN(32, value) : value
  }

  #equalsText(offset: number, key: string): boolean {
    this.#resolve(offset)
    return this.#isText(key)
  }

  /** Returns which of `keys` the text at `offset` is, as an index; -1 = it is another text. */
  #indexOfText(offset: number, keys: readonly string[]): number {
    this.#resolve(offset)
    for (let i = 0; i < keys.length; i++) if (this.#isText(keys[i]!)) return i
    return -1
  }

  /** True if the header that was read last is that of this text. */
  #isText(key: string): boolean {
    if (this.#type !== ValueType.Text || this.#size !== key.length) return false
    for (let i = 0; i < key.length; i++) {
      if (this.#octet(this.#payload + i) !== key.charCodeAt(i)) return false
    }
    return true
  }

  /** Reads the header at `offset`; follows one pointer. A pointer must not lead to another pointer. */
  #resolve(offset: number): void {
    this.#readHeader(offset)
    if (this.#type !== ValueType.Pointer) return
    this.#readHeader(this.#size)
    if (this.#type === ValueType.Pointer) throw this.#corrupt(offset, 'a pointer to a pointer')
  }

  /** Returns the offset behind the value at `offset`; does not follow pointers. */
  #skip(offset: number, depth: number): number {
    if (++this.#skipped > VALUES_MAX) throw this.#corrupt(offset, 'an entry with too many values')
    if (--this.#skipsLeft < 0) throw this.#corrupt(offset, 'too many entries that share values')
    this.#readHeader(offset)
    const type = this.#type
    if (type !== ValueType.Map && type !== ValueType.Array) {
      const isInHeader = type === ValueType.Pointer || type === ValueType.Boolean
      return isInHeader ? this.#payload : this.#payload + this.#size
    }
    if (depth === DEPTH_MAX) throw this.#corrupt(offset, 'values nested too deep')
    const values = this.#boundedSize() * (type === ValueType.Map ? 2 : 1)
    let at = this.#payload
    for (let i = 0; i < values; i++) at = this.#skip(at, depth + 1)
    return at
  }

  /** Returns the size of the map or array whose header was read last. */
  #boundedSize(): number {
    if (this.#size > VALUES_MAX) {
      throw this.#corrupt(this.#payload, 'an entry with too many values')
    }
    return this.#size
  }

  #readHeader(offset: number): void {
    const control = this.#octet(offset)
    let next = offset + 1
    let type = control >> 5
    if (type === ValueType.Pointer) {
      this.#readPointer(control, next)
      return
    }
    // The next octet contains types above 7.
    if (type === 0) {
      const extended = this.#octet(next++)
      if (extended !== 0) type = TYPE_BASE + extended
    }
    let size = control & 0x1f
    if (size >= 29) {
      const more = size - 28
      size = [29, 285, 65_821][more - 1]!
      let extra = 0
      for (let i = 0; i < more; i++) extra = extra * 256 + this.#octet(next++)
      size += extra
    }
    this.#type = type
    this.#payload = next
    this.#size = size
    this.#checkHeader(offset)
  }

  #checkHeader(offset: number): void {
    const type = this.#type
    const size = this.#size
    const most = SIZE_MOST[type] ?? NONE
    // Containers (12) and end markers (13) occur in writers' caches, never in a file.
    if (most === NONE) {
      throw this.#corrupt(offset, `a value of the unknown type ${type}`)
    }
    if (size > most || size < SIZE_LEAST[type]!) {
      throw this.#corrupt(offset, `a value of type ${type} with the invalid size ${size}`)
    }
    if (type === ValueType.Map || type === ValueType.Array || type === ValueType.Boolean) return
    if (this.#payload + size > this.#octets)
      throw this.#corrupt(offset, 'a value that ends after the data')
  }

  /** Reads a pointer and sets `#size` to its target. */
  #readPointer(control: number, offset: number): void {
    const sizeClass = (control >> 3) & 3
    let target = sizeClass === 3 ? 0 : control & 7
    for (let i = 0; i <= sizeClass; i++) target = target * 256 + this.#octet(offset + i)
    this.#type = ValueType.Pointer
    this.#payload = offset + sizeClass + 1
    this.#size = target + POINTER_BASE[sizeClass]!
  }

  #octet(offset: number): number {
    if (offset >= this.#octets) throw this.#corrupt(offset, 'a value that ends after the data')
    return this.#bytes[this.#base + offset]!
  }

  #corrupt(offset: number, what: string): Error {
    return mmdbFault(
      this.#file,
      `is corrupt: its data has ${what}, at octet ${this.#base + offset}`,
    )
  }
}

function isInteger(type: number): boolean {
  return (
    type === ValueType.Uint32 ||
    type === ValueType.Uint16 ||
    (type >= ValueType.Int32 && type <= ValueType.Uint128)
  )
}
