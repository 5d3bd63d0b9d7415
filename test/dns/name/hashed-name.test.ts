import fc from 'fast-check'
import t from 'tap'
import { equalHashedNames, NameBuffer } from '../../../src/dns/name/hashed-name.ts'
import { nameKey } from '../../../src/dns/name/name.ts'
import { question, text, wire } from '../../support/zone-names.ts'

t.test('a name set from wire equals the query that asks for it', async (t) => {
  const names = ['.', 'org.', 'www.example.org.', `${'a.'.repeat(127)}`]
  for (const name of names) {
    const buffer = new NameBuffer()
    const bytes = wire(name.toUpperCase())
    t.ok(buffer.set(bytes, 0, bytes.length))
    const query = question(name, 1)
    t.ok(equalHashedNames(buffer, query), name)
    t.equal(buffer.labelCount, query.labelCount)
    t.same(buffer.suffixHash, query.suffixHash)
    const keyed = new NameBuffer()
    keyed.setKey(nameKey(bytes))
    t.ok(equalHashedNames(keyed, query), 'also from its key')
  }
})

t.test('invalid names are refused', async (t) => {
  const cases: { name: string; given: readonly number[] }[] = [
    { name: 'nothing', given: [] },
    { name: 'a label that is cut off', given: [3, 97] },
    { name: 'no root', given: [1, 97] },
    { name: 'a pointer', given: [1, 97, 0xc0, 0] },
    { name: '256 octets', given: [...wire(`${'a.'.repeat(127)}`).slice(0, 254), 1, 97, 0] },
  ]
  for (const { name, given } of cases) {
    t.notOk(new NameBuffer().set(new Uint8Array(given), 0, given.length), name)
  }
})

t.test('substitution keeps the prefix and replaces the suffix, or is too long', async (t) => {
  const label = fc.string({ minLength: 1, maxLength: 40, unit: fc.constantFrom('a', 'b', '-') })
  const labels = fc.array(label, { maxLength: 4 })
  fc.assert(
    fc.property(labels, labels, labels, (prefix, owner, target) => {
      const name = question([...prefix, ...owner, ''].join('.') || '.', 1)
      const bytes = wire([...target, ''].join('.') || '.')
      const buffer = new NameBuffer()
      const want = [...prefix, ...target, ''].join('.') || '.'
      const fits = wire(want).length <= 255
      if (buffer.setSubstituted(name, prefix.length, bytes, 0, bytes.length) !== fits) return false
      return !fits || (text(buffer.qname) === want && equalHashedNames(buffer, question(want, 1)))
    }),
    { numRuns: 500, seed: 3 },
  )
  t.pass()
})
