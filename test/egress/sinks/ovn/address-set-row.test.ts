import t from 'tap'
import { scanCidr } from '../../../../src/dns/text/address.ts'
import { AddressRules } from '../../../../src/egress/learned/address-rules.ts'
import { addReferences, addressSetRow } from '../../../../src/egress/sinks/ovn/address-set-row.ts'
import { grantsOfPublished } from '../../../../src/egress/sinks/ovn/published-grants.ts'

const OWNER = 'default-network-controller'
const V4 = ['1.1.1.1', '2.2.2.2']
const V6 = '2001:0db8:85a3:0000:0000:8a2e:0370:7334'
const INSIDE = '10.128.0.1'

function rulesWith(...networks: string[]): AddressRules {
  return new AddressRules(
    networks.map((network) => scanCidr(network)!),
    [],
  )
}

t.test('a row has the name and the ids that OVN-Kubernetes gives it', async (t) => {
  const row = addressSetRow(OWNER, 'www.example.com.', 1, [])
  t.strictSame(row, {
    // As Go's hash/fnv computes it from the id.
    name: 'a4029995183407368296',
    externalIds: {
      'k8s.ovn.org/owner-controller': OWNER,
      'k8s.ovn.org/owner-type': 'EgressFirewallDNS',
      'k8s.ovn.org/name': 'www.example.com.',
      'ip-family': 'v4',
      'k8s.ovn.org/id': 'default-network-controller:EgressFirewallDNS:www.example.com.:v4',
    },
    addresses: [],
  })
  t.not(addressSetRow(OWNER, 'www.example.com.', 2, []).name, row.name)
  t.not(addressSetRow('sextant', 'www.example.com.', 1, []).name, row.name)
})

t.test('rows have the addresses of their family, without those of the cluster', async (t) => {
  const canonical = '2001:db8:85a3::8a2e:370:7334'
  const table: readonly [string, string, readonly string[], boolean, readonly string[]][] = [
    ['IPv4', '4', V4, true, V4],
    ['IPv6', '6', [V6], true, [canonical]],
    ['dual stack', '46', [...V4, V6], true, [...V4, canonical]],
    ['only IPv4 of both', '4', [...V4, V6], true, V4],
    ['only IPv6 of both', '6', [...V4, V6], true, [canonical]],
    ['an address of the cluster', '4', [INSIDE], true, []],
    ['the same without a network of the cluster', '4', [INSIDE], false, [INSIDE]],
    ['an address of the cluster and others', '4', [INSIDE, ...V4], true, V4],
    ['these without a network of the cluster', '4', [INSIDE, ...V4], false, [INSIDE, ...V4].sort()],
  ]
  for (const [what, families, ips, hasNetwork, expected] of table) {
    const rules = hasNetwork ? rulesWith('10.128.0.0/14') : rulesWith()
    const { addresses } = grantsOfPublished([{ dnsName: 'www.example.com.', ips }], rules)
    const rows = [...families].map((family) => {
      return addressSetRow(OWNER, 'www.example.com.', family === '4' ? 1 : 2, addresses)
    })
    t.strictSame(
      rows.flatMap(({ addresses }) => addresses),
      expected,
      what,
    )
  }
})

t.test('the grants of an object are the union of its names', async (t) => {
  const names = [
    { dnsName: '*.example.com.', ips: ['192.0.2.2', '::FFFF:192.0.2.1', 'fe80::1', '127.0.0.1'] },
    { dnsName: 'a.example.com.', ips: ['192.0.2.1', 'no address', '', '169.254.169.254'] },
    { dnsName: 'b.example.com.', ips: ['64:ff9b::10.1.2.3', '2001:DB8::1', '224.0.0.1'] },
  ]
  const { addresses } = grantsOfPublished(names, rulesWith('10.0.0.0/8'))
  t.strictSame(addresses, ['192.0.2.1', '192.0.2.2', '2001:db8::1'])
})

t.test('finds address sets in matches', async (t) => {
  const names = new Set<string>()
  addReferences('(ip4.dst == $a12 || ip6.dst == {$a3,$a4}) && inport == @a99 && a5', names)
  addReferences('ip4.src == $a123', names)
  addReferences(['set', []], names)
  t.strictSame([...names], ['a12', 'a3', 'a4', 'a123'])
})
