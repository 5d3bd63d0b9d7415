import t from 'tap'
import { printHostPort } from '../../../src/dns/host-port.ts'
import { scanCidr } from '../../../src/dns/text/address.ts'
import { readProvider } from '../../../src/operator/provider/provider-secret.ts'
import { secret } from '../../support/operator-objects.ts'

const SECRET = Buffer.from('of two servers').toString('base64')

t.test('a good Secret says zones, nameservers and key', (t) => {
  const table = [
    {
      name: 'spaces around the words of a list are no part of them',
      given: {
        ZONES: ' k.example.com, k2.example.com ',
        NAMESERVERS: '10.22.100.23:53 , 10.22.100.24:5353',
      },
      want: {
        zones: ['k.example.com', 'k2.example.com'],
        nameservers: ['10.22.100.23:53', '10.22.100.24:5353'],
        key: '',
      },
    },
    {
      name: 'zones are lower case and have no final dot',
      given: { ZONES: 'K.Example.COM.' },
      want: { zones: ['k.example.com'], nameservers: [], key: '' },
    },
    {
      name: 'the port of a nameserver is 53 where none is given',
      given: {
        ZONES: 'a.example',
        NAMESERVERS: '192.0.2.1,2001:DB8::1,[2001:db8::2],NS1.example.org.',
      },
      want: {
        zones: ['a.example'],
        nameservers: ['192.0.2.1:53', '[2001:db8::1]:53', '[2001:db8::2]:53', 'ns1.example.org:53'],
        key: '',
      },
    },
    {
      name: 'IPv6 addresses in brackets and host names have ports',
      given: { ZONES: 'a.example', NAMESERVERS: '[::1]:53,ns1.example.org:5300' },
      want: { zones: ['a.example'], nameservers: ['[::1]:53', 'ns1.example.org:5300'], key: '' },
    },
    {
      name: 'one address that is written twice is one nameserver, and empty words are none',
      given: { ZONES: 'a.example,', NAMESERVERS: ',[0:0::1]:53,,::1,' },
      want: { zones: ['a.example'], nameservers: ['[::1]:53'], key: '' },
    },
    {
      name: 'a zone that is written twice is kept, so that the choice can report it',
      given: { ZONES: 'a.example,a.example' },
      want: { zones: ['a.example', 'a.example'], nameservers: [], key: '' },
    },
    {
      name: 'a key is hmac-sha256 where nothing else is said',
      given: { ZONES: 'a.example', TSIG_NAME: 'peers.example', TSIG_SECRET: SECRET },
      want: { zones: ['a.example'], nameservers: [], key: 'peers.example. hmac-sha256' },
    },
    {
      name: 'a key says its algorithm',
      given: {
        ZONES: 'a.example',
        TSIG_NAME: 'Peers.example.',
        TSIG_ALGORITHM: 'HMAC-SHA512',
        TSIG_SECRET: SECRET,
      },
      want: { zones: ['a.example'], nameservers: [], key: 'peers.example. hmac-sha512' },
    },
  ]
  for (const { name, given, want } of table) {
    const provider = readProvider(secret('a', 'p', given), [scanCidr('::1/128')!])
    if (typeof provider === 'string') {
      t.fail(`${name}: ${provider}`)
      continue
    }
    const { zones, nameservers, tsigKey } = provider
    const key = tsigKey === undefined ? '' : `${tsigKey.nameText} ${tsigKey.algorithm.text}`
    t.strictSame({ zones, nameservers: nameservers.map(printHostPort), key }, want, name)
  }
  t.end()
})

t.test('an error names the invalid value, and never a secret', (t) => {
  const table = [
    { given: {}, want: 'CoreDNS Provider credentials does not contain ZONES' },
    { given: { ZONES: ' , ' }, want: 'CoreDNS Provider credentials does not contain ZONES' },
    { given: { ZONES: 'a..b' }, want: 'ZONES: "a..b" is not a domain name' },
    { given: { ZONES: '*.example.com' }, want: 'ZONES: "*.example.com" is not a domain name' },
    {
      given: { ZONES: 'a.example b.example' },
      want: 'ZONES: "a.example b.example" is not a domain name',
    },
    {
      given: { ZONES: 'kdrnt' },
      want: 'ZONES: kdrnt is reserved for the exchange between peers; remove it',
    },
    ...[
      {
        word: '169.254.169.254',
        want: 'nameserver "169.254.169.254" is a link-local address; use one that is reachable from other networks, or allow it with --nameserver-allow',
      },
      {
        word: '[fe80::1]:53',
        want: 'nameserver "[fe80::1]:53" is a link-local address; use one that is reachable from other networks, or allow it with --nameserver-allow',
      },
      {
        word: 'febf::1',
        want: 'nameserver "febf::1" is a link-local address; use one that is reachable from other networks, or allow it with --nameserver-allow',
      },
      {
        word: '::ffff:169.254.0.1',
        want: 'nameserver "::ffff:169.254.0.1" is a link-local address; use one that is reachable from other networks, or allow it with --nameserver-allow',
      },
      {
        word: '1.2.3:53',
        want: 'expected an IPAddress or host name as nameserver address but got "1.2.3:53"',
      },
      {
        word: '256.1.1.1',
        want: 'expected an IPAddress or host name as nameserver address but got "256.1.1.1"',
      },
      {
        word: '[1.2.3',
        want: 'expected an IPAddress or host name as nameserver address but got "[1.2.3"',
      },
      {
        word: ':53',
        want: 'expected an IPAddress or host name as nameserver address but got ":53"',
      },
      {
        word: '::g',
        want: 'expected an IPAddress or host name as nameserver address but got "::g"',
      },
      {
        word: 'a b:53',
        want: 'expected an IPAddress or host name as nameserver address but got "a b:53"',
      },
      {
        word: '1.2.3.4:dns',
        want: 'port number expected at end of nameserver but got "1.2.3.4:dns"',
      },
      { word: '1.2.3.4:', want: 'port number expected at end of nameserver but got "1.2.3.4:"' },
      { word: '1.2.3.4:0', want: 'port number expected at end of nameserver but got "1.2.3.4:0"' },
      {
        word: '[::1]:65536',
        want: 'port number expected at end of nameserver but got "[::1]:65536"',
      },
      ...[
        ['127.0.0.1:53', 'a loopback address'],
        ['127.9.9.9', 'a loopback address'],
        ['::1', 'a loopback address'],
        ['::ffff:127.0.0.1', 'a loopback address'],
        ['0.0.0.0', 'an address of this host'],
        ['::', 'an address of this host'],
      ].map(([word, what]) => ({
        word: word!,
        want: `nameserver "${word}" is ${what}; use one that is reachable from other networks, or allow it with --nameserver-allow`,
      })),
    ].map(({ word, want }) => ({
      given: { ZONES: 'a.example', NAMESERVERS: `192.0.2.1, ${word}` },
      want: `NAMESERVERS: ${want}`,
    })),
    {
      given: { ZONES: 'a.example', TSIG_NAME: 'k' },
      want: 'TSIG_NAME is set without TSIG_SECRET; set both',
    },
    {
      given: { ZONES: 'a.example', TSIG_SECRET: SECRET },
      want: 'TSIG_SECRET is set without TSIG_NAME; set both',
    },
    {
      given: { ZONES: 'a.example', TSIG_ALGORITHM: 'hmac-sha256' },
      want: 'TSIG_ALGORITHM is set without TSIG_NAME; set TSIG_NAME and TSIG_SECRET',
    },
    {
      given: { ZONES: 'a.example', TSIG_NAME: 'k', TSIG_SECRET: 'not base64!' },
      want: 'TSIG_SECRET is not base64; its value must be base64 before the Secret encodes it',
    },
    {
      given: {
        ZONES: 'a.example',
        TSIG_NAME: 'k',
        TSIG_SECRET: SECRET,
        TSIG_ALGORITHM: 'hmac-md5',
      },
      want: 'TSIG_ALGORITHM: "hmac-md5" is not supported; use one of hmac-sha1, hmac-sha224, hmac-sha256, hmac-sha384, hmac-sha512',
    },
  ]
  for (const { given, want } of table) {
    t.equal(readProvider(secret('a', 'p', given)), want, want)
  }
  t.end()
})
