import { scanCidr } from '../../src/dns/text/address.ts'
import { Database } from '../../src/geo/mmdb/database.ts'

/**
 * A value of an MMDB entry. Numbers are written as uint32, or as double if they are no integers; a bigint as uint64, or
 * as uint128 if it is longer.
 */
export type MmdbValue =
  | string
  | number
  | bigint
  | boolean
  | readonly MmdbValue[]
  | { readonly [key: string]: MmdbValue }

export interface MmdbContent {
  readonly type?: string
  readonly ipVersion?: 4 | 6
  readonly recordBits?: 24 | 28 | 32
  /** Unix seconds. */
  readonly builtSeconds?: number
  /** By CIDR; a longer prefix replaces a part of a shorter one. */
  readonly networks: Readonly<Record<string, MmdbValue>>
}

/** A node of the search tree, or an entry (its position in the data section), or nothing. */
interface Node {
  sides: [Side, Side]
}
type Side = Node | number | undefined

/**
 * Writes a MaxMind DB (MaxMind DB File Format Specification 2.0) of a few networks. IPv4 networks go
 * under ::/96 in a tree of IPv6. Maps that occur twice are written once and pointed to, as MaxMind's
 * own writer does.
 */
export function composeMmdb(content: MmdbContent): Uint8Array {
  const {
    ipVersion = 6,
    recordBits = 24,
    type = 'Test-City',
    builtSeconds = 1_700_000_000,
  } = content
  const data = new DataWriter()
  const root: Node = { sides: [undefined, undefined] }
  const networks = Object.entries(content.networks).map(([text, value]) => {
    const cidr = scanCidr(text)
    if (cidr === undefined) throw new Error(`no network: ${text}`)
    const lifted = cidr.family === 1 && ipVersion === 6
    const bytes = lifted ? Uint8Array.of(...new Array(12).fill(0), ...cidr.bytes) : cidr.bytes
    return { bytes, bits: cidr.bits + (lifted ? 96 : 0), value }
  })
  networks.sort((a, b) => a.bits - b.bits)
  for (const { bytes, bits, value } of networks) insert(root, bytes, bits, data.entry(value))
  const nodes: Node[] = []
  number(root, nodes)
  const tree = composeTree(nodes, recordBits)
  const metadata = new DataWriter()
  metadata.value({
    binary_format_major_version: 2,
    binary_format_minor_version: 0,
    build_epoch: BigInt(builtSeconds),
    database_type: type,
    description: { en: 'made for a test' },
    ip_version: ipVersion,
    languages: ['en'],
    node_count: nodes.length,
    record_size: recordBits,
  })
  const marker = [0xab, 0xcd, 0xef, ...Buffer.from('MaxMind.com')]
  const parts = [tree, new Uint8Array(16), data.octets(), Uint8Array.from(marker)]
  return shared(Buffer.concat([...parts, metadata.octets()]))
}

/** A database opened on those octets. */
export function openMmdb(content: MmdbContent): Database {
  return new Database({ file: 'test.mmdb', bytes: composeMmdb(content) })
}

/** A copy in shared memory, which workers can be given. */
export function shared(octets: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(new SharedArrayBuffer(octets.length))
  bytes.set(octets)
  return bytes
}

function insert(root: Node, bytes: Uint8Array, bits: number, entry: number): void {
  let node = root
  for (let depth = 0; depth < bits; depth++) {
    const bit = ((bytes[depth >> 3]! >> (7 - (depth & 7))) & 1) as 0 | 1
    if (depth === bits - 1) {
      node.sides[bit] = entry
      return
    }
    const side = node.sides[bit]
    const next: Node = typeof side === 'object' ? side : { sides: [side, side] }
    node.sides[bit] = next
    node = next
  }
  node.sides = [entry, entry]
}

function number(node: Node, nodes: Node[]): void {
  nodes.push(node)
  for (const side of node.sides) if (typeof side === 'object') number(side, nodes)
}

function composeTree(nodes: readonly Node[], recordBits: number): Uint8Array {
  const numbers = new Map(nodes.map((node, i) => [node, i]))
  const tree = new Uint8Array((nodes.length * recordBits) / 4)
  for (const [i, node] of nodes.entries()) {
    const [zero, one] = node.sides.map((side) => {
      if (side === undefined) return nodes.length
      return typeof side === 'object' ? numbers.get(side)! : nodes.length + 16 + side
    })
    const pair =
      recordBits === 28
        ? [...low3(zero!), ((zero! >>> 24) << 4) | (one! >>> 24), ...low3(one!)]
        : [zero!, one!].flatMap((record) => bigEndian(record, recordBits / 8))
    tree.set(pair, i * pair.length)
  }
  return tree
}

function low3(record: number): number[] {
  return bigEndian(record & 0xffffff, 3)
}

function bigEndian(value: number, octets: number): number[] {
  return Array.from({ length: octets }, (_, i) => Math.floor(value / 256 ** (octets - 1 - i)) % 256)
}

/** Writes values of the data section. */
class DataWriter {
  readonly #octets: number[] = []
  readonly #maps = new Map<string, number>()

  octets(): Uint8Array {
    return Uint8Array.from(this.#octets)
  }

  /** Position of an entry of the search tree: a pointer would not do there. */
  entry(value: MmdbValue): number {
    const key = keyOf(value)
    const known = this.#maps.get(key)
    if (known !== undefined) return known
    // What it points to comes before it.
    const inner = typeof value === 'object' ? Object.values(value) : []
    for (const part of inner) if (isMap(part)) this.entry(part)
    const at = this.#octets.length
    this.#maps.set(key, at)
    this.value(value)
    return at
  }

  value(value: MmdbValue): void {
    if (typeof value === 'string') {
      const text = Buffer.from(value)
      this.#header(2, text.length)
      this.#octets.push(...text)
    } else if (typeof value === 'boolean') {
      this.#header(14, value ? 1 : 0)
    } else if (typeof value === 'number') {
      this.#number(value)
    } else if (typeof value === 'bigint') {
      const hex = value === 0n ? '' : value.toString(16)
      const octets = Buffer.from(hex.padStart(hex.length + (hex.length % 2), '0'), 'hex')
      this.#header(octets.length > 8 ? 10 : 9, octets.length)
      this.#octets.push(...octets)
    } else if (isMap(value)) {
      const pairs = Object.entries(value)
      this.#header(7, pairs.length)
      for (const [key, part] of pairs) {
        this.value(key)
        this.#part(part)
      }
    } else {
      this.#header(11, value.length)
      for (const part of value) this.#part(part)
    }
  }

  #part(value: MmdbValue): void {
    const known = isMap(value) ? this.#maps.get(keyOf(value)) : undefined
    if (known === undefined) this.value(value)
    else this.#pointer(known)
  }

  #number(value: number): void {
    if (!Number.isInteger(value) || value < 0) {
      const double = Buffer.alloc(8)
      double.writeDoubleBE(value)
      this.#header(3, 8)
      this.#octets.push(...double)
      return
    }
    const octets = bigEndian(value, 4)
    while (octets[0] === 0) octets.shift()
    this.#header(6, octets.length)
    this.#octets.push(...octets)
  }

  /** The smallest form that holds the target, so that each is met. */
  #pointer(target: number): void {
    if (target < 2048) this.#octets.push(0x20 | (target >> 8), target & 0xff)
    else if (target < 526_336) {
      const packed = target - 2048
      this.#octets.push(0x28 | (packed >> 16), (packed >> 8) & 0xff, packed & 0xff)
    } else this.#octets.push(0x38, ...bigEndian(target, 4))
  }

  #header(type: number, size: number): void {
    const [short, extra] =
      size < 29 ? [size, []] : size < 285 ? [29, [size - 29]] : [30, bigEndian(size - 285, 2)]
    if (type > 7) this.#octets.push(short, type - 7, ...extra)
    else this.#octets.push((type << 5) | short, ...extra)
  }
}

function keyOf(value: MmdbValue): string {
  return JSON.stringify(value, (_key, part) => (typeof part === 'bigint' ? `${part}n` : part))
}

function isMap(value: MmdbValue): value is { readonly [key: string]: MmdbValue } {
  return typeof value === 'object' && !Array.isArray(value)
}

/** An entry as GeoIP2 City has them. */
export function cityEntry(
  country: string,
  continent: string,
  subdivisions: readonly string[] = [],
): MmdbValue {
  return {
    city: { geoname_id: 1, names: { de: 'Stadt', en: `City in ${country}` } },
    continent: { code: continent, geoname_id: 2, names: { en: `Continent ${continent}` } },
    country: { iso_code: country, names: { en: `Country ${country}` }, geoname_id: 3 },
    location: { latitude: 52.2242, longitude: -0.1315, time_zone: 'Europe/London' },
    postal: { code: 'CB4' },
    ...(subdivisions.length > 0 && {
      subdivisions: subdivisions.map((iso_code) => ({ iso_code, names: { en: iso_code } })),
    }),
  }
}
