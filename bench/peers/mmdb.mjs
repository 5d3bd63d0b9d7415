// Writes a GeoIP2-Country database of 57 088 networks (MaxMind DB File Format 2.0), so that every server answers
// from the same file and none has to be downloaded. gdnsd insists on this schema.

/** Places by continent; each /16 of the world is in one of them. */
const PLACES = [
  { continent: 'EU', country: 'GB' },
  { continent: 'NA', country: 'US' },
  { continent: 'EU', country: 'DE' },
  { continent: 'AS', country: 'JP' },
  { continent: 'NA', country: 'CA' },
]
/** What verification asks from. */
const FIXED = new Map([
  ['81.2', 0],
  ['8.8', 1],
])

/** Neighbours differ, so that no server gets away with a shallow tree. */
const placeOf = (a, b) => FIXED.get(`${a}.${b}`) ?? (a * 31 + b * 7 + (b >> 3)) % PLACES.length

const RECORD_BITS = 24
// IPv4 lies under ::/96 in a tree of IPv6.
const IPV4_OFFSET = 12

export function composeMmdb() {
  const nodes = [[undefined, undefined]]
  const data = []
  const at = PLACES.map(({ continent, country }) => {
    const start = data.length
    data.push(
      ...value({
        continent: { code: continent, geoname_id: 1, names: { en: continent } },
        country: { geoname_id: 2, iso_code: country, names: { en: country } },
      }),
    )
    return start
  })
  const zeros = new Array(IPV4_OFFSET).fill(0)
  for (let a = 1; a < 224; a++) {
    for (let b = 0; b < 256; b++) insert(nodes, [...zeros, a, b], at[placeOf(a, b)])
  }
  const record = (side) => {
    if (side === undefined) return nodes.length
    return side.node ?? nodes.length + 16 + side.data
  }
  const tree = nodes.flatMap((sides) => sides.flatMap((side) => bigEndian(record(side), 3)))
  const metadata = value({
    binary_format_major_version: uint16(2),
    binary_format_minor_version: uint16(0),
    build_epoch: uint64(1_700_000_000),
    database_type: 'GeoLite2-Country',
    description: { en: 'made for a comparison' },
    ip_version: uint16(6),
    languages: ['en'],
    node_count: nodes.length,
    record_size: uint16(RECORD_BITS),
  })
  const marker = [0xab, 0xcd, 0xef, ...Buffer.from('MaxMind.com')]
  return Uint8Array.from([...tree, ...new Array(16).fill(0), ...data, ...marker, ...metadata])
}

function insert(nodes, octets, data) {
  let node = 0
  const bits = octets.length * 8
  for (let depth = 0; depth < bits; depth++) {
    const bit = (octets[depth >> 3] >> (7 - (depth & 7))) & 1
    if (depth === bits - 1) {
      nodes[node][bit] = { data }
      return
    }
    if (nodes[node][bit] === undefined) {
      nodes[node][bit] = { node: nodes.length }
      nodes.push([undefined, undefined])
    }
    node = nodes[node][bit].node
  }
}

// libmaxminddb checks the exact integer types of the metadata.
const uint16 = (number) => ({ header: [(5 << 5) | 2], octets: bigEndian(number, 2) })
const uint64 = (number) => ({ header: [8, 9 - 7], octets: bigEndian(number, 8) })

function value(input) {
  if (input.header !== undefined) return [...input.header, ...input.octets]
  if (typeof input === 'string') return [...header(2, input.length), ...Buffer.from(input)]
  if (typeof input === 'number') return [...header(6, 4), ...bigEndian(input, 4)]
  if (Array.isArray(input)) return [input.length, 11 - 7, ...input.flatMap(value)]
  const pairs = Object.entries(input)
  return [
    ...header(7, pairs.length),
    ...pairs.flatMap(([key, part]) => [...value(key), ...value(part)]),
  ]
}

const header = (type, size) => [(type << 5) | size]

function bigEndian(number, octets) {
  return Array.from(
    { length: octets },
    (_, i) => Math.floor(number / 256 ** (octets - 1 - i)) % 256,
  )
}
