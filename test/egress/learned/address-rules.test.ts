import t from 'tap'
import { scanCidr } from '../../../src/dns/text/address.ts'
import { AddressRules } from '../../../src/egress/learned/address-rules.ts'

t.test('addresses that are never granted', async (t) => {
  const cluster = ['10.96.0.0/12', 'fd00:1::/64'].map((text) => scanCidr(text)!)
  const allowed = ['10.96.0.10/32', '127.0.0.53/32'].map((text) => scanCidr(text)!)
  const rules = new AddressRules(cluster, allowed)
  const table: [string, string | undefined][] = [
    ['192.0.2.1', undefined],
    ['10.0.0.1', undefined],
    ['0.0.0.0', 'unspecified'],
    ['0.1.2.3', 'unspecified'],
    ['::', 'unspecified'],
    ['127.0.0.1', 'loopback'],
    ['127.0.0.53', undefined],
    ['::1', 'loopback'],
    ['169.254.169.254', 'link-local'],
    ['fe80::1', 'link-local'],
    ['224.0.0.1', 'multicast'],
    ['255.255.255.255', 'multicast'],
    ['ff02::1', 'multicast'],
    ['10.96.0.1', 'cluster'],
    ['10.96.0.10', undefined],
    ['fd00:1::5', 'cluster'],
    ['2001:db8::1', undefined],
    ['64:ff9b::7f00:1', 'loopback'],
    ['64:ff9b::a60:1', 'cluster'],
    ['64:ff9b::c000:201', undefined],
    ['64:ff9b:1::a9fe:a9fe', 'link-local'],
    ['64:ff9b:1:2:3:4:c000:201', undefined],
    ['::ffff:127.0.0.1', 'loopback'],
    ['::ffff:10.96.0.1', 'cluster'],
    ['::ffff:192.0.2.1', undefined],
  ]
  for (const [address, want] of table) t.equal(rules.denialOf(address), want, address)
})

t.test('addresses in prefixes of NAT64', async (t) => {
  const rules = new AddressRules([scanCidr('10.96.0.0/12')!], [])
  const table: [string, string, string][] = [
    ['2001:db8::/96', '2001:db8::a60:1', '2001:db8::c000:201'],
    ['2001:db8:64::/64', '2001:db8:64:0:a:6000:100:0', '2001:db8:64:0:c0:2:100:0'],
    ['2001:db8:4800::/48', '2001:db8:4800:a60:0:100::', '2001:db8:4800:c000:2:100::'],
    ['2001:db9::/32', '2001:db9:a60:1::', '2001:db9:c000:201::'],
  ]
  for (const [prefix, denied, granted] of table) {
    t.equal(rules.denialOf(denied), undefined, 'the prefix is not known')
    rules.addNat64(scanCidr(prefix)!)
    rules.addNat64(scanCidr(prefix)!)
    t.equal(rules.denialOf(denied), 'cluster', prefix)
    t.equal(rules.denialOf(granted), undefined, prefix)
  }
})
