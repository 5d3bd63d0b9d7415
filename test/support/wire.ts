/*
 * A second, independent and deliberately plain reading and writing of DNS messages, so that tests do
 * not check the wire code against itself. It throws on anything malformed.
 */

export interface WireRecord {
  readonly name: string
  readonly type: number
  readonly rrclass: number
  readonly ttl: number
  readonly rdata: Uint8Array
  /** The names inside the rdata of NS, CNAME, PTR, MX and SOA, decompressed. */
  readonly names: readonly string[]
}

export interface WireMessage {
  readonly id: number
  readonly flags: number
  readonly rcode: number
  readonly questions: readonly { name: string; type: number; rrclass: number }[]
  readonly answer: readonly WireRecord[]
  readonly authority: readonly WireRecord[]
  readonly additional: readonly WireRecord[]
  /** The OPT record, taken out of `additional`. */
  readonly opt: WireRecord | undefined
  /** Its options by code. */
  readonly options: ReadonlyMap<number, Uint8Array>
  /** Octets behind the last record. */
  readonly trailing: number
}

/** Wire form of a dotted name without escapes; case kept. */
export function wireName(text: string): Uint8Array {
  const labels = text.split('.').filter((label) => label !== '')
  return Buffer.concat([
    ...labels.map((label) => Buffer.concat([Buffer.from([label.length]), Buffer.from(label)])),
    Buffer.from([0]),
  ])
}

export interface QuerySpec {
  readonly id?: number
  readonly flags?: number
  readonly name: string | Uint8Array
  readonly type?: number
  readonly rrclass?: number
  /** An OPT record with these options: [code, data]. */
  readonly edns?: {
    readonly payload?: number
    readonly version?: number
    readonly flags?: number
    readonly options?: readonly (readonly [number, Uint8Array])[]
  }
}

function u16(value: number): Buffer {
  return Buffer.from([value >> 8, value & 0xff])
}

export function wireOpt(edns: NonNullable<QuerySpec['edns']>): Uint8Array {
  const options = Buffer.concat(
    (edns.options ?? []).map(([code, data]) => Buffer.concat([u16(code), u16(data.length), data])),
  )
  return Buffer.concat([
    Buffer.from([0]),
    u16(41),
    u16(edns.payload ?? 1232),
    Buffer.from([0, edns.version ?? 0]),
    u16(edns.flags ?? 0),
    u16(options.length),
    options,
  ])
}

export function wireQuery(spec: QuerySpec): Uint8Array {
  const name = typeof spec.name === 'string' ? wireName(spec.name) : spec.name
  const opt = spec.edns === undefined ? Buffer.alloc(0) : wireOpt(spec.edns)
  return Buffer.concat([
    u16(spec.id ?? 0x1234),
    u16(spec.flags ?? 0x0100),
    u16(1),
    u16(0),
    u16(0),
    u16(spec.edns === undefined ? 0 : 1),
    name,
    u16(spec.type ?? 1),
    u16(spec.rrclass ?? 1),
    opt,
  ])
}

class Reader {
  readonly bytes: Uint8Array
  at = 0

  constructor(bytes: Uint8Array) {
    this.bytes = bytes
  }

  u8(): number {
    const value = this.bytes[this.at++]
    if (value === undefined) throw new Error(`message ends at ${this.at - 1}`)
    return value
  }

  u16(): number {
    return this.u8() * 256 + this.u8()
  }

  u32(): number {
    return this.u16() * 65536 + this.u16()
  }

  name(): string {
    const labels: string[] = []
    let back = -1
    let low = this.at
    for (let octets = 1; ; ) {
      const length = this.u8()
      if (length >= 0xc0) {
        const target = ((length & 0x3f) << 8) | this.u8()
        if (back === -1) back = this.at
        if (target >= low) throw new Error(`pointer to ${target} does not point back`)
        low = target
        this.at = target
        continue
      }
      if (length > 63) throw new Error(`label type ${length >> 6}`)
      octets += length + 1
      if (octets > 256) throw new Error('name too long')
      if (length === 0) break
      let label = ''
      for (let i = 0; i < length; i++) label += String.fromCharCode(this.u8())
      labels.push(label)
    }
    if (back !== -1) this.at = back
    return `${labels.join('.')}.`
  }

  record(): WireRecord {
    const name = this.name()
    const type = this.u16()
    const rrclass = this.u16()
    const ttl = this.u32()
    const octets = this.u16()
    const start = this.at
    const end = start + octets
    if (end > this.bytes.length) throw new Error('rdata ends behind the message')
    const names: string[] = []
    if (type === 15) this.u16()
    if ([2, 5, 12, 15, 6].includes(type)) names.push(this.name())
    if (type === 6) {
      names.push(this.name())
      this.at += 20
    }
    if (names.length > 0 && this.at !== end) throw new Error('rdata is not as long as it says')
    this.at = end
    return { name, type, rrclass, ttl, rdata: this.bytes.slice(start, end), names }
  }
}

function readOptions(rdata: Uint8Array): Map<number, Uint8Array> {
  const options = new Map<number, Uint8Array>()
  const reader = new Reader(rdata)
  while (reader.at < rdata.length) {
    const code = reader.u16()
    const octets = reader.u16()
    if (reader.at + octets > rdata.length) throw new Error('option ends behind the record')
    options.set(code, rdata.slice(reader.at, reader.at + octets))
    reader.at += octets
  }
  return options
}

/** Reads a whole message; throws where it is malformed. */
export function readMessage(bytes: Uint8Array): WireMessage {
  const reader = new Reader(bytes)
  const id = reader.u16()
  const flags = reader.u16()
  const counts = [reader.u16(), reader.u16(), reader.u16(), reader.u16()] as const
  const questions = Array.from({ length: counts[0] }, () => ({
    name: reader.name(),
    type: reader.u16(),
    rrclass: reader.u16(),
  }))
  const section = (count: number) => Array.from({ length: count }, () => reader.record())
  const answer = section(counts[1])
  const authority = section(counts[2])
  const all = section(counts[3])
  const opts = all.filter((record) => record.type === 41)
  if (opts.length > 1) throw new Error('two OPT records')
  const opt = opts[0]
  const rcode = (flags & 0xf) | (opt === undefined ? 0 : (opt.ttl >>> 24) << 4)
  return {
    id,
    flags,
    rcode,
    questions,
    answer,
    authority,
    additional: all.filter((record) => record.type !== 41),
    opt,
    options: opt === undefined ? new Map() : readOptions(opt.rdata),
    trailing: bytes.length - reader.at,
  }
}
