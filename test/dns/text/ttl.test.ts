import t from 'tap'
import { scanTtl } from '../../../src/dns/text/ttl.ts'

t.test('scanTtl', (t) => {
  const table: { given: string; want: number | undefined }[] = [
    { given: '0', want: 0 },
    { given: '3600', want: 3600 },
    { given: '4294967295', want: 4294967295 },
    { given: '4294967296', want: undefined },
    { given: '1h', want: 3600 },
    { given: '1W2d3h4M5s', want: 788645 },
    { given: '1h30m', want: 5400 },
    { given: '7101w', want: 4294684800 },
    { given: '7102w', want: undefined },
    { given: '30m1h', want: undefined },
    { given: '1h1h', want: undefined },
    { given: '1h30', want: undefined },
    { given: 'h', want: undefined },
    { given: '', want: undefined },
    { given: '-1', want: undefined },
    { given: '1.5h', want: undefined },
    { given: ' 1', want: undefined },
    { given: '9'.repeat(61), want: undefined },
  ]
  for (const { given, want } of table) t.equal(scanTtl(given), want, `'${given}' gives ${want}`)
  t.end()
})
