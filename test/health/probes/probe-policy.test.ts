import t from 'tap'
import { scanCidr } from '../../../src/dns/text/address.ts'
import { printFault } from '../../../src/health/probes/print-fault.ts'
import { ProbePolicy } from '../../../src/health/probes/probe-policy.ts'
import { combine } from '../../../src/health/probes/resolve.ts'

t.test('which addresses are probed', (t) => {
  const table: readonly { name: string; given: string; allowed?: string; want: RegExp }[] = [
    { name: 'a public address', given: '192.0.2.1', want: /^$/ },
    { name: 'a private one', given: '10.1.2.3', want: /a private network/ },
    { name: 'the end of one', given: '172.31.255.255', want: /a private network/ },
    { name: 'a private one of homes', given: '192.168.1.1', want: /a private network/ },
    { name: 'a shared one', given: '100.64.0.1', want: /a private network/ },
    { name: 'a service in a shared one', given: '100.100.100.200', want: /a metadata service/ },
    {
      name: 'a private one that is allowed',
      given: '10.1.2.3',
      allowed: '10.1.0.0/16',
      want: /^$/,
    },
    {
      name: 'beside one that is allowed',
      given: '10.2.2.3',
      allowed: '10.1.0.0/16',
      want: /private/,
    },
    { name: 'a private one, translated', given: '64:ff9b::10.1.2.3', want: /a private network/ },
    { name: 'and allowed', given: '64:ff9b::10.1.2.3', allowed: '10.0.0.0/8', want: /^$/ },
    { name: 'in a translator of the site', given: '64:ff9b:1:a9fe:a9:fe00::', want: /special/ },
    {
      name: 'which another address does not excuse',
      given: '64:ff9b:1:a9fe:a9:fe00:0a01:0203',
      allowed: '10.0.0.0/8',
      want: /special/,
    },
    { name: 'Teredo', given: '2001:0:c000:201::f5fe:fdfc', want: /a special network/ },
    { name: 'near Teredo', given: '2001:4860:4860::8888', want: /^$/ },
    { name: 'for protocols', given: '192.0.0.10', want: /a special network/ },
    { name: 'for benchmarks', given: '198.19.0.1', want: /a special network/ },
    { name: 'site-local', given: 'fec0::1', want: /a special network/ },
    { name: 'a public IPv6 address', given: '2001:db8::1', want: /^$/ },
    { name: 'a unique local one', given: 'fd12::1', want: /a private network/ },
    { name: 'loopback', given: '127.0.0.1', want: /loopback/ },
    { name: 'all of loopback', given: '127.255.255.255', want: /loopback/ },
    { name: 'IPv6 loopback', given: '::1', want: /loopback/ },
    { name: 'this host', given: '0.0.0.0', want: /this host/ },
    { name: 'unspecified', given: '::', want: /unspecified|this host/ },
    { name: 'the metadata service', given: '169.254.169.254', want: /metadata/ },
    { name: 'one of IPv6', given: 'fd00:ec2::254', want: /metadata/ },
    { name: 'another one of IPv6', given: 'fd20:ce::254', want: /metadata/ },
    { name: 'and another', given: 'fd00:c1::a9fe:a9fe', want: /metadata/ },
    {
      name: 'translated by a network of its own',
      given: '64:ff9b:1::7f00:1',
      want: /a special network/,
    },
    { name: 'translated without state', given: '::ffff:0:127.0.0.1', want: /loopback/ },
    { name: 'by way of 6to4', given: '2002:a9fe:a9fe::1', want: /metadata/ },
    { name: 'an ISATAP address', given: '2001:db8::5efe:10.1.2.3', want: /a private network/ },
    { name: 'a global one', given: '2001:db8:1:2:200:5efe:a9fe:a9fe', want: /metadata/ },
    { name: 'around a public one', given: '2001:db8::5efe:192.0.2.1', want: /^$/ },
    {
      name: 'an IPv4 network',
      given: '2001:db8::5efe:10.1.2.3',
      allowed: '10.0.0.0/8',
      want: /^$/,
    },
    { name: 'by way of 6to4 and ISATAP', given: '2002:c000:201::5efe:127.0.0.1', want: /loopback/ },
    { name: 'no ISATAP', given: '2001:db8::100:5efe:10.1.2.3', want: /^$/ },
    { name: 'to a public one by way of 6to4', given: '2002:c000:201::1', want: /^$/ },
    { name: 'one that is not link-local', given: '168.63.129.16', want: /metadata/ },
    { name: 'link-local', given: 'fe80::1', want: /link-local/ },
    { name: 'link-local to its end', given: 'febf:ffff::1', want: /link-local/ },
    { name: 'multicast', given: '239.1.1.1', want: /multicast/ },
    { name: 'broadcast', given: '255.255.255.255', want: /reserved/ },
    { name: 'mapped loopback', given: '::ffff:127.0.0.1', want: /loopback/ },
    { name: 'mapped, in hexadecimal', given: '::ffff:a9fe:a9fe', want: /metadata/ },
    { name: 'translated', given: '64:ff9b::7f00:1', want: /loopback/ },
    { name: 'mapped public', given: '::ffff:192.0.2.1', want: /^$/ },
    { name: 'no address', given: 'example.org', want: /not an IP address/ },
    { name: 'a zone identifier', given: 'fe80::1%eth0', want: /not an IP address/ },
    { name: 'what is allowed', given: '127.0.0.1', allowed: '127.0.0.0/8', want: /^$/ },
    { name: 'and mapped', given: '::ffff:127.0.0.1', allowed: '127.0.0.0/8', want: /^$/ },
    {
      name: 'but nothing beside it',
      given: '127.1.0.1',
      allowed: '127.0.0.0/16',
      want: /loopback/,
    },
    { name: 'one address alone', given: '::1', allowed: '::1/128', want: /^$/ },
  ]
  for (const { name, given, allowed, want } of table) {
    const policy = new ProbePolicy(allowed === undefined ? [] : [scanCidr(allowed)!])
    t.match(policy.refusal(given), want, name)
  }
  t.end()
})

t.test('the answers for both families together', (t) => {
  const some = { kind: 'addresses', addresses: ['192.0.2.2', '192.0.2.1', '192.0.2.1'] } as const
  const failed = { kind: 'failed', reason: 'x' } as const
  const none = { kind: 'none' } as const
  t.strictSame(combine([some, failed]), {
    kind: 'addresses',
    addresses: ['192.0.2.1', '192.0.2.2'],
  })
  t.strictSame(combine([none, failed]), failed, 'half an answer is no proof that there is none')
  t.strictSame(combine([none, none]), none)
  const many = Array.from({ length: 20 }, (_, i) => `192.0.2.${i}`)
  t.match(combine([{ kind: 'addresses', addresses: many }]), { addresses: { length: 8 } })
  t.end()
})

t.test('reasons name what a health check met, not a code of a library', (t) => {
  const fault = (code: string): string => printFault(Object.assign(new Error('x'), { code }))
  t.equal(fault('EPROTO'), 'TLS handshake failed', 'HTTPS to a port without TLS')
  t.equal(fault('ERR_SSL_WRONG_VERSION_NUMBER'), 'TLS handshake failed', 'GRPCS to such a port')
  t.equal(fault('ERR_HTTP2_ERROR'), 'invalid HTTP/2 response', 'GRPC to a server of HTTP/1.1')
  t.equal(fault('HPE_CLOSED_CONNECTION'), 'invalid HTTP response', '204 with a body')
  t.end()
})

t.test('reasons have nothing in them that the other side wrote', (t) => {
  t.equal(
    printFault(Object.assign(new Error('evil\n'), { code: 'ECONNREFUSED' })),
    'connection refused',
  )
  t.equal(
    printFault(Object.assign(new Error('CN=evil'), { code: 'CERT_HAS_EXPIRED' })),
    'CERT_HAS_EXPIRED',
  )
  t.equal(
    printFault(Object.assign(new Error('x'), { code: 'evil\ncode' })),
    'the connection failed',
  )
  t.equal(printFault(new Error('evil')), 'the connection failed')
  t.end()
})
