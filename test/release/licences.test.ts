import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { run } from '../support/peer.ts'
import { root } from '../support/server.ts'

const CODE = `
import { makeLicences } from './.ci/release/licences.mjs'
const [out] = process.argv.slice(1)
const packages = new Map([['amd64', [{ name: 'libc6', version: '2.36', arch: 'amd64' }]]])
const programs = [{ base: out, node: out, nodeVersion: '24.0.0' }]
await makeLicences({ out, version: '0.1.0', programs, images: [{ packages }] })
`

/** Lists the licences of a program that has three packages, one of them with `license`. */
async function list(t: Test, license: unknown) {
  const describe = (name: string, license: unknown) => ({
    'package.json': JSON.stringify({ name, version: '1.0.0', license }),
  })
  const out = t.testdir({
    LICENSE: 'Node.js is licensed for use as follows:\n',
    sextant: {
      ...describe('sextant', 'Apache-2.0'),
      node_modules: {
        one: {
          ...describe('one', 'MIT'),
          // Not a package, but how files of the package are to be read.
          dist: { 'package.json': '{"type":"commonjs"}' },
          node_modules: { '@scope': { two: describe('@scope/two', license) } },
        },
      },
    },
  })
  const code = ['--input-type=module', '-e', CODE, out]
  return { out, ...(await run('env', ['-C', root, process.execPath, ...code])) }
}

t.test('all licences are listed', async (t) => {
  const { out, code, stderr } = await list(t, 'ISC')
  t.equal(code, 0, stderr)
  const lines = readFileSync(join(out, 'sextant-0.1.0-licences.txt'), 'utf8').split('\n')
  const want = ['@scope/two 1.0.0: ISC', 'one 1.0.0: MIT', 'sextant 1.0.0: Apache-2.0']
  t.strictSame(
    lines.filter((line) => line.includes(' 1.0.0')),
    want,
  )
  for (const want of [/^node 24\.0\.0: MIT/, /^libc6 2\.36$/])
    t.ok(lines.some((line) => want.test(line)))
})

for (const license of ['GPL-3.0-only', 'SEE LICENSE IN LICENSE.md', undefined, '']) {
  t.test(`a package with the licence ${license} fails the release`, async (t) => {
    const { code, stderr } = await list(t, license)
    t.not(code, 0)
    t.match(stderr, `@scope/two 1.0.0 has the licence ${JSON.stringify(license)}, which is not in`)
  })
}
