import type { Ask } from './transcript.ts'
import { type QuerySpec, wireQuery } from './wire.ts'

export const A = 1
export const NS = 2
export const CNAME = 5
export const SOA = 6
export const PTR = 12
export const MX = 15
export const TXT = 16
export const AAAA = 28
export const SRV = 33
export const DS = 43
const IXFR = 251
export const AXFR = 252
export const ANY = 255
export const CHAOS = 3

const NSID = 3
const SUBNET = 8
const COOKIE = 10
const KEEPALIVE = 11
const PADDING = 12

/** Of the kind that every server has to cope with. */
export const EDNS = { payload: 1232 }

export function ask(name: string, type = A, more: Partial<QuerySpec> & Partial<Ask> = {}): Ask {
  const { to, draws, what, ...spec } = more
  const packet = wireQuery({ name, type, ...spec })
  const label = what ?? `${name} ${type} ${JSON.stringify(spec)}`
  return { what: label, packet, ...(to && { to }), ...(draws && { draws }) }
}

export function subnet(family: number, bits: number, address: readonly number[], scope = 0) {
  return { options: [[SUBNET, Buffer.from([0, family, bits, scope, ...address])]] as const }
}

const header = (id: number, flags: number, counts: readonly number[], rest: readonly number[]) =>
  Buffer.from([
    id >> 8,
    id & 0xff,
    flags >> 8,
    flags & 0xff,
    ...counts.flatMap((n) => [0, n]),
    ...rest,
  ])

/** Everything odd that can be asked for `name`. */
export function unusualQueries(name: string): Ask[] {
  const plain = Buffer.from(wireQuery({ name, id: 7 }))
  const withEdns = (options: readonly (readonly [number, Uint8Array])[]) => ({ edns: { options } })
  const cookie = Buffer.from('0123456789abcdef', 'hex')
  const raw = (what: string, packet: Uint8Array): Ask => ({ what, packet })
  const opt = [0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 0]
  return [
    ask(name, A, { edns: EDNS }),
    ask(name.toUpperCase(), A, { edns: { ...EDNS, flags: 0x8000 }, what: 'DO, upper case' }),
    ask(name, A, { edns: { version: 1 } }),
    ask(name, A, { edns: { payload: 0 } }),
    ask(name, A, { edns: { payload: 65_535, flags: 0xffff } }),
    ask(name, A, withEdns([[NSID, Buffer.alloc(0)]])),
    ask(name, A, withEdns([[COOKIE, cookie]])),
    ask(name, A, withEdns([[COOKIE, Buffer.concat([cookie, cookie])]])),
    ask(name, A, withEdns([[COOKIE, cookie.subarray(1)]])),
    ask(name, A, withEdns([[KEEPALIVE, Buffer.alloc(0)]])),
    ask(name, A, withEdns([[KEEPALIVE, Buffer.alloc(2)]])),
    ask(name, A, withEdns([[65_001, Buffer.from('whatever')]])),
    ask(name, A, { edns: subnet(1, 24, [192, 0, 2]) }),
    ask(name, A, { edns: subnet(1, 0, []) }),
    ask(name, A, { edns: subnet(2, 56, [0x20, 1, 0xd, 0xb8, 0, 0, 0]) }),
    ask(name, A, { edns: subnet(1, 24, [192, 0, 2], 24), what: 'subnet with a scope' }),
    ask(name, A, { edns: subnet(1, 33, [192, 0, 2, 0, 0]), what: 'subnet too long' }),
    ask(name, A, { edns: subnet(1, 20, [192, 0, 2]), what: 'subnet with bits behind its end' }),
    ask(name, A, { edns: subnet(7, 8, [1]), what: 'subnet of no family' }),
    ask(name, A, { rrclass: CHAOS }),
    ask(name, A, { rrclass: 4 }),
    ask(name, A, { rrclass: 255 }),
    ask(name, A, { flags: 0x0000, what: 'no RD' }),
    ask(name, A, { flags: 0x0130, what: 'AD, CD' }),
    ask(name, A, { flags: 0x07ff, what: 'every flag' }),
    ...[1, 2, 4, 5, 6, 15].map((code) =>
      ask(name, A, { flags: code << 11, what: `opcode ${code}` }),
    ),
    ask(name, A, { flags: 0x8100, what: 'a response' }),
    ask(name, ANY),
    ask(name, AXFR),
    ask(name, IXFR),
    ask(name, 65_280),
    ask('.', NS),
    ask('nobody.invalid', A),
    ask('version.bind', TXT, { rrclass: CHAOS }),
    raw('nothing', Buffer.alloc(0)),
    raw('one octet', Buffer.from([1])),
    raw('11 octets', plain.subarray(0, 11)),
    raw('a header alone', header(9, 0x100, [1, 0, 0, 0], [])),
    raw('no question', header(9, 0x100, [0, 0, 0, 0], [])),
    raw(
      'two questions',
      header(9, 0x100, [2, 0, 0, 0], [...plain.subarray(12), ...plain.subarray(12)]),
    ),
    raw('a cut name', plain.subarray(0, 15)),
    raw('a cut type', plain.subarray(0, plain.length - 3)),
    raw('a pointer as name', header(9, 0x100, [1, 0, 0, 0], [0xc0, 12, 0, 1, 0, 1])),
    raw('octets behind the end', Buffer.concat([plain, Buffer.alloc(100, 7)])),
    raw('two OPT', header(9, 0x100, [1, 0, 0, 2], [...plain.subarray(12), ...opt, ...opt])),
    raw(
      'three records',
      header(9, 0x100, [1, 0, 0, 3], [...plain.subarray(12), ...opt, ...opt, ...opt]),
    ),
    raw('OPT as an answer', header(9, 0x100, [1, 1, 0, 0], [...plain.subarray(12), ...opt])),
    raw('a cut OPT', header(9, 0x100, [1, 0, 0, 1], [...plain.subarray(12), ...opt.slice(0, 7)])),
    ...[4096, 4097, 65_507].map((octets) =>
      raw(`${octets} octets`, Buffer.concat([plain, Buffer.alloc(octets - plain.length)])),
    ),
    ...[4000, 4090, 5000, 65_000].map((octets) =>
      ask(name, A, { ...withEdns([[PADDING, Buffer.alloc(octets)]]), what: `padding ${octets}` }),
    ),
    raw(
      'a label of 64',
      header(9, 0x100, [1, 0, 0, 0], [64, ...new Array(64).fill(97), 0, 0, 1, 0, 1]),
    ),
    raw(
      '127 labels',
      header(9, 0x100, [1, 0, 0, 0], [...new Array(127).fill([1, 97]).flat(), 0, 0, 1, 0, 1]),
    ),
    raw(
      '128 labels',
      header(9, 0x100, [1, 0, 0, 0], [...new Array(128).fill([1, 97]).flat(), 0, 0, 1, 0, 1]),
    ),
  ]
}
