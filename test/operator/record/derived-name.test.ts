import t from 'tap'
import { derivedName } from '../../../src/operator/record/derived-name.ts'
import { shortHash } from '../../../src/operator/record/short-hash.ts'

t.test('a derived record has the name of its record after its kind', (t) => {
  t.equal(derivedName('local', 'gw-api'), 'local-gw-api')
  t.equal(derivedName('merged', 'gw-api'), 'merged-gw-api')
  t.end()
})

t.test('a name that would be too long ends with the hash of the whole', (t) => {
  const fits = 'a'.repeat(247)
  t.equal(derivedName('local', fits), `local-${fits}`)
  const long = 'a'.repeat(248)
  t.equal(derivedName('local', long), `local-${'a'.repeat(238)}-${shortHash(long)}`)
  t.equal(derivedName('local', long).length, 253)
  t.not(derivedName('local', `${long}b`), derivedName('local', `${long}c`))
  t.end()
})

t.test('the front of a name that is cut ends with a letter or digit', (t) => {
  const long = `${'a'.repeat(230)}.......-${'b'.repeat(20)}`
  t.equal(derivedName('local', long), `local-${'a'.repeat(230)}-${shortHash(long)}`)
  t.end()
})
