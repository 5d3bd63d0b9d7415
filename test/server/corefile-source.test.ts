import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { loadCorefile } from '../../src/server/corefile-source.ts'

const options = { env: {}, directiveNames: ['whoami'], warn: () => {} }

t.test('the digest of a file follows its tokens', async (t) => {
  const directory = t.testdir({ Corefile: '. {\n whoami\n}\n' })
  const path = join(directory, 'Corefile')
  const { view } = loadCorefile({ kind: 'file', path }, 53, options)
  const digestOf = (text: string) => {
    writeFileSync(path, text)
    return view.digest()
  }
  t.equal(digestOf('.   {\n whoami # a comment\n}\n'), view.loadedDigest)
  t.not(digestOf('. {\n\n whoami\n}\n'), view.loadedDigest, 'lines count')
  // The reload must try it and fail: its metric reports the failure.
  t.not(digestOf('. {\n bogus\n}\n'), view.loadedDigest, 'an unknown directive is a change')
  t.throws(() => digestOf('. {\n whoami\n'), { message: /Unexpected/ }, 'what can not be parsed')
})

t.test('a Corefile has its bound, whatever it is', async (t) => {
  const path = join(t.testdir({ Corefile: '#'.repeat(16 * 1024 * 1024 + 1) }), 'Corefile')
  for (const given of [path, '/dev/zero']) {
    t.throws(() => loadCorefile({ kind: 'file', path: given }, 53, options), {
      message: `cannot read Corefile ${given}: it is larger than 16777216 octets`,
    })
  }
})
