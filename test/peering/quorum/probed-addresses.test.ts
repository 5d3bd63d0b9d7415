import t from 'tap'
import { findProbed } from '../../../src/peering/quorum/probed-addresses.ts'
import type { ProbeAt } from '../../../src/records/health-check.ts'

type Given = readonly (readonly [address: string, site: string, probeAt?: ProbeAt])[]

function find(given: Given): readonly string[] {
  const foreign = new Map<string, { site: string; endpoint: { probeAt: ProbeAt | undefined } }[]>()
  for (const [address, site, probeAt] of given) {
    foreign.set(address, [...(foreign.get(address) ?? []), { site, endpoint: { probeAt } }])
  }
  return findProbed(foreign).map(({ address, probeAt }) => {
    return probeAt === undefined ? address : `${address} at ${probeAt.address}:${probeAt.port}`
  })
}

t.test('each site has an equal part of the first addresses', async (t) => {
  const given: Given = [
    ['192.0.2.1', 'a'],
    ['192.0.2.3', 'a'],
    ['192.0.2.2', 'a'],
    ['198.51.100.1', 'b'],
    ['198.51.100.2', 'b'],
  ]
  const want = ['192.0.2.1', '198.51.100.1', '192.0.2.2', '198.51.100.2', '192.0.2.3']
  t.strictSame(find(given), want)
  t.strictSame(find([...given].reverse()), want, 'in any order')
})

t.test('an address is probed where its site probes it', async (t) => {
  t.strictSame(find([['192.0.2.1', 'a', { address: '', port: 8081 }]]), ['192.0.2.1 at :8081'])
  const [one, two] = [
    { address: '198.51.100.1', port: 80 },
    { address: '198.51.100.1', port: 443 },
  ]
  const want = ['192.0.2.1 at 198.51.100.1:80']
  t.strictSame(
    find([
      ['192.0.2.1', 'a', one],
      ['192.0.2.1', 'b', two],
    ]),
    want,
  )
  t.strictSame(
    find([
      ['192.0.2.1', 'b', two],
      ['192.0.2.1', 'a', one],
    ]),
    want,
  )
})

t.test('a public address is not probed at a place that this site may not mean', async (t) => {
  const table: readonly (readonly [string, string, boolean])[] = [
    ['192.0.2.1', '10.0.0.1', false],
    ['192.0.2.1', '::ffff:10.0.0.1', false],
    ['192.0.2.1', '64:ff9b::10.0.0.1', false],
    ['192.0.2.1', 'fd00::1', false],
    ['192.0.2.1', 'health.example.com', false],
    ['gw.example.com', '10.0.0.1', false],
    ['10.0.0.1', '10.0.0.2', true],
    ['10.0.0.1', 'health.example.com', true],
    ['192.0.2.1', '192.0.2.2', true],
    ['192.0.2.1', '2001:db8::1', true],
  ]
  for (const [address, at, isProbed] of table) {
    const found = find([[address, 'a', { address: at, port: 0 }]])
    t.equal(found.length, isProbed ? 1 : 0, `${address} at ${at}`)
  }
})
