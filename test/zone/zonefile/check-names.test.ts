import { test } from 'tap'
import type { ZoneLoadOptions } from '../../../src/zone/zonefile/load.ts'
import { loadText } from '../../support/zone-text.ts'

const APEX = '@ 60 SOA ns host 7 2 3 4 5\n@ 60 NS ns.example.net.\n'

/** Warnings of the file of example.org, whose third line is the first of `text`. */
function warningsOf(text: string, options: ZoneLoadOptions = {}): string[] {
  const load = loadText(`${APEX}${text}`, options)
  if (load.kind !== 'loaded') throw new Error(`not loaded: ${JSON.stringify(load)}`)
  return load.warnings.map((warning) => warning.print())
}

const unusable: { name: string; given: string; warnings: RegExp[] }[] = [
  {
    name: 'targets that are addresses',
    given:
      '@ 1 MX 10 192.0.2.1\n@ 1 MX 10 192.0.2.1.\na 1 CNAME 192.0.2.1\n_s 1 SRV 1 2 443 2001:db8::1\nb 1 HTTPS 1 192.0.2.1 alpn=h2\nc 1 SVCB 0 192.0.2.1.\nsub 1 NS 192.0.2.1\nd 1 DNAME ::1.\n',
    warnings: [
      /^db\.test:3: MX of example\.org\. names the address 192\.0\.2\.1; a name is needed$/,
      /^db\.test:4: MX of example\.org\. names the address 192\.0\.2\.1;/,
      /^db\.test:5: CNAME of a\.example\.org\. names the address/,
      /^db\.test:6: SRV of _s\.example\.org\. names the address 2001:db8::1;/,
      /^db\.test:7: HTTPS of b/,
      /^db\.test:8: SVCB of c/,
      /^db\.test:9: NS of sub/,
      /^db\.test:10: DNAME of d\.example\.org\. names the address ::1;/,
    ],
  },
  {
    name: 'names that look like addresses',
    given:
      '@ 1 MX 10 1.2.3\n@ 1 MX 10 192.0.2.256.\n@ 1 MX 10 192.0.2.1\n192.0.2.1 1 A 192.0.2.1\n@ 1 MX 0 .\nb 1 HTTPS 1 .\n',
    warnings: [],
  },
  {
    name: 'names that look like addresses, below a wildcard or a delegation',
    given:
      '*.0.0.10 1 A 127.0.0.3\na 1 CNAME 1.0.0.10\nb 1 CNAME 1.2.0.192\n192 1 NS ns.example.net.\n@ 1 MX 10 1.0.0.10\n',
    warnings: [],
  },
  {
    name: 'addresses that a wildcard of the zone answers for',
    given: '* 1 A 127.0.0.3\n@ 1 MX 10 192.0.2.1\n',
    warnings: [/^db\.test:4: MX of example\.org\. names the address 192\.0\.2\.1;/],
  },
  {
    name: 'hosts that are CNAMEs',
    given:
      'w 1 CNAME x\nx 1 A 192.0.2.1\n@ 1 MX 10 W\n_s 1 SRV 1 2 443 w\nsub 1 NS w\n@ 1 MX 20 x\nh 1 HTTPS 0 w\ny 1 CNAME w\n',
    warnings: [
      /^db\.test:5: MX of example\.org\. leads to w\.example\.org\., which is a CNAME: .*RFC 2181/,
      /^db\.test:6: SRV of _s\.example\.org\. leads to w/,
      /^db\.test:7: NS of sub\.example\.org\. leads to w/,
    ],
  },
  {
    name: 'CNAMEs to names that do not exist',
    given:
      'a 1 CNAME none\nb 1 CNAME x.wild\n*.wild 1 A 192.0.2.1\nc 1 CNAME none.example.net.\nd 1 CNAME y.here.wild\nhere.wild 1 A 192.0.2.1\n',
    warnings: [
      /^db\.test:3: CNAME of a\.example\.org\. leads to none\.example\.org\., which the zone does not have; add none\.example\.org\., or/,
      /^db\.test:7: CNAME of d\.example\.org\. leads to y\.here\.wild/,
    ],
  },
  {
    name: 'CNAMEs to names of other zones',
    given:
      'a 1 CNAME x.sub\nb 1 CNAME sub\nsub 1 NS ns.example.net.\nc 1 CNAME x.d\nd 1 DNAME example.net.\n',
    warnings: [],
  },
  {
    name: 'name servers without an address',
    given:
      '@ 60 NS ns1\n@ 60 NS ns2\nns2 1 AAAA 2001:db8::1\nsub 1 NS ns.sub\nother 1 NS ns.sub\nthird 1 NS ns\nns 1 TXT x\n',
    warnings: [
      /^db\.test:3: zone example\.org\.: name server ns1\.example\.org\. has no address; add A or AAAA records of ns1/,
      /^db\.test:6: zone sub\.example\.org\.: name server ns\.sub\.example\.org\. has no address; add/,
      /^db\.test:8: zone third\.example\.org\.: name server ns\.example\.org\. has no/,
    ],
  },
  {
    name: 'a name server that a wildcard answers for',
    given: '@ 60 NS ns1\n* 1 A 192.0.2.1\n',
    warnings: [
      /name server ns1\.example\.org\. has no address; clients get the addresses of \*\.example\.org\.; add/,
    ],
  },
  {
    name: 'data below a delegation',
    given:
      'sub 1 NS ns.sub\nsub 1 DS 1 8 9 abcd\nns.sub 1 A 192.0.2.1\nns.sub 1 AAAA 2001:db8::1\nwww.sub 1 A 192.0.2.1\na.www.sub 1 NSEC b. A\nsub 1 TXT x\nsub2 1 NS ns2.sub\nns2.sub 1 A 192.0.2.1\n*.w 1 NS ns.example.net.\nx.w 1 A 192.0.2.1\nb.sub 1 NS ns.example.net.\n',
    warnings: [
      /^db\.test:9: TXT of sub\.example\.org\. is never served: sub\.example\.org\. is delegated to other name servers; remove it, or/,
      /^db\.test:7: A of www\.sub\.example\.org\. is never served: sub\.example\.org\. is delegated/,
      /^db\.test:14: NS of b\.sub\.example\.org\. is never served: sub\.example/,
    ],
  },
  {
    name: 'data below a DNAME',
    given: 'd 1 DNAME example.net.\nd 1 A 192.0.2.1\nx.d 1 A 192.0.2.1\n',
    warnings: [
      /^db\.test:5: A of x\.d\.example\.org\. is never served: d\.example\.org\. has a DNAME;/,
    ],
  },
  {
    name: 'data below a DNAME at the apex',
    given: '@ 1 DNAME a.\na 1 TXT x\n',
    warnings: [/:4: TXT of a/],
  },
]

for (const { name, given, warnings } of unusable) {
  test(`names of a zone file: ${name}`, async (t) => {
    const found = warningsOf(given)
    t.match(found, warnings)
    t.equal(found.length, warnings.length, String(found))
  })
}

test('names of large zones are checked by `sextant check` only', async (t) => {
  for (const [namesCheckedMax, count] of [
    [2, 0],
    [3, 1],
  ] as const) {
    t.equal(warningsOf('a 1 CNAME none\n', { namesCheckedMax }).length, count)
  }
})

test('names that another directive may have', async (t) => {
  t.same(warningsOf('a 1 CNAME none\n@ 60 NS ns1\nsub 1 NS x\n', { isWhole: false }), [])
  t.match(warningsOf('sub 1 NS ns.sub\n', { isWhole: false }), [/name server ns\.sub\./])
})
