import type { NetworkInterfaceInfo } from 'node:os'
import t from 'tap'
import type { BypassSite } from '../../../../src/server/data/bypass.ts'
import { planRoutes, type XdpMachine } from '../../../../src/server/data/xdp/routes.ts'
import { PROXY_RULES, ProxyAction } from '../../../../src/transport/proxy/rules.ts'
import type { XdpSettings } from '../../../../src/transport/udp/xdp/settings.ts'
import { xdpConfig } from '../../../transport/xdp-config.ts'

const MAC = '02:00:00:00:00:01'

function info(address: string, mac = MAC, mask = '255.255.255.0'): NetworkInterfaceInfo {
  const isIPv6 = address.includes(':')
  const netmask = isIPv6 ? 'ffff:ffff:ffff:ffff::' : mask
  return { address, netmask, mac, family: isIPv6 ? 'IPv6' : 'IPv4' } as NetworkInterfaceInfo
}

const ADDRESSES = [
  info('192.0.2.1'),
  info('198.51.100.0', MAC, '255.255.255.254'),
  info('2001:db8::1'),
]

const plan = (
  sites: readonly BypassSite[],
  interfaces: XdpMachine['interfaces'] = { eth0: ADDRESSES },
) => planRoutes(sites, { name: 'eth0', interfaces, mac: () => MAC })

/** A site with `sockets` sockets of `host`, whose descriptors start at `fd`. */
function site(host: string, port = 53, fd = 10, sockets = 2, interfaces = ['eth0']): BypassSite {
  const xdp = interfaces.map((interfaceName): XdpSettings => {
    return { interfaceName, queues: 0, mode: 'auto' }
  })
  const address = `dns://${host}:${port}`
  const plan = { address, configs: [xdpConfig(...xdp)] }
  const counts = new Float64Array(3)
  const socketOf = (index: number) => ({ address, fd: fd + index, host, port, counts })
  return { plan, listener: { port, sockets, socketOf } }
}

function print(
  sites: readonly BypassSite[],
  interfaces?: XdpMachine['interfaces'],
): string[] | undefined {
  return plan(sites, interfaces)?.targets.map(({ family, address, port, lane }) => {
    const octets =
      family === 1 ? address.subarray(0, 4).join('.') : Buffer.from(address).toString('hex')
    return `${octets} ${port} ${lane}`
  })
}

const IPV6 = '20010db8000000000000000000000001'

t.test('an address with PROXY headers keeps its packets', async (t) => {
  const plain = site('192.0.2.1')
  const proxied = site('2001:db8::1')
  proxied.plan.configs[0]!.shared.acquire(PROXY_RULES).push({
    actionFor: () => ProxyAction.Use,
    trackingMs: 0,
    sessionsMax: 1,
    keepsTlvs: false,
    noteFault: () => {},
  })
  t.strictSame(print([plain, proxied]), ['192.0.2.1 53 0'])
  t.equal(print([proxied]), undefined)
})

t.test('a wildcard stands for the addresses of the interface', async (t) => {
  t.strictSame(print([site('::')]), ['192.0.2.1 53 0', '198.51.100.0 53 0', `${IPV6} 53 0`])
  t.strictSame(print([site('0.0.0.0')]), ['192.0.2.1 53 0', '198.51.100.0 53 0'])
  t.strictSame(print([site('::')], {}), [])
})

t.test('addresses with a label are addresses of the interface', async (t) => {
  const interfaces = {
    'eth0:vip': [info('192.0.2.9')],
    eth0: ADDRESSES,
    eth01: [info('192.0.2.7')],
  }
  t.strictSame(print([site('0.0.0.0')], interfaces), [
    '192.0.2.9 53 0',
    '192.0.2.1 53 0',
    '198.51.100.0 53 0',
  ])
  t.ok(plan([site('::')], interfaces)?.refused.some(({ address }) => address[3] === 9))
})

t.test(
  'the address of an interface with the same MAC address is left to the sockets',
  async (t) => {
    const interfaces = {
      'eth0.7': [info('203.0.113.1'), info('192.0.2.1'), info('2001:db8:7::1')],
      dummy0: [info('203.0.113.2', '02:00:00:00:00:02')],
      lo: [info('203.0.113.3', '00:00:00:00:00:00')],
      eth0: ADDRESSES,
    }
    const hosts = ['203.0.113.1', '2001:db8:7::1', '203.0.113.2', '203.0.113.3', '192.0.2.1']
    const sites = hosts.map((host) => site(host))
    t.strictSame(print(sites, interfaces), [
      '203.0.113.2 53 2',
      '203.0.113.3 53 3',
      '192.0.2.1 53 4',
    ])
    t.strictSame(print(sites.slice(0, 1), { ...interfaces, eth0: undefined }), [])
  },
)

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
  const planned = plan([site('::', 53, 10, 3), site('::', 54, 20, 2)])
  t.equal(planned?.threads, 2)
  t.strictSame(planned?.lanesOf(1), [
    { address: 'dns://:::53', fd: 11 },
    { address: 'dns://:::54', fd: 21 },
  ])
})

t.test(
  'our addresses and broadcast addresses are no sources; a /31 has no broadcast',
  async (t) => {
    const printed = plan([site('::')])?.refused.map(({ address }) =>
      address.subarray(0, 4).join('.'),
    )
    t.strictSame(printed, ['192.0.2.1', '192.0.2.255', '198.51.100.0', '32.1.13.184'])
  },
)

t.test('too many targets are an error', async (t) => {
  const sites = Array.from({ length: 65 }, (_, i) => site('192.0.2.1', 1000 + i))
  t.throws(() => plan(sites), {
    message: '65 addresses and ports, but at most 64 are possible',
  })
})
