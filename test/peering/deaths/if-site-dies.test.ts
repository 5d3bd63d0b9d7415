import t from 'tap'
import { scanCidr } from '../../../src/dns/text/address.ts'
import { ProbePolicy } from '../../../src/health/probes/probe-policy.ts'
import {
  type DeathRules,
  type HostOfSites,
  ifSiteDies,
  ProbeRoom,
} from '../../../src/peering/deaths/if-site-dies.ts'
import { shared } from '../samples.ts'

type Site = HostOfSites['endpoints'][number]

const HOST = 'app.example.com'
const CHECK = { protocol: 'TCP', intervalMs: 5000, failureThreshold: 4 } as const
const KUADRANT = { protocol: 'HTTPS', intervalMs: 300_000, failureThreshold: 5 } as const

const RULES: DeathRules = {
  site: 'berlin',
  sites: 2,
  knowsOthers: true,
  silentMs: 24 * 3600_000,
  unprobed: '',
  quorum: 0,
  holdDownMs: 0,
  policy: new ProbePolicy(),
  commands: new Set(),
  allDown: 'open',
}

const at = (site: string, ...targets: readonly string[]): Site => {
  const recordType = targets[0]!.includes(':') ? 'AAAA' : 'A'
  return shared({ site, dnsName: HOST, recordType, targets })
}
const probedAt = ({ site, endpoint }: Site, address: string): Site => {
  return { site, endpoint: { ...endpoint, probeAt: { address, port: 0 } } }
}
const to = (site: string, dnsName: string, target: string): Site => {
  return shared({ site, dnsName, recordType: 'CNAME', targets: [target] })
}

const BERLIN = at('berlin', '192.0.2.10', '192.0.2.11')
const PARIS = at('paris', '198.51.100.10')
const BOTH = [BERLIN, PARIS]
const ADVICE = 'set spec.healthCheck.interval and failureThreshold, for example 10s and 3 for 60 s'

interface Case {
  readonly name: string
  readonly endpoints?: readonly Site[]
  readonly host?: Partial<HostOfSites>
  readonly rules?: Partial<DeathRules>
  /** By site. */
  readonly want: Readonly<Record<string, string>>
  readonly kinds?: string
}

const ALONE = 'no other site has an address'
const CASES: readonly Case[] = [
  {
    name: 'a health check removes the addresses of the dead site',
    want: {
      berlin: '2 of 3 addresses are removed within 40 s',
      paris: '1 of 3 addresses is removed within 40 s',
    },
    kinds: 'fine fine',
  },
  {
    name: 'no health check',
    host: { check: undefined },
    want: {
      berlin: '2 of 3 addresses are kept for 24 h: no health check',
      paris: '198.51.100.10 is kept for 24 h: no health check',
    },
    kinds: 'unchecked unchecked',
  },
  {
    name: 'silent-site remove',
    host: { check: undefined },
    rules: { silentMs: 60_000 },
    endpoints: [at('berlin', '192.0.2.10'), PARIS],
    want: {
      berlin: '192.0.2.10 is kept for 60 s: no health check',
      paris: '198.51.100.10 is kept for 60 s: no health check',
    },
  },
  {
    name: 'the defaults of Kuadrant',
    host: { check: KUADRANT },
    want: {
      berlin: `2 of 3 addresses are removed within 35 min 10 s: ${ADVICE}`,
      paris: `1 of 3 addresses is removed within 35 min 10 s: ${ADVICE}`,
    },
    kinds: 'slow slow',
  },
  {
    name: 'hold-down',
    rules: { holdDownMs: 600_000 },
    want: {
      berlin: '2 of 3 addresses are removed within 10 min 40 s: set a shorter hold-down',
      paris: '1 of 3 addresses is removed within 10 min 40 s: set a shorter hold-down',
    },
    kinds: 'slow slow',
  },
  {
    name: 'probe-peers off',
    rules: { unprobed: 'probe-peers is off' },
    want: {
      berlin: '2 of 3 addresses are kept for 24 h: probe-peers is off',
      paris: '198.51.100.10 is kept for 24 h: probe-peers is off',
    },
    kinds: 'setting setting',
  },
  {
    name: 'a quorum that the remaining sites cannot reach',
    rules: { sites: 3, quorum: 3 },
    want: {
      berlin: '2 of 3 addresses are kept for 24 h: quorum needs 3 sites, and 2 would be left',
      paris: '198.51.100.10 is kept for 24 h: quorum needs 3 sites, and 2 would be left',
    },
    kinds: 'setting setting',
  },
  {
    name: 'a quorum that they can reach',
    rules: { sites: 3, quorum: 2 },
    want: {
      berlin: '2 of 3 addresses are removed within 40 s',
      paris: '1 of 3 addresses is removed within 40 s',
    },
  },
  {
    name: 'a command that the Corefile lacks',
    host: { check: { ...CHECK, protocol: 'EXEC', command: 'deep' } },
    want: {
      berlin: '2 of 3 addresses are kept for 24 h: no probe-exec defines command deep',
      paris: '198.51.100.10 is kept for 24 h: no probe-exec defines command deep',
    },
    kinds: 'setting setting',
  },
  {
    name: 'a command that it has',
    host: { check: { ...CHECK, protocol: 'EXEC', command: 'deep' } },
    rules: { commands: new Set(['deep']) },
    want: {
      berlin: '2 of 3 addresses are removed within 40 s',
      paris: '1 of 3 addresses is removed within 40 s',
    },
  },
  {
    name: 'addresses that are never probed',
    endpoints: [at('berlin', '127.0.0.10', '192.0.2.10'), PARIS],
    want: {
      berlin:
        '127.0.0.10 is kept for 24 h: not probed: loopback; 1 of 3 addresses is removed within 40 s',
      paris: '1 of 3 addresses is removed within 40 s',
    },
    kinds: 'unchecked fine',
  },
  {
    name: 'probe-allow',
    endpoints: [at('berlin', '127.0.0.10'), PARIS],
    rules: { policy: new ProbePolicy([scanCidr('127.0.0.0/8')!]) },
    want: {
      berlin: '1 of 2 addresses is removed within 40 s',
      paris: '1 of 2 addresses is removed within 40 s',
    },
  },
  {
    name: 'a private health-address of a public address',
    endpoints: [
      probedAt(at('berlin', '192.0.2.10'), '10.0.0.1'),
      probedAt(at('paris', '198.51.100.10'), '198.51.100.99'),
    ],
    want: {
      berlin: '192.0.2.10 is kept for 24 h: only its own site can probe its health-address',
      paris: '1 of 2 addresses is removed within 40 s',
    },
  },
  {
    name: 'a host that one site has alone',
    endpoints: [BERLIN],
    want: { berlin: `2 of 2 addresses are kept: ${ALONE}` },
    kinds: 'alone',
  },
  {
    name: 'all-down closed',
    endpoints: [BERLIN],
    rules: { allDown: 'closed' },
    want: {
      berlin: `2 of 2 addresses are removed within 40 s; then the answer is empty: ${ALONE}, and all-down is closed`,
    },
  },
  {
    name: 'all-down closed without a health check',
    endpoints: [BERLIN],
    host: { check: undefined, allDown: 'closed' },
    want: {
      berlin: `2 of 2 addresses are kept for 24 h: no health check; then the answer is empty: ${ALONE}, and all-down is closed`,
    },
  },
  {
    name: 'the record has precedence over the zone',
    endpoints: [BERLIN],
    host: { allDown: 'open' },
    rules: { allDown: 'closed' },
    want: { berlin: `2 of 2 addresses are kept: ${ALONE}` },
  },
  {
    name: 'a type that one site has alone',
    endpoints: [...BOTH, at('paris', '2001:db8::1')],
    want: {
      berlin: '2 of 4 addresses are removed within 40 s',
      paris: `1 of 4 addresses is removed within 40 s; 2001:db8::1 is kept: ${ALONE}`,
    },
    kinds: 'fine alone',
  },
  {
    name: 'addresses that several sites have',
    endpoints: [at('berlin', '192.0.2.1', '192.0.2.10'), at('paris', '192.0.2.1')],
    want: { berlin: '1 of 2 addresses is removed within 40 s' },
  },
  {
    name: 'CNAMEs that leave the host count as addresses',
    endpoints: [
      to('berlin', HOST, 'lb.example.net'),
      to('paris', HOST, 'lb.example.org'),
      shared({ site: 'paris', dnsName: HOST, recordType: 'TXT', targets: ['text'] }),
    ],
    want: {
      berlin: '1 of 2 addresses is removed within 40 s',
      paris: '1 of 2 addresses is removed within 40 s',
    },
  },
  {
    name: 'CNAMEs between the names of a host do not count',
    endpoints: ['berlin', 'paris'].flatMap((site, i) => [
      to(site, HOST, `${site}.${HOST}`),
      shared({ site, dnsName: `${site}.${HOST}`, targets: [`192.0.2.${i}`] }),
    ]),
    want: {
      berlin: '1 of 2 addresses is removed within 40 s',
      paris: '1 of 2 addresses is removed within 40 s',
    },
  },
  {
    name: 'a name of the host that one site has alone',
    endpoints: [
      ...BOTH,
      shared({ site: 'paris', dnsName: `sub.${HOST}`, targets: ['198.51.100.11'] }),
    ],
    want: {
      berlin: '2 of 4 addresses are removed within 40 s',
      paris: `1 of 4 addresses is removed within 40 s; 198.51.100.11 is kept: ${ALONE}`,
    },
  },
  {
    name: 'a host that only other sites have',
    endpoints: [PARIS, at('rome', '203.0.113.10')],
    host: { check: undefined },
    rules: { sites: 3 },
    want: {
      paris:
        '198.51.100.10 is kept for 24 h: this site has no record of the host (unless others find it down)',
      rome: '203.0.113.10 is kept for 24 h: this site has no record of the host (unless others find it down)',
    },
  },
  {
    name: 'other sites are not known',
    endpoints: [BERLIN],
    rules: { knowsOthers: false },
    want: { berlin: '2 addresses are removed within 40 s' },
  },
  {
    name: 'other sites are not known, and there is no health check',
    endpoints: [at('berlin', '192.0.2.10')],
    host: { check: undefined },
    rules: { knowsOthers: false },
    want: { berlin: '192.0.2.10 is kept for 24 h: no health check' },
  },
]

for (const { name, endpoints = BOTH, host = {}, rules = {}, want, kinds } of CASES) {
  t.test(name, async (t) => {
    const given = { host: HOST, endpoints, check: CHECK, allDown: undefined, ...host }
    const found = ifSiteDies(given, { ...RULES, ...rules })
    t.strictSame(Object.fromEntries(found.map(({ site, text }) => [site, text])), want)
    t.ok(found.every((one) => one.host === HOST))
    if (kinds !== undefined) t.equal(found.map(({ kind }) => kind).join(' '), kinds)
  })
}

t.test('more addresses than are probed', async (t) => {
  const targets = Array.from({ length: 1001 }, (_, i) => `198.51.${i >> 8}.${i & 255}`)
  const endpoints = [at('berlin', '192.0.2.10'), at('paris', ...targets)]
  const given = { host: HOST, endpoints, check: CHECK, allDown: undefined }
  const texts = ifSiteDies(given, RULES).map(({ text }) => text)
  t.equal(texts[0], '1 of 1002 addresses is removed within 40 s')
  t.match(
    texts[1],
    /^1000 of 1002 addresses are removed within 40 s; 198\.51\.\S+ is kept for 24 h: only 1000 are probed$/,
  )
})

t.test('the cause is the same for another number of addresses', async (t) => {
  const causeOf = (endpoints: readonly Site[], check: HostOfSites['check']) => {
    return ifSiteDies({ host: HOST, endpoints, check, allDown: undefined }, RULES)[0]!.cause
  }
  const fewer = [at('berlin', '192.0.2.10'), PARIS]
  t.equal(causeOf(BOTH, CHECK), causeOf(fewer, CHECK))
  t.not(causeOf(BOTH, CHECK), causeOf(BOTH, KUADRANT))
  t.not(causeOf(BOTH, CHECK), causeOf(BOTH, undefined))
})

// Beyond the limit of all probes, it promised that the address is removed.
t.test('addresses of peers for which there is no room', async (t) => {
  const room = new ProbeRoom(3)
  const hosts = ['a', 'b', 'c', 'd'].map((name) => ({
    host: name,
    endpoints: [at('berlin', '192.0.2.10'), PARIS].map((one) => ({ ...one, dnsName: name })),
    check: name === 'b' ? undefined : CHECK,
    allDown: undefined,
  }))
  const textOf = (host: HostOfSites, rules = { ...RULES, room }): string | undefined => {
    return ifSiteDies(host, rules).find(({ site }) => site === 'paris')?.text
  }
  const fine = '1 of 2 addresses is removed within 40 s'
  const full = '198.51.100.10 is kept for 24 h: this site probes too many other addresses'
  const unchecked = '198.51.100.10 is kept for 24 h: no health check'
  t.strictSame(
    hosts.map((host) => textOf(host)),
    [fine, unchecked, fine, fine],
  )
  t.equal(room.text, '')
  t.strictSame(
    hosts.map((host) => textOf(host)),
    [full, unchecked, full, full],
  )
  t.equal(room.text, '3 addresses of peers are not probed: this site probes at most 3')
  t.match(textOf(hosts[0]!, { ...RULES, room, unprobed: 'probe is off' }), /probe is off/)
  t.equal(room.beyond, 3, 'probes that are off need no room')
})
