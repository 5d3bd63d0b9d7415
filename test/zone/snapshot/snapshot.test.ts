import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { Random } from '../../../src/base/random.ts'
import { Response } from '../../../src/dns/message/response.ts'
import { encodeDirectory } from '../../../src/zone/image/signature-directory.ts'
import { ZoneImage } from '../../../src/zone/image/writer.ts'
import { ZoneAnswerer } from '../../../src/zone/lookup/answer.ts'
import { CHECKSUM_OCTETS, PREAMBLE_OCTETS } from '../../../src/zone/snapshot/format.ts'
import { readSnapshot, restoreSnapshot } from '../../../src/zone/snapshot/read.ts'
import { writeSnapshot } from '../../../src/zone/snapshot/write.ts'
import { runs } from '../../support/runs.ts'
import { question, wire } from '../../support/zone-names.ts'
import { printImage } from './zone-digest.ts'

const APEX = 'k.example.'
const FACTS = JSON.stringify({ some: 'facts', with: 'ümlauts' })

/** Rdata of an RRSIG of that type. */
function signature(type: number, octet: number): number[] {
  return [0, type, 13, 3, ...new Array(14).fill(0), ...wire('.'), octet]
}

/** A zone with something of everything: wildcards, cuts, large sets, empty non-terminals, signatures. */
function buildImage(names: number): ZoneImage {
  const image = new ZoneImage()
  const zone = image.addZone(wire(APEX))
  const put = (owner: string, type: number, rdata: readonly (readonly number[])[]): void => {
    const octets = rdata.map((one) => new Uint8Array(one))
    image.putRRset(zone, wire(owner), { type, ttlSeconds: 60, rdata: octets })
  }
  const ns = [...wire(`ns1.${APEX}`)]
  put(APEX, 6, [[...ns, ...wire('.'), ...new Array(20).fill(1)]])
  put(APEX, 2, [ns])
  put(`*.${APEX}`, 16, [[3, 97, 98, 99]])
  put(`cut.${APEX}`, 2, [ns])
  put(
    `ns1.${APEX}`,
    1,
    Array.from({ length: 20 }, (_, i) => [192, 0, 2, i]),
  )
  put(`a.b.c.${APEX}`, 5, [[...wire(`n1.${APEX}`)]])
  for (let i = 0; i < names; i++) put(`n${i}.${APEX}`, 1, [[10, 0, i >> 8, i & 255]])
  put(`signed.${APEX}`, 1, [
    [192, 0, 2, 1],
    [192, 0, 2, 2],
  ])
  image.putRRset(zone, wire(`signed.${APEX}`), {
    type: 46,
    ttlSeconds: 60,
    rdata: [1, 2, 3].map((octet) => Uint8Array.from(signature(1, octet))),
    steering: encodeDirectory([
      {
        type: 1,
        signaturesPerAnswer: 1,
        default: { signature: 1, ttlSeconds: 60, rdataIndexes: [1] },
        answers: [0, 1, 2],
      },
    ]),
  })
  image.publish()
  return image
}

function write(t: Test, names = 300): { path: string; image: ZoneImage; octets: Buffer } {
  const path = join(t.testdir({}), 'snapshot')
  const image = buildImage(names)
  writeSnapshot({ path, image: image.capture(), facts: FACTS })
  return { path, image, octets: readFileSync(path) }
}

/** Why a file is refused; '' = it is not. */
function reasonAgainst(path: string): string {
  const read = readSnapshot(path)
  if (read === undefined) return 'there is none'
  if (read.kind === 'refused') return read.reason
  const restored = restoreSnapshot(read, () => true)
  return 'kind' in restored ? restored.reason : ''
}

function load(path: string): ZoneImage | undefined {
  const read = readSnapshot(path)
  if (read?.kind !== 'read') return undefined
  const restored = restoreSnapshot(read, () => true)
  return 'kind' in restored ? undefined : new ZoneImage({}, restored)
}

t.test('a written snapshot is read back with its facts, and can be changed', (t) => {
  const { path, image } = write(t)
  const read = readSnapshot(path)
  t.match(read, { kind: 'read', facts: FACTS })
  const loaded = load(path)!
  t.strictSame(printImage(loaded.reader()), printImage(image.reader()))
  t.equal(loaded.stats.names, image.stats.names)
  t.equal(loaded.stats.liveOctets, image.stats.liveOctets)
  const zone = loaded.findZone(wire(APEX))!
  t.ok(loaded.removeRRset(zone, wire(`n7.${APEX}`), 1))
  loaded.publish()
  t.equal(printImage(loaded.reader()).length, printImage(image.reader()).length - 1)
  t.end()
})

t.test('the version that was captured is written, whatever is published after', (t) => {
  const { image, path } = write(t, 50)
  const captured = image.capture()
  const before = printImage(image.reader())
  const zone = image.findZone(wire(APEX))!
  for (let i = 0; i < 4000; i++) {
    const rdata = [new Uint8Array([192, 0, 2, i & 255])]
    image.putRRset(zone, wire(`n${i % 80}.${APEX}`), { type: 1, ttlSeconds: 1, rdata })
    if (i % 7 === 0) image.removeRRset(zone, wire(`n${i % 60}.${APEX}`), 1)
    image.publish()
  }
  image.compact()
  writeSnapshot({ path, image: captured, facts: FACTS })
  t.strictSame(printImage(load(path)!.reader()), before)
  t.end()
})

t.test('a file that was cut off is refused, wherever', (t) => {
  const { path, octets } = write(t, 3000)
  t.ok(octets.length > 40 * 4096, `${octets.length} octets`)
  const ends = [0, 1, 15, 16, 17, 20, 63, 64, 65, octets.length - 1]
  for (let end = octets.length - (octets.length % 4096); end > 0; end -= 4096) ends.push(end)
  for (const end of ends.sort((a, b) => b - a)) {
    truncateSync(path, end)
    const reason = reasonAgainst(path)
    if (!/^it is (incomplete|empty)/.test(reason)) t.fail(`${end} octets: ${reason}`)
  }
  writeFileSync(path, Buffer.concat([octets, Buffer.alloc(1)]))
  t.match(reasonAgainst(path), /^it is incomplete/, 'one octet too many')
  t.end()
})

t.test('a flipped bit is found, wherever', (t) => {
  const { path, octets } = write(t, 300)
  const random = new Random(5)
  const places = Array.from({ length: PREAMBLE_OCTETS + 100 }, (_, i) => i)
  for (let i = 0; i < 400; i++) places.push(random.below(octets.length))
  for (let i = 1; i <= CHECKSUM_OCTETS; i++) places.push(octets.length - i)
  for (const place of places) {
    const flipped = Buffer.from(octets)
    flipped[place]! ^= 1 << random.below(8)
    writeFileSync(path, flipped)
    const reason = reasonAgainst(path)
    if (!/^it(s| is) /.test(reason)) t.fail(`octet ${place}: ${reason}`)
  }
  t.end()
})

/** The same file with other octets in its arena, and a checksum that fits them. */
function forge(octets: Buffer, change: (arena: Buffer) => void): Buffer {
  const forged = Buffer.from(octets)
  const end = forged.length - CHECKSUM_OCTETS
  change(forged.subarray(PREAMBLE_OCTETS + Buffer.byteLength(FACTS), end))
  createHash('sha256').update(forged.subarray(0, end)).digest().copy(forged, end)
  return forged
}

/** Every kind of work that an image is put to. */
function exercise(image: ZoneImage): void {
  const reader = image.reader()
  printImage(reader)
  const answerer = new ZoneAnswerer(reader, { choose: () => {} })
  const labels = ['n1', 'n299', 'x', 'x.cut', 'c', 'a.b.c', 'b.c', 'ns1', '*', 'signed']
  const names = [APEX, ...labels.map((label) => `${label}.${APEX}`)]
  for (const name of names) {
    for (const type of [1, 2, 5, 6, 16, 46, 255]) {
      const query = question(name, type)
      query.dnssecOk = true
      const response = new Response()
      response.reset(query)
      try {
        answerer.answer(query, response, 0)
      } catch (error) {
        // As a bug in a handler: SERVFAIL for the one query. A SOA is what a zone may lack.
        if (!(error instanceof Error) || !/SOA/.test(error.message)) throw error
      }
    }
  }
  const zone = image.findZone(wire(APEX))
  if (zone === undefined) return
  const rdata = [new Uint8Array([1, 2, 3, 4])]
  image.putRRset(zone, wire(`new.n1.${APEX}`), { type: 1, ttlSeconds: 1, rdata })
  image.removeRRset(zone, wire(`n2.${APEX}`), 1)
  image.publish()
  image.compact()
  printImage(image.reader())
}

t.test('a forged file is refused, or does no harm', (t) => {
  const { path, octets } = write(t, 300)
  writeFileSync(
    path,
    forge(octets, () => {}),
  )
  t.equal(reasonAgainst(path), '', 'the forger knows the checksum')
  const random = new Random(11)
  let refused = 0
  for (let i = 0; i < runs(1500); i++) {
    const change = (arena: Buffer): void => {
      const at = random.below(arena.length / 4) * 4
      const values = [0, 1, 0xffffffff, 0x7fffffff, at / 4, random.below(arena.length / 4)]
      if (random.below(2) === 0) arena.writeUInt32LE(values[random.below(values.length)]!, at)
      else arena[at + random.below(4)]! ^= 1 << random.below(8)
    }
    writeFileSync(path, forge(octets, change))
    const image = load(path)
    if (image === undefined) refused++
    else exercise(image)
  }
  t.ok(refused > runs(500), `${refused} were refused`)
  t.end()
})

t.test('a directory of signatures that names what is missing is refused', (t) => {
  const { path, octets } = write(t, 10)
  // The directory: one type at word 2, A with one signature each, three answers, the default one.
  const directory = Buffer.from(Uint32Array.of(1, 2, 0x10001, 3, 1, 60, 1, 1, 0, 1, 2).buffer)
  for (const [word, value] of [
    [1, 9],
    [2, 0x20001],
    [2, 0x10003],
    [3, 4],
    [4, 3],
    [7, 2],
    [10, 3],
  ] as const) {
    const forged = forge(octets, (arena) => {
      const at = arena.indexOf(directory)
      if (at === -1) t.fail('no directory')
      arena.writeUInt32LE(value, at + word * 4)
    })
    writeFileSync(path, forged)
    t.match(reasonAgainst(path), /no zone image/, `word ${word}: ${value}`)
  }
  t.end()
})

t.test('a file that is not a snapshot of this version is refused with a reason', (t) => {
  const { path, octets } = write(t, 10)
  const preamble = (text: string): Buffer => {
    return Buffer.concat([Buffer.from(text.padEnd(PREAMBLE_OCTETS - 1)), octets.subarray(63)])
  }
  const table: readonly [name: string, content: Buffer | string, want: RegExp][] = [
    ['empty', '', /^it is empty$/],
    ['a text', 'apiVersion: v1\n', /^it is not a snapshot$/],
    ['an older version', preamble('sextant snapshot 1 1 2'), /^its version is "1", not 5$/],
    ['a newer version', preamble('sextant snapshot 6 x'), /^its version is "6", not 5$/],
    ['sizes that are none', preamble('sextant snapshot 5 -1 4'), /its first line is wrong/],
    ['a huge arena', preamble('sextant snapshot 5 2 4294967296'), /^it is incomplete/],
    ['huge facts', preamble('sextant snapshot 5 99999999999 4'), /its first line is wrong/],
    ['uneven', preamble('sextant snapshot 5 2 5'), /its first line is wrong/],
    ['another byte order', forge(octets, (arena) => arena.swap32()), /of this kind of machine/],
    ['no arena', forge(octets, (arena) => arena.fill(0)), /of this kind of machine/],
  ]
  for (const [name, content, want] of table) {
    writeFileSync(path, content)
    t.match(reasonAgainst(path), want, name)
  }
  t.end()
})

t.test('a directory, a pipe or a link is refused, and no link is written through', (t) => {
  const directory = t.testdir({ directory: {}, precious: 'kept' })
  const at = (name: string): string => join(directory, name)
  t.match(reasonAgainst(at('directory')), /^it is not a regular file/)
  execFileSync('mkfifo', [at('pipe')])
  t.match(reasonAgainst(at('pipe')), /^it is not a regular file/)
  symlinkSync('precious', at('link'))
  t.equal(reasonAgainst(at('link')), 'it is a symbolic link')
  t.match(reasonAgainst(join(directory, 'precious', 'x')), /ENOTDIR/)
  t.equal(reasonAgainst(at('nothing')), 'there is none')
  symlinkSync('precious', at('snapshot.next'))
  const job = { path: at('snapshot'), image: buildImage(1).capture(), facts: '' }
  writeSnapshot(job)
  t.equal(readFileSync(at('precious'), 'utf8'), 'kept')
  t.equal(reasonAgainst(at('snapshot')), '')
  t.notOk(existsSync(at('snapshot.next')))
  mkdirSync(at('other.next'))
  t.throws(() => writeSnapshot({ ...job, path: at('other') }), /directory|EISDIR/)
  t.throws(() => writeSnapshot({ ...job, path: at('nowhere/snapshot') }), /ENOENT/)
  t.notOk(readdirSync(directory).includes('other'))
  t.end()
})

t.test('the layout has the version that it had', (t) => {
  const { octets } = write(t, 5)
  // If this fails, files of before are no good any more: raise VERSION in format.ts, then this.
  t.equal(createHash('sha256').update(octets).digest('hex').slice(0, 16), '468d0d878fabc16d')
  t.end()
})
