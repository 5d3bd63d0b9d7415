import { networkInterfaces } from 'node:os'
import t from 'tap'
import { exactAddress, gatewaysOf, nodeAddresses } from '../../src/api/node-addresses.ts'

const IPV4_ROUTES = `Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
eth0\t00000000\t0101F40A\t0003\t0\t0\t0\t00000000\t0\t0\t0
eth0\t0001F40A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0
eth1\t0000A8C0\t0102A8C0\t0003\t0\t0\t0\t0000FFFF\t0\t0\t0
eth2\t00000000\t00000000\t0001\t0\t0\t9\t00000000\t0\t0\t0
`
const ZEROS = '0'.repeat(32)
const IPV6_ROUTES = `fd000010024400010000000000000000 40 ${ZEROS} 00 ${ZEROS} 00000100 00000001 00000000 00000001 eth0
${ZEROS} 00 ${ZEROS} 00 fd000010024400010000000000000001 00000400 00000001 00000000 00000003 eth0
${ZEROS} 00 ${ZEROS} 00 ${ZEROS} ffffffff 00000001 00000000 00200200 lo
`

t.test('default gateways of a pod', async (t) => {
  t.same(gatewaysOf(IPV4_ROUTES, IPV6_ROUTES), ['10.244.1.1', 'fd00:10:244:1::1'])
  t.same(gatewaysOf('', ''), [])
  t.same(gatewaysOf('eth0 00000000 zz\n\n', 'x'), [], 'a table of another form')
})

t.test('addresses of the host, and those of the environment', async (t) => {
  process.env.SEXTANT_NODE_ADDRESSES = '192.0.2.7, 2001:DB8::7'
  t.teardown(() => delete process.env.SEXTANT_NODE_ADDRESSES)
  const found = nodeAddresses()
  for (const text of ['192.0.2.7', '2001:db8::7']) t.ok(found.has(text), text)
  for (const { address } of Object.values(networkInterfaces()).flatMap((list) => list ?? [])) {
    t.ok(found.has(exactAddress(address)), address)
  }
  t.notOk(found.has(''))
})

t.test('an address is compared without its zone, and IPv4 in IPv6 as IPv4', async (t) => {
  t.equal(exactAddress('fe80::1%eth0'), 'fe80::1')
  t.equal(exactAddress('::ffff:192.0.2.1'), '192.0.2.1')
  t.equal(exactAddress('2001:DB8::1'), '2001:db8::1')
  t.equal(exactAddress(''), '')
})
