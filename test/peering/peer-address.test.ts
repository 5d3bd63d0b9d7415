import t from 'tap'
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
  { text: '192.0.2', want: /no IP address or host name/ },
  { text: '', want: /no IP address or host name/ },
  { text: 'a b', want: /no IP address or host name/ },
  { text: 'a..b', want: /no IP address or host name/ },
  { text: 'ns1:dns', want: /no IP address or host name/ },
  { text: '[ns1', want: /no IP address or host name/ },
]

t.test('addresses and host names of peers', async (t) => {
  for (const { text, want } of GOOD) t.strictSame(scanPeerAddress(text), want, text)
  for (const { text, want } of BAD) t.match(scanPeerAddress(text), want, JSON.stringify(text))
})

t.test('an address needs no resolver, and a host name goes to the system', async (t) => {
  t.strictSame(await resolvePeer({ host: '::1', port: 5 }), [{ host: '::1', port: 5 }])
  const found = await resolvePeer({ host: 'localhost', port: 5 })
  t.ok(found.some(({ host }) => host === '127.0.0.1' || host === '::1'))
  t.strictSame(await resolvePeer({ host: 'nobody.invalid', port: 5 }), [])
})
