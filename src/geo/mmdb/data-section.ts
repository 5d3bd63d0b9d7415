import { mmdbFault } from './fault.ts'

/** Types of values, as their control octets number them. */
export const ValueType = {
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

/** Deepest nesting of maps and arrays; a City record has four levels. */
const DEPTH_MAX = 16
/** Most values of one entry; a City record has about 150. */
const VALUES_MAX = 10_000
/** Most values stepped over by one operation: `check` meets an inner value once per level. */
const SKIPS_MAX = VALUES_MAX * DEPTH_MAX
/** Added to a pointer by its size class. */
const POINTER_BASE = [0, 2048, 526_336, 0] as const

/**
 * The data section of a MaxMind DB, read in place: finds one value without decoding the others. Every
 * read is checked: a corrupt file throws InputError and never loops, recurses without end, or reads
 * beyond the section. Offsets count from the start of the section.
 */
export class DataSection {
  readonly #file: string
  readonly #bytes: Buffer
  readonly #base: number
  readonly #octets: number
  /** Values skipped by the operation under way. */
  #skipped = 0

  /** Header of the value that `#readHeader` read last. A map's size counts pairs, an array's items. */
  #type = 0
  #size = 0
  /** Where its payload starts; a pointer's target is in `#size`. */
  #payload = 0

  constructor(file: string, bytes: Uint8Array, base: number, octets: number) {
    this.#file = file
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.#base = base
    this.#octets = octets
  }

  /** Offset of the value under `key` of the map at `offset`; -1 if it is no map or has no such key. */
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

  /** Offset of the value at the end of a path of keys, or -1. */
  findPath(offset: number, ...keys: string[]): number {
    return keys.reduce((at, key) => (at === -1 ? -1 : this.find(at, key)), offset)
  }

  /** Offsets of the items of the array at `offset`; none if it is no array. */
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

  /** The text at `offset`; '' if there is none. */
  text(offset: number): string {
    if (offset === -1) return ''
    this.#resolve(offset)
    if (this.#type !== ValueType.Text) return ''
    const start = this.#base + this.#payload
    return this.#bytes.toString('utf8', start, start + this.#size)
  }

  /** The unsigned integer of up to 32 bits at `offset`; 0 if there is none. */
  uint(offset: number): number {
    if (offset === -1) return 0
    this.#resolve(offset)
    if (this.#type !== ValueType.Uint16 && this.#type !== ValueType.Uint32) return 0
    let value = 0
    for (let i = 0; i < this.#size; i++) value = value * 256 + this.#octet(this.#payload + i)
    return value
  }

  /**
   * Walks the whole entry at `offset`, pointers included, so that a decoder without limits of its own
   * can be let loose on it. Throws InputError if it has more values or levels than any real entry.
   */
  check(offset: number): void {
    this.#skipped = 0
    this.#check(offset, 0, 0)
  }

  /** Returns how many values it has seen. */
  #check(offset: number, depth: number, seen: number): number {
    this.#resolve(offset)
    if (seen >= VALUES_MAX) throw this.#corrupt('an entry with too many values')
    if (this.#type !== ValueType.Map && this.#type !== ValueType.Array) {
      return seen + 1
    }
    if (depth === DEPTH_MAX) throw this.#corrupt('values nested too deep')
    const values = this.#boundedSize() * (this.#type === ValueType.Map ? 2 : 1)
    let at = this.#payload
    let count = seen + 1
    for (let i = 0; i < values; i++) {
      count = this.#check(at, depth + 1, count)
      at = this.#skip(at, 0)
    }
    return count
  }

  #equalsText(offset: number, key: string): boolean {
    this.#resolve(offset)
    if (this.#type !== ValueType.Text || this.#size !== key.length) return false
    for (let i = 0; i < key.length; i++) {
      if (this.#octet(this.#payload + i) !== key.charCodeAt(i)) return false
    }
    return true
  }

  /** Reads the header at `offset`, following a pointer. A pointer never leads to another one. */
  #resolve(offset: number): void {
    this.#readHeader(offset)
    if (this.#type !== ValueType.Pointer) return
    this.#readHeader(this.#size)
    if (this.#type === ValueType.Pointer) throw this.#corrupt('a pointer to a pointer')
  }

  /** Offset behind the value at `offset`; pointers are not followed. */
  #skip(offset: number, depth: number): number {
    if (++this.#skipped > SKIPS_MAX) throw this.#corrupt('an entry with too many values')
    this.#readHeader(offset)
    const type = this.#type
    if (type !== ValueType.Map && type !== ValueType.Array) {
      return type === ValueType.Pointer ? this.#payload : this.#payload + this.#size
    }
    if (depth === DEPTH_MAX) throw this.#corrupt('values nested too deep')
    const values = this.#boundedSize() * (type === ValueType.Map ? 2 : 1)
    let at = this.#payload
    for (let i = 0; i < values; i++) at = this.#skip(at, depth + 1)
    return at
  }

  /** Size of the map or array whose header was read last. */
  #boundedSize(): number {
    if (this.#size > VALUES_MAX) throw this.#corrupt('an entry with too many values')
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
    if (type === 0) type = 7 + this.#octet(next++)
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
    // A boolean's size is its value; it has no payload.
    this.#size = type === ValueType.Boolean ? 0 : size
    this.#checkHeader(size)
  }

  #checkHeader(size: number): void {
    const type = this.#type
    if (type > ValueType.Float || type === 12 || type === 13) throw this.#corrupt('an unknown type')
    if (type === ValueType.Map || type === ValueType.Array || type === ValueType.Boolean) return
    if (this.#payload + size > this.#octets) throw this.#corrupt('a value beyond the end')
    const limit =
      type === ValueType.Uint16 ? 2 : type === ValueType.Uint32 || type === ValueType.Int32 ? 4 : 16
    const integer = type >= ValueType.Uint16 && type !== ValueType.Float
    if (integer && size > limit) throw this.#corrupt('an integer that is too long')
    const wanted = type === ValueType.Double ? 8 : type === ValueType.Float ? 4 : size
    if (size !== wanted) throw this.#corrupt('a number of the wrong length')
  }

  /** Leaves the target in `#size`. */
  #readPointer(control: number, offset: number): void {
    const sizeClass = (control >> 3) & 3
    let target = sizeClass === 3 ? 0 : control & 7
    for (let i = 0; i <= sizeClass; i++) target = target * 256 + this.#octet(offset + i)
    this.#type = ValueType.Pointer
    this.#payload = offset + sizeClass + 1
    this.#size = target + POINTER_BASE[sizeClass]!
  }

  #octet(offset: number): number {
    if (offset >= this.#octets) throw this.#corrupt('a value beyond the end')
    return this.#bytes[this.#base + offset]!
  }

  #corrupt(what: string): Error {
    return mmdbFault(this.#file, `is corrupt: its data section holds ${what}`)
  }
}
