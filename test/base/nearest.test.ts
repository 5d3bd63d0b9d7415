import fc from 'fast-check'
import t from 'tap'
import { didYouMean, nearestName } from '../../src/base/nearest.ts'

const NAMES = ['endpoints', 'healthCheck', 'rootHost', 'recordTTL', 'weight', 'tls', 'a']

const TABLE: readonly (readonly [word: string, nearest: string | undefined])[] = [
  ['endpoint', 'endpoints'],
  ['healthcheck', 'healthCheck'],
  ['rootHosts', 'rootHost'],
  ['wieght', 'weight'],
  ['ttl', 'recordTTL'],
  ['tsl', undefined],
  ['tl', undefined],
  ['xyz', undefined],
  ['', undefined],
  ['endpoints'.repeat(10_000), undefined],
]

t.test('the name that was probably meant', (t) => {
  for (const [word, nearest] of TABLE) t.equal(nearestName(word, NAMES), nearest, word)
  t.equal(didYouMean('endpoint', NAMES), '; did you mean endpoints?')
  t.equal(didYouMean('xyz', NAMES), '')
  t.end()
})

t.test('a name without one letter, and in any case, is found', (t) => {
  const names = NAMES.filter(({ length }) => length > 4)
  fc.assert(
    fc.property(fc.constantFrom(...names), fc.nat(), (name, seed) => {
      const at = seed % name.length
      const word = name.slice(0, at) + name.slice(at + 1)
      return nearestName(word, NAMES) === name && nearestName(name.toUpperCase(), NAMES) === name
    }),
  )
  t.end()
})
