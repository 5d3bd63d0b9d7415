import t from 'tap'
import { Rcode } from '../../../../src/dns/iana/index.ts'
import {
  isSameLookup,
  type Lookup,
  type ResolvedName,
  updateResolvedNames,
} from '../../../../src/egress/policies/openshift/resolved-names.ts'

const NOW = 1_000_000_000_000
const WWW = 'www.example.com.'
const SUB = 'sub.example.com.'
const WILD = '*.example.com.'
const TWO = ['1.1.1.1', '1.1.1.2']

interface Entry {
  readonly name?: string
  readonly ips?: readonly string[]
  readonly ttl: number
  /** Seconds since the lookup. */
  readonly age: number
  readonly failures?: number
  readonly reason?: string
}

const entry = ({
  name = WWW,
  ips = TWO,
  ttl,
  age,
  failures = 0,
  reason = 'NOERROR',
}: Entry): ResolvedName => ({
  dnsName: name,
  failures,
  addresses: ips.map((ip) => ({ ip, ttlSeconds: ttl, lookupMs: NOW - age * 1000 })),
  degraded: { isDegraded: reason !== 'NOERROR', reason, sinceMs: 0 },
})

const answer = (ttlSeconds: number, dnsName = WWW, ips: readonly string[] = TWO): Lookup => ({
  dnsName,
  rcode: Rcode.NOERROR,
  addresses: ips.map((ip) => ({ ip, ttlSeconds })),
  nowMs: NOW,
})
const failed = (dnsName = WWW, rcode: number = Rcode.NXDOMAIN): Lookup => ({
  dnsName,
  rcode,
  addresses: [],
  nowMs: NOW,
})

/** `name failures reason: ip/ttl …`, in order; the times are compared through the TTL. */
const shown = (names: readonly ResolvedName[]): string[] =>
  names.map(({ dnsName, failures, addresses, degraded }) => {
    const list = addresses.map(({ ip, ttlSeconds }) => `${ip}/${ttlSeconds}`).sort()
    return `${dnsName} ${failures} ${degraded?.reason}: ${list.join(' ')}`
  })

const both = (ttl: number): string => `1.1.1.1/${ttl} 1.1.1.2/${ttl}`

t.test('the status after a lookup', async (t) => {
  const table: {
    name: string
    spec?: string
    prior?: readonly Entry[]
    lookups: readonly Lookup[]
    want: readonly string[]
  }[] = [
    { name: 'the first answer', lookups: [answer(30)], want: [`${WWW} 0 NOERROR: ${both(30)}`] },
    {
      name: 'the next lookup would be 10 s later: renewed',
      prior: [{ ttl: 40, age: 20 }],
      lookups: [answer(30)],
      want: [`${WWW} 0 NOERROR: ${both(30)}`],
    },
    {
      name: 'the next lookup would be at the same time: kept',
      prior: [{ ttl: 40, age: 10 }],
      lookups: [answer(30)],
      want: [`${WWW} 0 NOERROR: ${both(40)}`],
    },
    {
      name: 'an answer after a failure, at the same time',
      prior: [{ ttl: 30, age: 10, failures: 1, reason: 'NXDOMAIN' }],
      lookups: [answer(20)],
      want: [`${WWW} 0 NOERROR: ${both(30)}`],
    },
    {
      name: 'an answer after failures',
      prior: [{ ttl: 30, age: 25, failures: 2, reason: 'SERVFAIL' }],
      lookups: [answer(30)],
      want: [`${WWW} 0 NOERROR: ${both(30)}`],
    },
    {
      name: 'an address more',
      prior: [{ ttl: 30, age: 10 }],
      lookups: [answer(30, WWW, ['1.1.1.3'])],
      want: [`${WWW} 0 NOERROR: ${both(30)} 1.1.1.3/30`],
    },
    { name: 'TTL 0', lookups: [answer(0)], want: [`${WWW} 0 NOERROR: ${both(5)}`] },
    { name: 'a failure of an unknown name', lookups: [failed()], want: [] },
    {
      name: 'NODATA',
      prior: [{ ttl: 30, age: 10, failures: 1 }],
      lookups: [answer(9, WWW, [])],
      want: [`${WWW} 1 NOERROR: ${both(30)}`],
    },
    {
      name: 'a failure',
      prior: [{ ttl: 30, age: 10, failures: 1, reason: 'NXDOMAIN' }],
      lookups: [failed()],
      want: [`${WWW} 2 NXDOMAIN: ${both(30)}`],
    },
    {
      name: 'a failure near the end',
      prior: [{ ttl: 12, age: 10, failures: 1, reason: 'NXDOMAIN' }],
      lookups: [failed()],
      want: [`${WWW} 2 NXDOMAIN: ${both(5)}`],
    },
    {
      name: 'one failure too many',
      prior: [{ ttl: 30, age: 30, failures: 5, reason: 'NXDOMAIN' }],
      lookups: [failed()],
      want: [],
    },
    {
      name: 'one failure too many, before the end',
      prior: [{ ttl: 30, age: 10, failures: 5, reason: 'NXDOMAIN' }],
      lookups: [failed(WWW, Rcode.SERVFAIL)],
      want: [`${WWW} 6 SERVFAIL: ${both(30)}`],
    },
    {
      name: 'a wildcard: a name',
      spec: WILD,
      lookups: [answer(30)],
      want: [`${WWW} 0 NOERROR: ${both(30)}`],
    },
    {
      name: 'a wildcard: itself',
      spec: WILD,
      lookups: [answer(30, WILD)],
      want: [`${WILD} 0 NOERROR: ${both(30)}`],
    },
    {
      name: 'a wildcard, then a name that it covers',
      spec: WILD,
      lookups: [answer(30, WILD), answer(30)],
      want: [`${WILD} 0 NOERROR: ${both(30)}`],
    },
    {
      name: 'a name, then the wildcard that covers it',
      spec: WILD,
      lookups: [answer(30), answer(30, WILD)],
      want: [`${WILD} 0 NOERROR: ${both(30)}`],
    },
    {
      name: 'two names, then the wildcard that covers them',
      spec: WILD,
      prior: [
        { ttl: 35, age: 5 },
        { name: SUB, ttl: 35, age: 5 },
      ],
      lookups: [answer(30, WILD)],
      want: [`${WILD} 0 NOERROR: ${both(30)}`],
    },
    {
      name: 'a wildcard is known, and covers a name behind one that it does not cover',
      spec: WILD,
      prior: [
        { name: WILD, ttl: 30, age: 0 },
        { name: SUB, ips: ['2.1.1.1'], ttl: 30, age: 0 },
        { ttl: 30, age: 0 },
      ],
      lookups: [answer(30, WILD)],
      want: [`${WILD} 0 NOERROR: ${both(30)}`, `${SUB} 0 NOERROR: 2.1.1.1/30`],
    },
    {
      name: 'other addresses than the wildcard',
      spec: WILD,
      prior: [{ ips: ['2.1.1.1'], ttl: 30, age: 0 }],
      lookups: [answer(30, WILD)],
      want: [`${WILD} 0 NOERROR: ${both(30)}`, `${WWW} 0 NOERROR: 2.1.1.1/30`],
    },
    {
      name: 'some of the addresses of the wildcard',
      spec: WILD,
      prior: [{ name: WILD, ttl: 30, age: 0 }],
      lookups: [answer(30, WWW, ['1.1.1.1'])],
      want: [`${WILD} 0 NOERROR: ${both(30)}`, `${WWW} 0 NOERROR: 1.1.1.1/30`],
    },
    {
      name: 'the wildcard is removed',
      spec: WILD,
      prior: [
        { name: WILD, ttl: 30, age: 30, failures: 5, reason: 'NXDOMAIN' },
        { ttl: 20, age: 10 },
      ],
      lookups: [failed(WILD)],
      want: [`${WWW} 0 NOERROR: ${both(20)}`],
    },
    {
      name: 'a name below the wildcard fails',
      spec: WILD,
      prior: [
        { name: WILD, ttl: 20, age: 5 },
        { ttl: 30, age: 5, failures: 1, reason: 'NXDOMAIN' },
      ],
      lookups: [failed()],
      want: [`${WILD} 0 NOERROR: ${both(20)}`, `${WWW} 2 NXDOMAIN: ${both(30)}`],
    },
  ]
  for (const { name, spec = WWW, prior = [], lookups, want } of table) {
    let names: readonly ResolvedName[] = prior.map(entry)
    for (const lookup of lookups) names = updateResolvedNames(names, spec, lookup)
    t.strictSame(shown(names), want, name)
  }
})

t.test('a lookup without a change returns the same array: no write', async (t) => {
  const names = [entry({ ttl: 30, age: 2, failures: 3 })]
  t.equal(updateResolvedNames(names, WWW, answer(30)), names, 'only the count would change')
  t.equal(updateResolvedNames(names, WWW, failed(SUB)), names)
  const wild = [entry({ name: WILD, ttl: 30, age: 1 })]
  t.equal(updateResolvedNames(wild, WILD, answer(30)), wild, 'covered')
  t.equal(updateResolvedNames(wild, WILD, answer(30, WILD)), wild)
})

t.test('the condition keeps its time until status or reason changes', async (t) => {
  const first = updateResolvedNames([entry({ ttl: 30, age: 1 })], WWW, failed())
  t.equal(first[0]!.degraded!.sinceMs, NOW)
  const later = { ...failed(), nowMs: NOW + 1000 }
  t.equal(updateResolvedNames(first, WWW, later)[0]!.degraded!.sinceMs, NOW)
  const other = { ...failed(WWW, Rcode.REFUSED), nowMs: NOW + 2000 }
  t.equal(updateResolvedNames(first, WWW, other)[0]!.degraded!.sinceMs, NOW + 2000)
})

t.test('the same next lookup', async (t) => {
  const table: [age: number, ttl: number, next: number, same: boolean][] = [
    [0, 2, 2, true],
    [0, 2, 1, true],
    [3, 2, 1, true],
    [0, 7, 1, false],
    [6, 1, 1, false],
    [0, 6, 1, true],
  ]
  for (const [age, ttl, next, same] of table) {
    const address = { ip: '1.1.1.1', ttlSeconds: ttl, lookupMs: NOW - age * 1000 }
    t.equal(isSameLookup(address, NOW, next), same, `${age} ${ttl} ${next}`)
  }
})
