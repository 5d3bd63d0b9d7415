import t from 'tap'
import { hashLabel, mixHash, NAME_HASH_SEED } from '../../../src/dns/name/hash.ts'
import { NameBuffer } from '../../../src/dns/name/hashed-name.ts'

/** A label of that many octets, from `first` on, with its length in front. */
function label(octets: number, first: number): Uint8Array {
  return Uint8Array.from({ length: octets + 1 }, (_, i) => (i === 0 ? octets : (first + i) & 0xff))
}

const isUpper = (octet: number): boolean => octet >= 0x41 && octet <= 0x5a
const lower = (octets: Uint8Array): Uint8Array => octets.map((c) => (isUpper(c) ? c + 0x20 : c))

t.test('a name buffer holds a name in lower case, with the hashes of its suffixes', async (t) => {
  for (let octets = 1; octets <= 63; octets++) {
    for (const first of [0, 0x3d, 0x58, 0xf0]) {
      const name = [...label(octets, first), ...label(3, 0x41), 0]
      const from = new Uint8Array(400)
      from.set(name, 7)
      const want = lower(Uint8Array.from(name))
      const buffers = [new NameBuffer(), new NameBuffer()]
      t.ok(buffers[0]!.set(from, 7, 7 + name.length), `${octets} octets from ${first}`)
      t.ok(buffers[1]!.setFrom(new DataView(from.buffer), 7))
      for (const buffer of buffers) {
        t.same(buffer.qname.subarray(0, buffer.qnameOctets), want)
        t.equal(buffer.labelCount, 2)
        t.equal(buffer.suffixHash[1], hashLabel(NAME_HASH_SEED, want, octets + 1))
        t.equal(buffer.suffixHash[0], hashLabel(buffer.suffixHash[1]!, want, 0))
      }
      t.notOk(buffers[0]!.set(from, 7, 6 + name.length), 'without its root')
    }
  }
})

t.test('names that look alike spread over a table', async (t) => {
  const slots = new Uint32Array(4096)
  const names = 4096
  for (let i = 0; i < names; i++) {
    const name = Buffer.from(`_n${i}`)
    name[0] = name.length - 1
    slots[mixHash(hashLabel(NAME_HASH_SEED, name, 0)) & 4095]! += 1
  }
  // Thrown at random, a share of 1/e stays empty, and no slot gets more than a few.
  const empty = slots.filter((count) => count === 0).length / slots.length
  t.ok(Math.abs(empty - 1 / Math.E) < 0.03, `${empty} of the slots are empty`)
  t.ok(Math.max(...slots) <= 9)
})

t.test('the order of labels counts, and where one ends', async (t) => {
  const names = ['1a1b', '1b1a', '2ab', '1a', '1b', '3a1b', '2a1']
  const hashes = names.map((text) => {
    const bytes = Buffer.from(text)
    const starts: number[] = []
    for (let at = 0; at < bytes.length; at += bytes[at]! + 1) {
      bytes[at]! -= 0x30
      starts.push(at)
    }
    return starts.reduceRight((hash, at) => hashLabel(hash, bytes, at), NAME_HASH_SEED)
  })
  t.equal(new Set(hashes).size, names.length)
})
