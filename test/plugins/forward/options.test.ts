import { join } from 'node:path'
import t from 'tap'
import { forward } from '../../../src/plugins/forward/setup.ts'
import { SetUp, setupError } from '../../support/setup.ts'

const TO = '192.0.2.1'

/** `forward . 192.0.2.1 { property }` */
const withProperty = (property: string): string => `forward . ${TO} {\n${property}\n}`

t.test('valid blocks', async (t) => {
  const table = [
    `forward . ${TO}`,
    'forward . 192.0.2.1:5353 [2001:db8::1]:53 2001:db8::2 dns://192.0.2.3 fe80::1%eth0',
    'forward . tls://192.0.2.1 tls://192.0.2.1:8853 tls://192.0.2.1%dns.example.net',
    'forward . tls://192.0.2.1%dns.example.net:8853 tls://[2001:db8::1]',
    'forward 192.0.2.0/23 192.0.2.1',
    `forward a.example ${TO}\nforward . ${TO}`,
    withProperty('except a.example b.example\nexcept c.example'),
    withProperty('force_tcp\nprefer_udp\nuse_caps_for_id\nnext_on_nodata'),
    withProperty('expire 1m\nmax_age 5m\nread_timeout 500ms\nmax_idle_conns 4'),
    withProperty('max_fails 0\nmax_connect_attempts 3\nmax_concurrent 1000'),
    ...['random', 'round_robin', 'sequential'].map((name) => withProperty(`policy ${name}`)),
    withProperty('health_check 1s'),
    'forward . dns.example dns.example:5353 dns://a.example. tls://b.example%c.example:8853',
    'forward . tls://b.example {\ntls_servername c.example\n}',
    withProperty('resolver 192.0.2.1 [2001:db8::1]:5353\nresolver 192.0.2.2'),
    withProperty('source_address 192.0.2.9'),
    withProperty('health_check 1s no_rec domain example.org'),
    withProperty('next NXDOMAIN servfail\nfailover SERVFAIL REFUSED\nfailover NOTIMP'),
    withProperty('tls\ntls_servername dns.example.net\nfailfast_all_unhealthy_upstreams'),
  ]
  for (const corefile of table) t.equal(setupError(forward, corefile), '', corefile)
})

t.test('invalid blocks', async (t) => {
  const many = Array.from({ length: 16 }, (_, i) => `192.0.2.${i + 1}`).join(' ')
  const table: readonly [string, string][] = [
    [
      'forward',
      "1 - Error during parsing: Wrong argument count or unexpected line ending after 'forward'",
    ],
    [
      'forward .',
      "1 - Error during parsing: Wrong argument count or unexpected line ending after '.'",
    ],
    [`forward a..b ${TO}`, '1 - Error'],
    [`forward . ${many}`, '1 - Error during parsing: more than 15 TOs configured: 16'],
    [
      'forward . https://192.0.2.1',
      "1 - Error during parsing: 'https' is not supported as a destination protocol in forward: https://192.0.2.1",
    ],
    [
      'forward . tls://192.0.2.256',
      '1 - Error during parsing: not an IP address or host name: "192.0.2.256"',
    ],
    [
      'forward . tls://a..b:853',
      '1 - Error during parsing: not an IP address or host name: "a..b:853"',
    ],
    [
      'forward . tls://192.0.2.1%a.example {\ntls_servername b.example\n}',
      '3 - Error during parsing: tls_servername cannot be used with a server name in TO',
    ],
    [withProperty('nonsense'), "2 - Error during parsing: unknown property 'nonsense'"],
    [withProperty('constructor'), "2 - Error during parsing: unknown property 'constructor'"],
    [
      withProperty('doh_method GET'),
      "2 - Error during parsing: property 'doh_method' is not supported",
    ],
    [withProperty('resolver'), '2 - Error during parsing: Wrong argument count'],
    [withProperty('resolver dns.example'), '2 - Error during parsing: not an IP address'],
    [withProperty('resolver fe80::1%eth0'), '2 - Error during parsing: resolver: fe80::1%eth0 may'],
    [withProperty('source_address'), '2 - Error during parsing: Wrong argument count'],
    [withProperty('source_address x'), '2 - Error during parsing: invalid IP address: x'],
    [
      withProperty('source_address 127.0.0.1 ::1'),
      '2 - Error during parsing: Wrong argument count',
    ],
    [withProperty('except'), '2 - Error during parsing: Wrong argument count'],
    [withProperty('force_tcp yes'), '2 - Error during parsing: Wrong argument count'],
    [withProperty('expire -1s'), "2 - Error during parsing: expire can't be negative: -1s"],
    [withProperty('expire 10'), "2 - Error during parsing: expire: invalid duration '10'"],
    [withProperty('read_timeout 0'), '2 - Error during parsing: read_timeout must be above 0'],
    [withProperty('max_fails -1'), "2 - Error during parsing: max_fails can't be negative: -1"],
    [withProperty('max_fails x'), "2 - Error during parsing: max_fails: invalid number 'x'"],
    [withProperty('max_concurrent'), '2 - Error during parsing: Wrong argument count'],
    [withProperty('policy best'), "2 - Error during parsing: unknown policy 'best'"],
    [withProperty('health_check'), '2 - Error during parsing: Wrong argument count'],
    [
      withProperty('health_check 1s rec'),
      '2 - Error during parsing: health_check: unknown option rec',
    ],
    [
      withProperty('health_check 1s domain a..b'),
      '2 - Error during parsing: health_check: invalid domain name a..b',
    ],
    [
      withProperty('failover NOERROR'),
      '2 - Error during parsing: NOERROR cannot be used in failover',
    ],
    [withProperty('next NOSUCH'), '2 - Error during parsing: NOSUCH is not a valid rcode'],
    [withProperty('tls a b c d'), '2 - Error during parsing: Wrong argument count'],
  ]
  for (const [corefile, want] of table) {
    const error = setupError(forward, corefile)
    t.ok(error.startsWith(`Corefile:${want}`), `${corefile}: ${error}`)
  }
})

t.test('files are read at the start, and checked by `check`', async (t) => {
  const dir = t.testdir({
    good: '# comment\nsearch example.org\nnameserver 192.0.2.1\nnameserver fe80::1%eth0\n',
    empty: 'nameserver\nnameserver nonsense\n',
    many: Array.from({ length: 16 }, (_, i) => `nameserver 192.0.2.${i + 1}\n`).join(''),
    'bad.pem': 'nonsense',
  })
  const path = (name: string) => join(dir, name)
  const table = [
    { corefile: `forward . ${path('good')}`, want: '' },
    { corefile: `forward . ${path('empty')}`, want: `no nameservers found in ${path('empty')}` },
    { corefile: `forward . ${path('many')}`, want: 'more than 15 TOs configured: 16' },
    ...['192.0.2.1:99999', 'a27.0.0.1', 'none/resolv.conf', '"a b"'].map((text) => ({
      corefile: `forward . ${text}`,
      want: `not an IP address, host name or file: "${text.replaceAll('"', '')}"`,
    })),
    {
      corefile: 'forward . 192.0.2.1 [2001:db8::1]:53 {\nsource_address 192.0.2.9\n}',
      want: 'source_address 192.0.2.9 cannot reach [2001:db8::1]:53: write an address of the same family',
    },
    {
      corefile: `forward . tls://192.0.2.1 {\ntls ${path('none.pem')}\n}`,
      want: `tls: ENOENT: no such file or directory, open '${path('none.pem')}'`,
    },
    {
      corefile: `forward . tls://192.0.2.1 {\ntls ${path('bad.pem')} ${path('bad.pem')}\n}`,
      want: 'tls: invalid certificate or key',
    },
  ]
  for (const { corefile, want } of table) {
    const c = new SetUp(forward, corefile)
    const { faults } = await c.check()
    t.equal(faults.length, want === '' ? 0 : 1, corefile)
    t.match(faults[0] ?? '', want)
    const started = await c.start().then(
      () => '',
      (error) => String(error.message),
    )
    t.match(started, want)
    await c.stop()
  }
})
