import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { check } from '../../src/cli/check.ts'
import { recordOutput } from '../support/recorded-output.ts'
import { root } from '../support/server.ts'

/** What CoreDNS's binary does with Corefiles: `serve` them, or exit with an error. */
interface Oracle {
  readonly coredns: string
  readonly accepted: readonly string[]
  readonly rejected: readonly string[]
  /** Where Sextant does the opposite; `coredns` is what CoreDNS does. */
  readonly different: readonly {
    readonly why: string
    readonly coredns: 'accept' | 'reject'
    readonly corefiles: readonly string[]
  }[]
}

const path = join(root, 'test/corefile/coredns-syntax.json')
const oracle: Oracle = JSON.parse(readFileSync(path, 'utf8'))

async function isAccepted(t: Test, corefile: string): Promise<boolean> {
  const file = join(t.testdirName, 'Corefile')
  writeFileSync(file, corefile)
  return (await check(['-conf', file, '-p', '1053'], recordOutput().output)) === 0
}

/** Those of `corefiles` that `check` accepts. One assertion for all: there are hundreds. */
async function acceptedOf(t: Test, corefiles: readonly string[]): Promise<string[]> {
  t.testdir({})
  const accepted: string[] = []
  for (const corefile of corefiles) if (await isAccepted(t, corefile)) accepted.push(corefile)
  return accepted
}

t.test('what CoreDNS accepts is accepted', async (t) => {
  t.strictSame(await acceptedOf(t, oracle.accepted), oracle.accepted)
})

t.test('what CoreDNS rejects is rejected', async (t) => {
  t.strictSame(await acceptedOf(t, oracle.rejected), [])
})

for (const { why, coredns, corefiles } of oracle.different) {
  t.test(`different from CoreDNS: ${why}`, async (t) => {
    t.strictSame(await acceptedOf(t, corefiles), coredns === 'reject' ? corefiles : [])
  })
}
