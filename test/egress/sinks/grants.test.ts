import t from 'tap'
import { scanName } from '../../../src/dns/name/name.ts'
import { scanCidr } from '../../../src/dns/text/address.ts'
import { AddressRules } from '../../../src/egress/names/address-rules.ts'
import { NAME_LIMITS_DEFAULT, NameStore } from '../../../src/egress/names/name-store.ts'
import { floorValidity } from '../../../src/egress/names/validity.ts'
import { diffGrants, firstEndOf, grantsOf, NO_GRANTS } from '../../../src/egress/sinks/grants.ts'

const validity = floorValidity({ floorMs: 0, graceMs: 0, ofChain: false })
const rules = new AddressRules([scanCidr('10.96.0.0/12')!], [])

function learn(
  store: NameStore,
  name: string,
  ttlSeconds: number,
  addresses: readonly string[],
): void {
  const endMs = ttlSeconds * 1000
  const seen = { firstSeenMs: 0, lastSeenMs: 0, endMs, chainEndMs: endMs }
  const rest = { ttlSeconds, chainTtlSeconds: ttlSeconds, server: '', chain: [], ...seen }
  const facts = addresses.map((address) => ({ family: 1 as const, address, ...rest }))
  const wire = scanName(name)!
  store.observe({ name: wire, family: 1, atMs: 0, server: '', kind: 'answer', facts }, ['s'])
}

t.test('grants are the valid addresses that no rule denies', async (t) => {
  const store = new NameStore(NAME_LIMITS_DEFAULT)
  const hostile = ['127.0.0.1', '169.254.169.254', '10.96.0.1', '0.0.0.0', '224.0.0.1']
  learn(store, 'b.example.', 10, ['192.0.2.2', '192.0.2.1', ...hostile])
  learn(store, 'a.example.', 30, ['192.0.2.1', '192.0.2.3'])
  const at = (nowMs: number) => grantsOf(store.namesOf('s'), validity, rules, nowMs)
  const grants = at(10_000)
  t.strictSame(
    [...grants.values()].map(({ address, untilMs, names }) => [address, untilMs, names.join()]),
    [
      ['192.0.2.1', 30_000, 'a.example.,b.example.'],
      ['192.0.2.2', 10_000, 'b.example.'],
      ['192.0.2.3', 30_000, 'a.example.'],
    ],
  )
  t.equal(firstEndOf(grants), 10_000)
  t.equal(firstEndOf(NO_GRANTS), Number.POSITIVE_INFINITY)
  t.strictSame([...at(10_001).keys()], ['192.0.2.1', '192.0.2.3'])
  t.equal(at(30_001).size, 0)
  const { added, changed, removed } = diffGrants(grants, at(10_001))
  t.strictSame([added.length, changed.length], [0, 1], 'a name of .1 is gone')
  t.strictSame(
    removed.map(({ address }) => address),
    ['192.0.2.2'],
  )
})
