import t from 'tap'
import { dnstap } from '../../../src/plugins/dnstap/setup.ts'
import { SetUp, setupError } from '../../support/setup.ts'

t.test('bad arguments', async (t) => {
  const table = [
    { given: 'dnstap', want: /Wrong argument count/ },
    { given: 'dnstap /tmp/s full 1 1 1', want: /Wrong argument count/ },
    { given: 'dnstap /tmp/s 4', want: /"4" is not expected here; write full, or nothing/ },
    { given: 'dnstap /tmp/s full 0', want: /WRITEBUFFER is "0"; use a number from 1 to 1024/ },
    { given: 'dnstap /tmp/s full 1025', want: /WRITEBUFFER is "1025"/ },
    { given: 'dnstap /tmp/s full x', want: /WRITEBUFFER is "x"/ },
    { given: 'dnstap /tmp/s full 1 4097', want: /QUEUE is "4097"; use a number from 1 to 4096/ },
    { given: 'dnstap /tmp/s full 1 -1', want: /QUEUE is "-1"/ },
    { given: 'dnstap unix://', want: /endpoint "unix:\/\/" has no path/ },
    { given: `dnstap /${'x'.repeat(107)}`, want: /socket with 108 octets; use at most 107/ },
    { given: 'dnstap udp://127.0.0.1:6000', want: /unknown scheme udp:\/\/; use a path, unix/ },
    { given: 'dnstap tcp://127.0.0.1', want: /"tcp:\/\/127.0.0.1"; use tcp:\/\/HOST:PORT/ },
    { given: 'dnstap tcp://127.0.0.1:0', want: /use tcp:\/\/HOST:PORT/ },
    { given: 'dnstap tls://a.example:65536', want: /use tls:\/\/HOST:PORT/ },
    { given: 'dnstap tcp://[a.example]:6000', want: /use tcp:\/\/HOST:PORT/ },
    { given: 'dnstap /tmp/s {\ntls a b\n}', want: /Corefile:2 .*tls is only for dnstap listen/ },
    { given: 'dnstap listen', want: /Wrong argument count/ },
    { given: 'dnstap listen /tmp/s full 1 1 1', want: /Wrong argument count/ },
    { given: 'dnstap listen /tmp/s {\ntls a b\n}', want: /tls is only for dnstap listen/ },
    { given: 'dnstap listen tls://:1 {\ntls a\n}', want: /Wrong argument count/ },
    { given: 'dnstap listen tls://:1', want: /:1 .*tls:\/\/ needs the property tls CERT KEY/ },
    { given: 'dnstap listen /tmp/s {\nskipverify\n}', want: /skipverify needs an endpoint with/ },
    { given: `dnstap listen /${'x'.repeat(99)}`, want: /with 100 octets; use at most 99/ },
    { given: 'dnstap listen /tmp/s\ndnstap listen unix:///tmp/s', want: /another dnstap listens/ },
    { given: 'dnstap tcp://:6000', want: /use tcp:\/\/HOST:PORT/ },
    { given: 'dnstap /tmp/s {\nskipverify\n}', want: /skipverify needs an endpoint with tls/ },
    { given: 'dnstap tls://a:1 {\nskipverify yes\n}', want: /Wrong argument count/ },
    { given: 'dnstap /tmp/s {\nidentity\n}', want: /Wrong argument count/ },
    { given: 'dnstap /tmp/s {\nextra a b\n}', want: /Wrong argument count/ },
    {
      given: `dnstap /tmp/s {\nidentity ${'x'.repeat(1025)}\n}`,
      want: /identity has 1025 octets; use at most 1024/,
    },
    { given: 'dnstap /tmp/s {\nversoin 1\n}', want: /unknown property 'versoin'.*version/ },
  ]
  for (const { given, want } of table) t.match(setupError(dnstap, given), want, given)
})

t.test('good arguments', async (t) => {
  const table = [
    'dnstap /tmp/s',
    'dnstap unix:///tmp/s full',
    'dnstap tcp://a.example:6000 full 1024 4096',
    'dnstap tls://[::1]:6000 full {\nskipverify\nidentity a\nversion b\nextra "c {/geoip/city}"\n}',
    'dnstap /tmp/s full\ndnstap tcp://127.0.0.1:6000',
    'dnstap listen /tmp/s full',
    'dnstap listen tcp://:6000 full 2 3\ndnstap listen tcp://[::1]:6000',
    'dnstap listen tls://127.0.0.1:6000 {\ntls a b c\nskipverify\n}',
  ]
  for (const given of table) t.equal(setupError(dnstap, given), '', given)
})

t.test('a field that extra does not have', async (t) => {
  const { warnings } = new SetUp(dnstap, 'dnstap /tmp/s {\nextra "{name} {/a/b}"\n}')
  t.strictSame(warnings, ['3: dnstap has no field {name}: it is sent unchanged'])
})
