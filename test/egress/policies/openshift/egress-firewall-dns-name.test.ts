import t from 'tap'
import { Rcode } from '../../../../src/dns/iana/index.ts'
import {
  type DnsNameEntry,
  EGRESS_FIREWALL_DNS_NAME,
} from '../../../../src/egress/policies/openshift/egress-firewall-dns-name.ts'
import {
  DEFAULT_LIMITS,
  type Lookup,
} from '../../../../src/egress/policies/openshift/resolved-names.ts'

const NOW = 1_000_000_000_000
const WILD = '*.example.com.'

/** `name ttl/age: ip …` as an entry. */
function entry(text: string): DnsNameEntry {
  const [dnsName = '', time = '', ...ips] = text.replace(':', ' ').split(/ +/)
  const [ttl, age] = time.split('/').map(Number)
  return { dnsName, ips, ttlSeconds: ttl!, lookupMs: NOW - age! * 1000 }
}

/** `name ttl: ip …` as a lookup; `name RCODE` as a failure. */
function lookup(text: string): Lookup {
  const [dnsName = '', ttl = '', ...ips] = text.replace(':', ' ').trim().split(/ +/)
  const rcode = ttl === 'NXDOMAIN' ? Rcode.NXDOMAIN : Rcode.NOERROR
  return {
    dnsName,
    rcode,
    addresses: ips.map((ip) => ({ ip, ttlSeconds: Number(ttl) })),
    nowMs: NOW,
  }
}

const show = ({ dnsName, ips, ttlSeconds, lookupMs }: DnsNameEntry): string =>
  `${dnsName} ${ttlSeconds}/${(NOW - lookupMs) / 1000}: ${ips.join(' ')}`

t.test('the status after a lookup', async (t) => {
  const table: {
    what: string
    spec?: string
    prior?: readonly string[]
    lookups: readonly string[]
    want: readonly string[]
  }[] = [
    {
      what: 'the first answer',
      lookups: ['w. 30: 1.1.1.1 1.1.1.2'],
      want: ['w. 30/0: 1.1.1.1 1.1.1.2'],
    },
    { what: 'TTL 0', lookups: ['w. 0: 1.1.1.1'], want: ['w. 5/0: 1.1.1.1'] },
    {
      what: 'the next lookup is the same: added',
      prior: ['w. 40/10: 1.1.1.1'],
      lookups: ['w. 30: 1.1.1.2'],
      want: ['w. 40/10: 1.1.1.1 1.1.1.2'],
    },
    {
      what: 'the next lookup is later: replaced',
      prior: ['w. 40/20: 1.1.1.1'],
      lookups: ['w. 30: 1.1.1.2'],
      want: ['w. 30/0: 1.1.1.2'],
    },
    {
      what: 'the next lookup is 5 s later: kept',
      prior: ['w. 30/5: 1.1.1.1'],
      lookups: ['w. 30: 1.1.1.1'],
      want: ['w. 30/5: 1.1.1.1'],
    },
    {
      what: 'a failure, and NODATA',
      prior: ['w. 30/30: 1.1.1.1'],
      lookups: ['w. NXDOMAIN', 'w. 0:'],
      want: ['w. 30/30: 1.1.1.1'],
    },
    {
      what: 'AAAA after A, with a longer TTL',
      lookups: ['w. 30: 1.1.1.1', 'w. 300: 2001:db8::1'],
      want: ['w. 30/0: 1.1.1.1 2001:db8::1'],
    },
    {
      what: 'AAAA after A, with a shorter TTL',
      lookups: ['w. 300: 1.1.1.1', 'w. 30: 2001:db8::1'],
      want: ['w. 30/0: 1.1.1.1 2001:db8::1'],
    },
    {
      what: 'an expired family is kept until its lookup',
      prior: ['w. 30/30: 1.1.1.1 2001:db8::1'],
      lookups: ['w. 30: 1.1.1.2'],
      want: ['w. 30/0: 2001:db8::1 1.1.1.2'],
    },
    {
      what: 'another writer was later',
      prior: ['w. 60/-10: 1.1.1.1'],
      lookups: ['w. 30: 1.1.1.2'],
      want: ['w. 60/-10: 1.1.1.1 1.1.1.2'],
    },
    {
      what: 'a wildcard, then a name that it covers',
      spec: WILD,
      lookups: [`${WILD} 30: 1.1.1.1`, 'w.example.com. 30: 1.1.1.1'],
      want: [`${WILD} 30/0: 1.1.1.1`],
    },
    {
      what: 'a wildcard of both families covers one',
      spec: WILD,
      prior: [`${WILD} 30/0: 1.1.1.1 2001:db8::1`],
      lookups: ['w.example.com. 30: 1.1.1.1'],
      want: [`${WILD} 30/0: 1.1.1.1 2001:db8::1`],
    },
    {
      what: 'a wildcard with more addresses covers nothing',
      spec: WILD,
      prior: [`${WILD} 30/0: 1.1.1.1 1.1.1.2`],
      lookups: ['w.example.com. 30: 1.1.1.1'],
      want: [`${WILD} 30/0: 1.1.1.1 1.1.1.2`, 'w.example.com. 30/0: 1.1.1.1'],
    },
    {
      what: 'names, then the wildcard that covers one of them',
      spec: WILD,
      prior: ['a.example.com. 35/5: 1.1.1.1', 'b.example.com. 35/5: 1.1.1.9'],
      lookups: [`${WILD} 30: 1.1.1.1`],
      want: [`${WILD} 30/0: 1.1.1.1`, 'b.example.com. 35/5: 1.1.1.9'],
    },
  ]
  for (const { what, spec = 'w.', prior = [], lookups, want } of table) {
    const before = prior.map(entry)
    const { update } = EGRESS_FIREWALL_DNS_NAME
    const after = lookups
      .map(lookup)
      .reduce((sum: readonly DnsNameEntry[], one) => update(sum, spec, one, DEFAULT_LIMITS), before)
    t.strictSame(after.map(show), want, what)
    const isChanged = JSON.stringify(prior) !== JSON.stringify(want)
    t.equal(after !== before, isChanged, `${what}: a new list only if something changed`)
  }
})

t.test('the form of the API', async (t) => {
  const { print, scan, accepts, withoutExpired, forEachAddress } = EGRESS_FIREWALL_DNS_NAME
  const entries = ['a. 30/5: 1.1.1.1 2001:db8::1', 'b. 60/0: 1.1.1.2'].map(entry)
  const printed = print(entries)
  t.strictSame(printed, [
    {
      dnsName: 'a.',
      ips: ['1.1.1.1', '2001:db8::1'],
      ttl: 30,
      lastLookupTime: '2001-09-09T01:46:35Z',
    },
    { dnsName: 'b.', ips: ['1.1.1.2'], ttl: 60, lastLookupTime: '2001-09-09T01:46:40Z' },
  ])
  t.strictSame(scan(printed), entries)
  t.strictSame(scan(null), [])
  t.strictSame(scan([1, {}, { dnsName: 'a.' }]), [])
  t.ok(accepts('*.example.com.'))
  t.ok(accepts('com.'))
  t.notOk(accepts('a_b.example.com.'))
  t.strictSame(withoutExpired(entries, NOW + 30_000).map(show), ['b. 60/0: 1.1.1.2'])
  const ends: string[] = []
  forEachAddress(entries[0]!, (ip, endMs) => ends.push(`${ip} ${endMs - NOW}`))
  t.strictSame(ends, ['1.1.1.1 25000', '2001:db8::1 25000'])
})

t.test('entries whose names differ in case are one', async (t) => {
  const { scan, print } = EGRESS_FIREWALL_DNS_NAME
  const prior = ['A.b. 60/10: 1.1.1.1 1.1.1.2', 'c. 30/0: 1.1.1.9', 'a.B. 30/0: 1.1.1.2 1.1.1.3']
  t.strictSame(scan(print(prior.map(entry))).map(show), [
    'a.b. 30/0: 1.1.1.1 1.1.1.2 1.1.1.3',
    'c. 30/0: 1.1.1.9',
  ])
})
