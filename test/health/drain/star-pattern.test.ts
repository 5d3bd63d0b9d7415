import fc from 'fast-check'
import t from 'tap'
import { StarPattern } from '../../../src/health/drain/star-pattern.ts'

t.test('matches as the regular expression of the same pattern', async () => {
  const letters = (alphabet: string) =>
    fc.string({ unit: fc.constantFrom(...alphabet), maxLength: 9 })
  const property = fc.property(letters('ab*'), letters('ab'), (pattern, text) => {
    const regExp = new RegExp(`^${pattern.replaceAll('*', '.*')}$`)
    return new StarPattern(pattern).matches(text) === regExp.test(text)
  })
  fc.assert(property, { seed: 1, numRuns: 5000 })
})

t.test('takes no more than linear time for a hostile pattern', async (t) => {
  const glob = new StarPattern(`${'a*'.repeat(5000)}b`)
  const start = process.cpuUsage()
  t.notOk(glob.matches('a'.repeat(100_000)))
  t.ok(process.cpuUsage(start).user < 1_000_000)
})

t.test('takes no time for the stars of a pattern', async (t) => {
  const [long, empty] = [new StarPattern('*e*'.repeat(3000)), new StarPattern('*'.repeat(10_000))]
  const start = process.cpuUsage()
  for (let i = 0; i < 100_000; i++) {
    if (long.matches('host.k.example.com') || !empty.matches('host.k.example.com')) t.fail()
  }
  t.ok(process.cpuUsage(start).user < 1_000_000)
  t.equal(long.longestPart, 'e')
})
