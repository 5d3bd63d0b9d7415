import t from 'tap'
import {
  type FqdnAnswer,
  type FqdnPolicySpec,
  type FqdnState,
  isDue,
  namesOf,
  networkPolicySpec,
  stateAfter,
} from '../../../src/egress/fqdn/network-policy.ts'

const NOW = 1_000_000_000_000
const HOUR = 3_600_000
const OPTIONS = { expirationMs: HOUR, syncPeriodMs: HOUR, retryMs: 5000 }
const POD = { matchLabels: { role: 'example' } }
const HTTPS = [{ port: 443, protocol: 'TCP' }]

const answer = (ttlSeconds: number | undefined, ...addresses: string[]): FqdnAnswer => ({
  addresses,
  ttlSeconds,
})
/** By CIDR, the seconds that are left. */
const known = (expiry: Record<string, number>, nextSeconds = 0): FqdnState => ({
  nextLookupMs: NOW + nextSeconds * 1000,
  expiryMs: new Map(Object.entries(expiry).map(([cidr, left]) => [cidr, NOW + left * 1000])),
})
const shown = ({ nextLookupMs, expiryMs }: FqdnState) => ({
  next: (nextLookupMs - NOW) / 1000,
  expiry: Object.fromEntries([...expiryMs].map(([cidr, endMs]) => [cidr, (endMs - NOW) / 1000])),
})

t.test('what a name is after its servers answered', async (t) => {
  const table: {
    name: string
    before?: FqdnState
    answers: readonly FqdnAnswer[]
    next: number
    expiry: Record<string, number>
  }[] = [
    {
      name: 'the first answer',
      answers: [answer(30, '192.0.2.1', '2001:db8::1')],
      next: 30.8,
      expiry: { '192.0.2.1/32': 3600, '2001:db8::1/128': 3600 },
    },
    {
      name: 'two servers with different addresses and TTLs',
      answers: [answer(30, '192.0.2.1'), answer(20, '192.0.2.2', '192.0.2.1')],
      next: 20.8,
      expiry: { '192.0.2.1/32': 3600, '192.0.2.2/32': 3600 },
    },
    {
      name: 'addresses that were adopted: the unexpired ones stay',
      before: known({ '10.0.0.1/32': 60, '::1/128': 60, '127.0.0.1/32': -60 }),
      answers: [answer(30, '192.0.2.1')],
      next: 30.8,
      expiry: { '10.0.0.1/32': 60, '::1/128': 60, '192.0.2.1/32': 3600 },
    },
    {
      name: 'an expiry is never moved to an earlier time',
      before: known({ '192.0.2.1/32': 7200 }),
      answers: [answer(30, '192.0.2.1')],
      next: 30.8,
      expiry: { '192.0.2.1/32': 7200 },
    },
    {
      name: 'no answer: again soon, and nothing is lost',
      before: known({ '192.0.2.1/32': 60 }),
      answers: [answer(undefined), answer(undefined)],
      next: 5,
      expiry: { '192.0.2.1/32': 60 },
    },
    {
      name: 'a dead server beside a good one',
      answers: [answer(undefined), answer(60, '192.0.2.1')],
      next: 60.8,
      expiry: { '192.0.2.1/32': 3600 },
    },
    {
      name: 'a TTL above the period',
      answers: [answer(86_400, '192.0.2.1')],
      next: 3600.8,
      expiry: { '192.0.2.1/32': 3600 },
    },
    {
      name: 'TTL 0: no loop',
      answers: [answer(0, '192.0.2.1')],
      next: 5,
      expiry: { '192.0.2.1/32': 3600 },
    },
  ]
  for (const { name, before, answers, next, expiry } of table) {
    const state = stateAfter(before, answers, NOW, OPTIONS)
    t.strictSame(shown(state), { next, expiry }, name)
    t.notOk(isDue(state, NOW), name)
    t.ok(isDue(state, NOW + next * 1000))
  }
  t.ok(isDue(undefined, NOW))
})

t.test('the NetworkPolicy that results', async (t) => {
  const states = new Map([
    ['a.example', known({ '192.0.2.2/32': 60, '192.0.2.1/32': 60, '192.0.2.9/32': -1 })],
    ['b.example', known({ '192.0.2.1/32': 60, '2001:db8::1/128': 60 })],
  ])
  const to = (...fqdns: string[]) => [{ to: [{ fqdns }], ports: HTTPS }]
  const block = (...cidrs: string[]) => cidrs.map((cidr) => ({ ipBlock: { cidr } }))
  const both = block('192.0.2.1/32', '192.0.2.2/32', '2001:db8::1/128')
  const table: { name: string; spec: FqdnPolicySpec; want: object }[] = [
    {
      name: 'sorted, without repetitions and expired addresses',
      spec: { podSelector: POD, egress: to('b.example', 'a.example') },
      want: { policyTypes: ['Egress'], egress: [{ to: both, ports: HTTPS }] },
    },
    {
      name: 'a rule without addresses is left out, and denies',
      spec: { podSelector: POD, egress: to('unknown.example') },
      want: { policyTypes: ['Egress'], egress: [] },
    },
    {
      name: 'one of two rules',
      spec: { podSelector: POD, egress: [...to('unknown.example'), ...to('b.example')] },
      want: {
        policyTypes: ['Egress'],
        egress: [{ to: block('192.0.2.1/32', '2001:db8::1/128'), ports: HTTPS }],
      },
    },
    {
      name: 'ingress',
      spec: { podSelector: POD, ingress: [{ from: [{ fqdns: ['a.example'] }] }] },
      want: {
        policyTypes: ['Ingress'],
        ingress: [{ from: block('192.0.2.1/32', '192.0.2.2/32') }],
      },
    },
    {
      name: 'policy types as written',
      spec: { podSelector: POD, policyTypes: ['Ingress', 'Egress'], egress: to('a.example') },
      want: {
        policyTypes: ['Ingress', 'Egress'],
        egress: [{ to: block('192.0.2.1/32', '192.0.2.2/32'), ports: HTTPS }],
        ingress: [],
      },
    },
  ]
  for (const { name, spec, want } of table) {
    t.strictSame(networkPolicySpec(spec, states, NOW), { podSelector: POD, ...want }, name)
  }
})

t.test('the names of a policy', async (t) => {
  const spec: FqdnPolicySpec = {
    podSelector: POD,
    egress: [{ to: [{ fqdns: ['a.example', 'b.example'] }, { fqdns: ['a.example'] }] }],
    ingress: [{ from: [{ fqdns: ['c.example'] }] }],
  }
  t.strictSame([...namesOf(spec)], ['a.example', 'b.example', 'c.example'])
})
