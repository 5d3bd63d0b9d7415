import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { systemClock } from '../../../src/base/clock.ts'
import { printLatin1 } from '../../../src/base/latin1.ts'
import { sealText } from '../../../src/base/persist/sealed-text.ts'
import { check } from '../../../src/cli/check.ts'
import type { CachedPeer } from '../../../src/peering/cache/cached-peer.ts'
import { cachedPeers, printPeerCache } from '../../../src/peering/cache/peer-cache-text.ts'
import type { PeerEndpoint } from '../../../src/peering/peer-endpoint.ts'
import { composePeerEndpoint } from '../../../src/peering/v2-codec.ts'
import { recordManifest } from '../../support/manifest.ts'
import { endpoint } from '../../support/peer-text.ts'
import { recordOutput } from '../../support/recorded-output.ts'

const PEER = '192.0.2.53:53'
const FAST = 'protocol: TCP, port: 80, interval: 5s, failureThreshold: 4'
const SLOW = 'protocol: TCP, port: 80'
const ADVICE = 'set spec.healthCheck.interval and failureThreshold, for example 10s and 3 for 60 s'

/** The manifest of a record with a health check; '' = without one. */
function manifest(name: string, address: string, healthCheck: string): string {
  const text = recordManifest(name, address)
  return healthCheck === '' ? text : text.replace('spec:', `spec:\n  healthCheck: {${healthCheck}}`)
}

/** A peer cache of site berlin: what paris reported. */
function cacheOf(endpoints: readonly PeerEndpoint[]): string {
  const zone = new Map<string, Set<string>>()
  for (const one of endpoints) {
    const known = zone.get(one.rootHost) ?? new Set()
    zone.set(one.rootHost, known.add(printLatin1(composePeerEndpoint(one)!)))
  }
  const nowMs = systemClock.monotonic()
  const peer: CachedPeer = {
    address: PEER,
    keyName: '',
    generation: 'v2',
    seenMs: nowMs,
    zoneSeenMs: nowMs,
    serial: 1,
    ownSite: 'paris',
    zone,
    hosts: [],
  }
  const parts = { site: 'berlin', clock: systemClock, onCut: () => {} }
  const kind = cachedPeers('berlin', systemClock)
  return [...sealText(kind, printPeerCache([peer], new Map(), parts))].join('')
}

function theirs(name: string, target: string): PeerEndpoint {
  const host = `${name}.k.example.com`
  return endpoint({ site: 'paris', rootHost: host, dnsName: host, targets: [target] })
}

interface Given {
  readonly records: readonly string[]
  /** undefined = the Corefile names no peer cache. */
  readonly cached?: readonly PeerEndpoint[]
  readonly lines?: string
  readonly site?: string
}

async function run(t: Test, { records, cached, lines = '', site = 'berlin' }: Given) {
  rmSync(t.testdirName, { recursive: true, force: true })
  const files = { 'records.yaml': records.join('') }
  const directory = t.testdir({ zones: files })
  const file = cached === undefined ? '' : 'peer-cache peers\n'
  const block = `manifests zones\nsite ${site}\npeer 192.0.2.53\n${file}${lines}`
  const corefile = `k.example.com {\nbind 127.0.0.1\nroot ${directory}\nkuadrant {\n${block}\nnameserver ns.example.net\n}\n}\n`
  writeFileSync(join(directory, 'Corefile'), corefile)
  if (cached !== undefined) writeFileSync(join(directory, 'peers'), cacheOf(cached))
  const { output, printed, errors } = recordOutput(directory)
  const code = await check(['-conf', join(directory, 'Corefile')], output)
  return {
    code,
    foreseen: printed.filter((line) => /^(if|and) /.test(line)),
    warnings: errors.filter((line) => !line.includes('without tsig')),
  }
}

const CASES: readonly (Given & {
  readonly name: string
  readonly want: readonly string[]
  readonly warnings?: readonly string[]
})[] = [
  {
    name: 'with the endpoints of the peer',
    records: [manifest('app', '198.51.100.1', FAST), manifest('www', '198.51.100.2', '')],
    cached: [theirs('app', '203.0.113.1'), theirs('www', '203.0.113.2')],
    want: [
      'if berlin dies: www.k.example.com: 198.51.100.2 is kept for 24 h: no health check',
      'if paris dies: www.k.example.com: 203.0.113.2 is kept for 24 h: no health check',
      'if berlin dies: app.k.example.com: 1 of 2 addresses is removed within 40 s',
      'if paris dies: app.k.example.com: 1 of 2 addresses is removed within 40 s',
    ],
    warnings: [
      '[WARNING] zones/records.yaml:18: DNSRecord default/www: no health check: if a site dies, its addresses of www.k.example.com are kept for 24 h; set spec.healthCheck',
    ],
  },
  {
    name: 'with the defaults of Kuadrant',
    records: [manifest('app', '198.51.100.1', SLOW)],
    cached: [theirs('app', '203.0.113.1')],
    want: ['berlin', 'paris'].map((site) => {
      const what = '1 of 2 addresses is removed within 35 min 10 s'
      return `if ${site} dies: app.k.example.com: ${what}: ${ADVICE}`
    }),
    warnings: [
      `[WARNING] zones/records.yaml:5: DNSRecord default/app: if a site dies, its addresses of app.k.example.com are removed only after up to 35 min 10 s; ${ADVICE}`,
    ],
  },
  {
    name: 'hosts of one site alone',
    records: [manifest('app', '198.51.100.1', '')],
    cached: ['a', 'b', 'c', 'd'].map((name) => theirs(name, '203.0.113.1')),
    want: [
      'if berlin dies: app.k.example.com: 198.51.100.1 is kept: no other site has an address',
      'if paris dies: a.k.example.com, b.k.example.com, c.k.example.com and 1 more host keep their addresses: no other site has an address',
    ],
  },
  {
    name: 'without a peer cache',
    records: [manifest('app', '198.51.100.1', SLOW), manifest('www', '198.51.100.2', '')],
    want: [
      'if berlin dies: www.k.example.com: 198.51.100.2 is kept for 24 h: no health check',
      `if berlin dies: app.k.example.com: 1 address is removed within 35 min 10 s: ${ADVICE}`,
    ],
  },
  {
    name: 'settings',
    records: [manifest('app', '198.51.100.1', FAST)],
    cached: [theirs('app', '203.0.113.1')],
    lines: 'probe-peers off\nsilent-site remove 1m\n',
    want: [
      'if berlin dies: app.k.example.com: 198.51.100.1 is kept for 60 s: probe-peers is off',
      'if paris dies: app.k.example.com: 203.0.113.1 is kept for 60 s: probe-peers is off',
    ],
  },
  {
    name: 'a quorum that no two sites reach',
    records: [manifest('app', '198.51.100.1', FAST)],
    lines: 'quorum 2\n',
    want: [
      'if berlin dies: app.k.example.com: 198.51.100.1 is kept for 24 h: quorum needs 2 sites, and 1 would be left',
    ],
  },
]

for (const { name, want, warnings = [], ...given } of CASES) {
  t.test(name, async (t) => {
    const found = await run(t, given)
    t.strictSame(found.foreseen, want)
    t.strictSame(found.warnings, warnings)
    t.equal(found.code, 0)
  })
}

t.test('lines and warnings are bounded', async (t) => {
  const names = Array.from({ length: 30 }, (_, i) => `h${i + 10}`)
  const records = names.map((name, i) => manifest(name, `198.51.100.${i}`, ''))
  const cached = names.map((name, i) => theirs(name, `203.0.113.${i}`))
  const { foreseen, warnings } = await run(t, { records, cached })
  t.equal(foreseen.length, 21)
  t.equal(foreseen.at(-1), 'and 40 more lines about the death of sites')
  t.equal(warnings.length, 21)
  t.ok(warnings.some((line) => line.endsWith('and 10 more hosts without a fast health check')))
})

t.test('a cache of another site is not used, nor one of peers whose key is missing', async (t) => {
  const records = [manifest('app', '198.51.100.1', FAST)]
  const cached = [theirs('app', '203.0.113.1')]
  const other = await run(t, { records, cached, site: 'rome' })
  t.strictSame(other.foreseen, [
    'if rome dies: app.k.example.com: 1 address is removed within 40 s',
  ])
  t.match(other.warnings, [/peers is not used: it belongs to site "berlin"/])
  const lost = await run(t, { records, cached, lines: 'tsig k.example. none.key\n' })
  t.equal(lost.code, 1, 'the key is a fault')
  t.strictSame(lost.foreseen, [])
})
