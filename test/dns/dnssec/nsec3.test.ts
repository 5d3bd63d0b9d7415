import { createHash } from 'node:crypto'
import fc from 'fast-check'
import t from 'tap'
import { Nsec3Hasher } from '../../../src/dns/dnssec/nsec3.ts'
import { SHA1_OCTETS, Sha1 } from '../../../src/dns/dnssec/sha1.ts'
import { lowerName, scanName } from '../../../src/dns/name/name.ts'

const NAME_OCTETS_MAX = 255
const SALT_OCTETS_MAX = 255

/** Digests of one instance, one after the other: what one leaves in the buffer must not change the next. */
t.test('SHA-1 is that of node:crypto for every length', (t) => {
  const sha1 = new Sha1()
  const out = new Uint8Array(SHA1_OCTETS)
  const check = (input: Uint8Array): void => {
    sha1.input.set(input)
    sha1.digest(input.length)
    sha1.write(out, 0)
    const want = createHash('sha1').update(input).digest('hex')
    if (Buffer.from(out).toString('hex') !== want) throw new Error(`${input.length} octets`)
  }
  for (let octets = 0; octets <= NAME_OCTETS_MAX + SALT_OCTETS_MAX; octets++) {
    check(new Uint8Array(octets).fill(octets & 0xff))
  }
  fc.assert(fc.property(fc.uint8Array({ maxLength: NAME_OCTETS_MAX + SALT_OCTETS_MAX }), check))
  t.end()
})

/** RFC 5155 section 5, in the words of that section. */
function referenceLabel(name: Uint8Array, salt: Uint8Array, iterations: number): string {
  let digest: Uint8Array = name
  for (let i = 0; i <= iterations; i++) {
    digest = createHash('sha1').update(digest).update(salt).digest()
  }
  let bits = ''
  for (const octet of digest) bits += octet.toString(2).padStart(8, '0')
  return bits.replace(/.{5}/g, (five) => Number.parseInt(five, 2).toString(32))
}

function labelOf(hasher: Nsec3Hasher): string {
  return Buffer.from(hasher.label).toString('latin1', 1)
}

t.test('owner labels are those of RFC 5155 appendix A', (t) => {
  const hasher = new Nsec3Hasher()
  const parameters = Buffer.from('0100000c04aabbccdd', 'hex')
  const vectors: readonly (readonly [string, string])[] = [
    ['example.', '0p9mhaveqvm6t7vbl5lop2u3t2rp3tom'],
    ['a.example.', '35mthgpgcu1qg68fab165klnsnk3dpvl'],
    ['*.w.example.', 'r53bq7cc2uvmubfu5ocmm6pers9tk9en'],
  ]
  for (const [text, want] of vectors) {
    const name = lowerName(scanName(text)!)
    hasher.hash(name, 0, name.length, false, parameters, 0)
    t.equal(labelOf(hasher), want, text)
  }
  const w = lowerName(scanName('w.example.')!)
  hasher.hash(w, 0, w.length, true, parameters, 0)
  t.equal(labelOf(hasher), 'r53bq7cc2uvmubfu5ocmm6pers9tk9en', 'the wildcard of w.example.')
  t.end()
})

t.test('owner labels are those of a reference, whatever name, salt and iterations', (t) => {
  const hasher = new Nsec3Hasher()
  const octets = fc.uint8Array({ minLength: 1, maxLength: NAME_OCTETS_MAX })
  const salts = fc.uint8Array({ maxLength: SALT_OCTETS_MAX })
  const property = fc.property(octets, salts, fc.nat(300), (name, salt, iterations) => {
    const parameters = Uint8Array.from([
      ...[9, 9, 9, 1, 0, iterations >> 8, iterations & 0xff, salt.length],
      ...salt,
    ])
    hasher.hash(name, 0, name.length, false, parameters, 3)
    return labelOf(hasher) === referenceLabel(name, salt, iterations)
  })
  fc.assert(property, { numRuns: 50 })
  t.end()
})

t.test('a hasher that keeps hashes returns those of the name and the parameters at hand', (t) => {
  const hasher = new Nsec3Hasher()
  // Few of each: most calls meet a name that is kept, under these or under other parameters.
  const names = Array.from({ length: 100 }, (_, i) => lowerName(scanName(`n${i}.example.`)!))
  const parameters = ['0100000000', '0100000100', '010000000101', '0101000000']
  const calls = fc.tuple(fc.nat(names.length - 1), fc.nat(9), fc.boolean())
  const property = fc.property(fc.array(calls, { minLength: 100 }), (list) => {
    for (const [i, k, wildcard] of list) {
      const rdata = Buffer.from(parameters[k] ?? parameters[0]!, 'hex')
      const name = names[i]!
      hasher.hash(name, 0, name.length, wildcard, rdata, 0)
      const whole = wildcard ? Buffer.concat([Buffer.from([1, 0x2a]), name]) : name
      const want = referenceLabel(whole, rdata.subarray(5), rdata[3]!)
      if (labelOf(hasher) !== want) throw new Error(`${i} ${k} ${wildcard}`)
    }
  })
  fc.assert(property, { numRuns: 50 })
  t.end()
})
