import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { check } from '../../src/cli/check.ts'
import { recordOutput } from '../support/recorded-output.ts'
import { root } from '../support/server.ts'

// Long: it checks hundreds of Corefiles as the command does.

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
  /** Zone files, with the servers that load them: CoreDNS, BIND 9.18, Knot DNS 3.2 and NSD 4.6. */
  readonly zones: readonly {
    readonly what: string
    readonly zone: string
    readonly acceptedBy: readonly string[]
    /** Where Sextant does the opposite of CoreDNS. */
    readonly why?: string
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

t.test('zone files that CoreDNS loads are loaded, and others are rejected', async (t) => {
  t.testdir({ 'inc.zone': 'q A 192.0.2.1\n' })
  const corefile = `z.example {\nroot ${t.testdirName}\nfile db\n}\n`
  for (const { what, zone, acceptedBy, why } of oracle.zones) {
    writeFileSync(join(t.testdirName, 'db'), zone)
    const want = acceptedBy.includes('coredns') === (why === undefined)
    t.equal(await isAccepted(t, corefile), want, why === undefined ? what : `${what}: ${why}`)
  }
})
