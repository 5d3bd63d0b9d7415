import t from 'tap'
import { embeddedIPv4, embedIPv4 } from '../../src/dns/nat64.ts'
import { printAddress, scanAddress, scanCidr } from '../../src/dns/text/address.ts'

t.test('addresses with prefixes of each length', async (t) => {
  // CoreDNS's table, then that of RFC 6052 section 2.4.
  const table = [
    ['64:ff9b::/96', '64.64.64.64', '64:ff9b::4040:4040'],
    ['64:ff9b::/64', '64.64.64.64', '64:ff9b::40:4040:4000:0'],
    ['64:ff9b::/56', '64.64.64.64', '64:ff9b:0:40:40:4040::'],
    ['64::/32', '64.64.64.64', '64:0:4040:4040::'],
    ['2001:db8::/32', '192.0.2.33', '2001:db8:c000:221::'],
    ['2001:db8:100::/40', '192.0.2.33', '2001:db8:1c0:2:21::'],
    ['2001:db8:122::/48', '192.0.2.33', '2001:db8:122:c000:2:2100::'],
    ['2001:db8:122:300::/56', '192.0.2.33', '2001:db8:122:3c0:0:221::'],
    ['2001:db8:122:344::/64', '192.0.2.33', '2001:db8:122:344:c0:2:2100::'],
    ['2001:db8:122:344::/96', '192.0.2.33', '2001:db8:122:344::c000:221'],
  ] as const
  for (const [prefix, address, want] of table) {
    const to = new Uint8Array(16)
    embedIPv4(scanCidr(prefix)!, scanAddress(address)!.bytes, 0, to, 0)
    t.equal(printAddress(to, 2), printAddress(scanAddress(want)!.bytes, 2), prefix)
    t.equal(printAddress(embeddedIPv4(scanCidr(prefix)!, to), 1), address)
  }
})
