import type { NetworkInterfaceInfo } from 'node:os'
import t from 'tap'
import { planRoutes, type XdpSite } from '../../../../src/server/data/xdp/routes.ts'

const ADDRESSES = [
  { address: '192.0.2.1', netmask: '255.255.255.0', family: 'IPv4' },
  { address: '198.51.100.0', netmask: '255.255.255.254', family: 'IPv4' },
  { address: '2001:db8::1', netmask: 'ffff:ffff:ffff:ffff::', family: 'IPv6' },
] as NetworkInterfaceInfo[]

/** A site with `sockets` sockets of `host`, whose descriptors start at `fd`. */
function site(host: string, port = 53, fd = 10, sockets = 2, interfaces = ['eth0']): XdpSite {
  const xdp = interfaces.map((interfaceName) => ({
    interfaceName,
    queues: 0,
    mode: 'auto' as const,
  }))
  const address = `dns://${host}:${port}`
  const plan = { address, xdp } as unknown as XdpSite['plan']
  const counts = new Float64Array(3)
  const socketOf = (index: number) => ({ address, fd: fd + index, host, port, counts })
  return { plan, listener: { port, sockets, socketOf } }
}

function print(sites: readonly XdpSite[], addresses = ADDRESSES): string[] | undefined {
  return planRoutes('eth0', sites, addresses)?.targets.map(({ family, address, port, lane }) => {
    const octets =
      family === 1 ? address.subarray(0, 4).join('.') : Buffer.from(address).toString('hex')
    return `${octets} ${port} ${lane}`
  })
}

const IPV6 = '20010db8000000000000000000000001'

t.test('a wildcard stands for the addresses of the interface', async (t) => {
  t.strictSame(print([site('::')]), ['192.0.2.1 53 0', '198.51.100.0 53 0', `${IPV6} 53 0`])
  t.strictSame(print([site('0.0.0.0')]), ['192.0.2.1 53 0', '198.51.100.0 53 0'])
  t.strictSame(print([site('::')], []), [])
})

t.test('an address of its own comes first, and need not be on the interface', async (t) => {
  const sites = [site('::'), site('192.0.2.1'), site('203.0.113.9', 5353)]
  t.strictSame(print(sites), [
    '192.0.2.1 53 1',
    '203.0.113.9 5353 2',
    '198.51.100.0 53 0',
    `${IPV6} 53 0`,
  ])
  t.strictSame(print([site('127.0.0.1'), site('::1')]), [], 'loopback')
  t.strictSame(print([site('fe80::1%eth1')]), [], 'link-local of another interface')
  t.equal(print([site('fe80::1%eth0')])?.length, 1)
})

t.test('sites without the interface, and closing ones, are left out', async (t) => {
  t.equal(print([]), undefined)
  t.equal(print([site('::', 53, 10, 2, ['eth1'])]), undefined)
  t.equal(print([site('::', 53, 10, 0)]), undefined)
})

t.test('threads are those that have a socket of every site', async (t) => {
  const plan = planRoutes('eth0', [site('::', 53, 10, 3), site('::', 54, 20, 2)], ADDRESSES)
  t.equal(plan?.threads, 2)
  t.strictSame(plan?.lanesOf(1), [
    { address: 'dns://:::53', fd: 11 },
    { address: 'dns://:::54', fd: 21 },
  ])
})

t.test(
  'our addresses and broadcast addresses are no sources; a /31 has no broadcast',
  async (t) => {
    const plan = planRoutes('eth0', [site('::')], ADDRESSES)
    const printed = plan?.refused.map(({ address }) => address.subarray(0, 4).join('.'))
    t.strictSame(printed, ['192.0.2.1', '192.0.2.255', '198.51.100.0', '32.1.13.184'])
  },
)

t.test('too many targets are an error', async (t) => {
  const sites = Array.from({ length: 65 }, (_, i) => site('192.0.2.1', 1000 + i))
  t.throws(() => planRoutes('eth0', sites, ADDRESSES), {
    message: '65 addresses and ports, but at most 64 are possible',
  })
})
