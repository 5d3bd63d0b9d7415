import { join } from 'node:path'
import t, { type Test } from 'tap'
import { check } from '../../../src/cli/check.ts'
import { recordOutput } from '../../support/recorded-output.ts'

/** The faults of a Corefile with two blocks that have these properties of `egress`. */
async function faultsOf(t: Test, first: string, second: string): Promise<readonly string[]> {
  const block = (port: number, properties: string) => {
    return `.:${port} {\n whoami\n egress {\n  cluster 10.0.0.0/8\n  ${properties}\n }\n}\n`
  }
  const directory = t.testdir({ Corefile: block(53, first) + block(54, second) })
  const { output, errors } = recordOutput(directory)
  await check(['-conf', join(directory, 'Corefile')], output)
  return errors
}

t.test('blocks with the same options share one agent', async (t) => {
  const same = 'kubernetes n\n  port 53'
  t.strictSame(await faultsOf(t, same, same), [])
  const others = ['deny_rcode NXDOMAIN', 'on_timeout servfail', 'concurrency 9'].join('\n  ')
  t.strictSame(await faultsOf(t, same, `${same}\n  ${others}`), [])
  process.env.NODE_NAME = 'n'
  t.teardown(() => delete process.env.NODE_NAME)
  t.strictSame(await faultsOf(t, same, 'kubernetes\n  port 53'), [], 'the node of the environment')
})

t.test('agents with different options share nothing that they write', async (t) => {
  const base = 'kubernetes n\n  port 53\n  api off'
  const table: [string, string, string][] = [
    ['', 'min_ttl 9s', 'table sextant'],
    ['', 'cluster fd00::/8', 'table sextant'],
    ['nftables table a', 'nftables table a\n  zombies 7', 'table a'],
    ['state /s', 'state /s\n  nftables table b', 'state /s'],
    ['state /s', 'dry_run\n  state /s', 'state /s'],
    ['dry_run\n  api /a.sock', 'api /a.sock', 'api /a.sock'],
  ]
  for (const [first, second, output] of table) {
    const faults = await faultsOf(t, `${base}\n  ${first}`, `${base}\n  ${second}`)
    t.equal(faults.length, 1, second)
    t.match(faults[0], /^Corefile:1\d: plugin\/egress: /)
    t.match(faults[0], `${output} is in use at `)
    t.match(faults[0], /Corefile:3 with other options: write the same options, also `port`/)
  }
  t.match(
    await faultsOf(t, 'kubernetes n', 'kubernetes n'),
    [/table sextant is in use/],
    'the port of each block',
  )
  const apart = 'port 54\n  nftables table b\n  state /t\n  api /b.sock'
  t.strictSame(await faultsOf(t, `${base}\n  state /s`, `kubernetes n\n  ${apart}`), [])
})
