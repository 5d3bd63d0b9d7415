import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { check } from '../../src/cli/check.ts'
import { recordOutput } from '../support/recorded-output.ts'
import { root } from '../support/server.ts'

/** What CoreDNS's binary does with numbers, durations and selectors as arguments. */
interface Oracle {
  readonly coredns: string
  readonly numbers: readonly string[]
  readonly durations: readonly string[]
  readonly selectors: readonly string[]
  readonly rows: readonly {
    /** `{V}` stands for the value. */
    readonly directives: string
    readonly values: 'numbers' | 'durations' | 'selectors'
    /** The values with which CoreDNS starts. */
    readonly accepted: readonly string[]
    /** The values with which Sextant does the opposite. */
    readonly different?: readonly string[]
    readonly why?: string
  }[]
}

const path = join(root, 'test/corefile/coredns-values.json')
const oracle: Oracle = JSON.parse(readFileSync(path, 'utf8'))

t.test('arguments are accepted and rejected as in CoreDNS', async (t) => {
  const directory = t.testdir({
    db: '@ 60 SOA ns1 root 1 2 3 4 5\n@ 60 NS ns1\nns1 60 A 192.0.2.1\n',
    weights: 'www.example.org\n192.0.2.1 3\n',
  })
  const file = join(directory, 'Corefile')
  for (const { directives, values, accepted, different = [] } of oracle.rows) {
    const blocks = oracle[values].map((value, i) => {
      return `z${i}.example {\nbind 127.0.0.1\nroot ${directory}\n${directives.replaceAll('{V}', value)}\n}\n`
    })
    writeFileSync(file, blocks.join(''))
    const { output, errors } = recordOutput()
    await check(['-conf', file, '-p', '1053'], output)
    const lines = errors.map((error) => Number(/Corefile:(\d+)/.exec(error)?.[1]))
    const blockLines = blocks[0]!.split('\n').length - 1
    const rejected = new Set(lines.map((line) => Math.floor((line - 1) / blockLines)))
    const got = oracle[values].filter((_, i) => !rejected.has(i))
    const want = oracle[values].filter((value) => {
      return accepted.includes(value) !== different.includes(value)
    })
    t.strictSame(got, want, directives)
  }
})
