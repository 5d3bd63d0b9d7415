import t from 'tap'
import { type Cidr, scanCidr } from '../../src/dns/text/address.ts'
import { resolvePeer, scanPeerAddress } from '../../src/peering/peer-address.ts'

const GOOD = [
  { text: '192.0.2.1', want: { host: '192.0.2.1', port: 53 } },
  { text: '192.0.2.1:5353', want: { host: '192.0.2.1', port: 5353 } },
  { text: '2001:DB8::1', want: { host: '2001:db8::1', port: 53 } },
  { text: '[2001:db8::1]:5353', want: { host: '2001:db8::1', port: 5353 } },
  { text: '[2001:db8::1]', want: { host: '2001:db8::1', port: 53 } },
  { text: 'NS1.Example.org.', want: { host: 'ns1.example.org', port: 53 } },
  { text: 'ns1:5353', want: { host: 'ns1', port: 5353 } },
]
const BAD = [
  { text: '192.0.2.1:0', want: /port number expected/ },
  { text: '192.0.2.1:65536', want: /port number expected/ },
  { text: '192.0.2', want: /is not an IP address or host name/ },
  { text: '', want: /is not an IP address or host name/ },
  { text: 'a b', want: /is not an IP address or host name/ },
  { text: 'a..b', want: /is not an IP address or host name/ },
  { text: 'ns1:dns', want: /is not an IP address or host name/ },
  { text: '[ns1', want: /is not an IP address or host name/ },
]

t.test('addresses and host names of peers', async (t) => {
  for (const { text, want } of GOOD) t.strictSame(scanPeerAddress(text), want, text)
  for (const { text, want } of BAD) t.match(scanPeerAddress(text), want, JSON.stringify(text))
})

t.test('an address needs no resolver, and a host name goes to the resolver', async (t) => {
  const none = async (): Promise<string[]> => t.fail('an address was looked up') as never
  t.strictSame(await resolvePeer({ host: '::1', port: 5 }, none), [{ host: '::1', port: 5 }])
  const known = async (host: string): Promise<string[]> => {
    if (host !== 'ns1.example.org') throw new Error(`ENOTFOUND ${host}`)
    return ['192.0.2.1', '2001:db8::1']
  }
  t.strictSame(await resolvePeer({ host: 'ns1.example.org', port: 5 }, known), [
    { host: '192.0.2.1', port: 5 },
    { host: '2001:db8::1', port: 5 },
  ])
  t.strictSame(await resolvePeer({ host: 'nobody.invalid', port: 5 }, known), [])
})

t.test('a host name of a Secret does not lead to this host or link', async (t) => {
  const local = [
    ...['127.0.0.1', '::1', '::', '0.0.0.0', '169.254.169.254', 'fe80::1', '::ffff:127.0.0.1'],
    ...['64:ff9b::127.0.0.1', '2002:7f00:1::', '::127.0.0.1', '64:ff9b::a9fe:a9fe'],
  ]
  const others = ['192.0.2.1', '10.0.0.1', '2001:db8::1', '64:ff9b::c000:201', '2002:c000:201::']
  const peer = { host: 'ns1.example.org', port: 5 }
  const hostsOf = async (localAllowed?: readonly Cidr[]): Promise<string[]> => {
    const resolve = async () => [...local, ...others]
    const found = await resolvePeer(
      localAllowed === undefined ? peer : { ...peer, localAllowed },
      resolve,
    )
    return found.map(({ host }) => host)
  }
  t.strictSame(await hostsOf([]), others)
  t.strictSame(await hostsOf(), [...local, ...others], 'the administrator may name any')
  const allowed = await hostsOf([scanCidr('127.0.0.0/8')!])
  t.ok(allowed.includes('127.0.0.1') && allowed.includes('::ffff:127.0.0.1'))
  t.notOk(allowed.includes('169.254.169.254'))
})
