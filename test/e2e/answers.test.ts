import t, { type Test } from 'tap'
import { askEach } from '../support/dig.ts'
import { probeManifest } from '../support/manifest.ts'
import { needs } from '../support/peer.ts'
import { type RunningServer, startServer } from '../support/server.ts'

/** Of each name and client. By chance an endpoint is in none of these answers once in 10^6 times. */
const ASKS = 60
const [EUROPE, ELSEWHERE] = ['203.0.113.0/25', '198.51.100.0/24']

const COREFILE = `k.example.com:{PORT} {
    bind 127.0.0.1
    geoip {
        edns-subnet
        net 203.0.113.0/25 GEO-EU
        net 203.0.113.128/25 GEO-SA
    }
    kuadrant {
        manifests records
        nameserver ns1.k.example.com 192.0.2.51
        nameserver ns2.k.example.com 192.0.2.52
        nameserver ns3.k.example.com 192.0.2.53
        answers 2
    }
}
kdrnt:{PORT} {
    bind 127.0.0.1
    kuadrant {
        manifests records
        answers 2
    }
}
`

interface Sketch {
  readonly name: string
  readonly type?: string
  readonly weights: readonly (number | undefined)[]
  readonly code?: string
  /** The first octets of the targets. */
  readonly target?: string
  readonly targets?: number
}

const endpoints = ({ name, type = 'A', weights, code, target = '192.0.2.', targets = 1 }: Sketch) =>
  weights.map((weight, i) => ({
    dnsName: name,
    recordType: type,
    setIdentifier: `${code}${i}`,
    recordTTL: i === 0 ? 30 : 60,
    targets: Array.from({ length: targets }, (_, k) => `${target}${1 + i * targets + k}`),
    providerSpecific: [
      ...(weight === undefined ? [] : [{ name: 'weight', value: String(weight) }]),
      ...(code === undefined ? [] : [{ name: 'geo-code', value: code }]),
    ],
  }))

function record(
  name: string,
  answers: string | undefined,
  sketches: readonly Sketch[],
  sticky = '',
) {
  const annotations = {
    ...(answers === undefined ? {} : { 'sextant.io/answers': answers }),
    ...(sticky === '' ? {} : { 'sextant.io/sticky': sticky }),
  }
  return JSON.stringify({
    apiVersion: 'kuadrant.io/v1alpha1',
    kind: 'DNSRecord',
    metadata: { name, namespace: 'tests', annotations },
    spec: { rootHost: 'k.example.com', endpoints: sketches.flatMap(endpoints) },
  })
}

const WEIGHTS = [100, 90, 80, 70, 60, 50, 40, 0]
const STICKY_NAME = 'sticky.k.example.com'
const SIX = [1, 1, 1, 1, 1, 1]
const FILES: Readonly<Record<string, string>> = {
  'records/owners.json': record('owners', '3', [
    ...['k.example.com', '*.wild.k.example.com', 'app.k.example.com'].map((name) => {
      return { name, weights: WEIGHTS }
    }),
    { name: 'geo.k.example.com', weights: [5, 3, 2, 1], code: 'GEO-EU' },
    { name: 'geo.k.example.com', weights: [1], code: '*', target: '192.0.2.10' },
  ]),
  'records/zone.json': record('zone', undefined, [
    { name: 'zone.k.example.com', weights: Array(5).fill(undefined) },
    { name: 'pairs.k.example.com', weights: [1, 1, 1], targets: 2 },
  ]),
  'records/off.json': record('off', 'off', [
    { name: 'off.k.example.com', weights: Array(5).fill(undefined) },
  ]),
  'records/sticky.json': record(
    'sticky',
    '3',
    [
      { name: STICKY_NAME, weights: SIX },
      { name: STICKY_NAME, type: 'AAAA', weights: SIX, target: '2001:db8::' },
    ],
    'true',
  ),
  'records/cname.json': record('cname', '3', [
    { name: 'cname.k.example.com', type: 'CNAME', weights: [2, 1], target: 'app.k.example.com#' },
  ]).replaceAll(/#\d/g, ''),
  'records/big.json': record('big', '64', [
    {
      name: 'big.k.example.com',
      weights: Array(80).fill(undefined),
      target: '10.0.0.',
      targets: 3,
    },
  ]),
  'records/down.json': record('down', '3', [
    { name: 'down.k.example.com', weights: [4, 3, 2, 1], target: '192.0.2.2' },
  ]),
  'records/alldown.json': record('alldown', '3', [
    { name: 'alldown.k.example.com', weights: [4, 3, 2, 1], target: '192.0.2.3' },
  ]),
  'records/probes.yaml': [
    ...['192.0.2.21', '192.0.2.22'].map((address) =>
      probeManifest('down', address, false, 'tests'),
    ),
    ...[1, 2, 3, 4].map((i) => probeManifest('alldown', `192.0.2.3${i}`, false, 'tests')),
  ].join(''),
}

/** What an answer has, and the scope. */
interface Answer {
  readonly targets: readonly string[]
  readonly ttls: ReadonlySet<string>
  readonly flags: readonly string[]
  readonly text: string
}

async function answers(
  { port }: RunningServer,
  questions: readonly (readonly string[])[],
): Promise<Answer[]> {
  const replies = await askEach(port, [], questions)
  return replies.map(({ answer, flags, text }) => {
    const fields = answer.map((line) => line.split(' '))
    return {
      targets: fields.filter(([, , , type]) => type !== 'CNAME').map((line) => line[4]!),
      ttls: new Set(fields.map(([, ttl]) => ttl!)),
      flags,
      text,
    }
  })
}

t.test('answers have several endpoints', needs('dig'), async (t) => {
  const server = await startServer(t, { corefile: COREFILE, files: FILES })
  const many = async (name: string, options: readonly string[] = ['A']) =>
    answers(server, Array(ASKS).fill([`${name}.`, ...options]))

  /** Each answer has so many of `all`, each once, and each of `all` is in some answer. */
  const check = (t: Test, found: readonly Answer[], count: number, all: readonly string[]) => {
    for (const { targets, ttls } of found) {
      const isRight = targets.every((target) => all.includes(target))
      const isOnce = new Set(targets).size === count && targets.length === count
      // The TTL is the lowest of the set.
      const isRightTtl = ttls.size === 1 && ttls.has('30')
      if (!isRight || !isOnce || !isRightTtl) t.fail(`${targets} for ${[...ttls]} s`)
    }
    t.strictSame([...new Set(found.flatMap(({ targets }) => targets))].sort(), [...all].sort())
  }
  const of = (count: number, first = '192.0.2.') =>
    Array.from({ length: count }, (_, i) => `${first}${i + 1}`)

  for (const name of ['k.example.com', 'any.wild.k.example.com', 'app.k.example.com']) {
    await t.test(`${name}: three of seven, never the standby`, async (t) => {
      check(t, await many(name), 3, of(7))
    })
  }
  await t.test('the tier of the client, with the scope of its class', async (t) => {
    const found = await many('geo.k.example.com', ['A', `+subnet=${EUROPE}`])
    check(t, found, 3, of(4))
    for (const { text } of found) t.match(text, /CLIENT-SUBNET: 203\.0\.113\.0\/25\/25/)
    const [other] = await answers(server, [['geo.k.example.com.', 'A', `+subnet=${ELSEWHERE}`]])
    t.strictSame(other!.targets, ['192.0.2.101'], 'not filled up from another tier')
  })
  await t.test('the number of the zone, and records that set another one', async (t) => {
    check(t, await many('zone.k.example.com'), 2, of(5))
    check(t, (await many('off.k.example.com')).slice(0, 1), 5, of(5))
    const pairs = await many('pairs.k.example.com')
    check(t, pairs, 4, of(6))
    for (const { targets } of pairs) {
      const numbers = targets.map((target) => Math.ceil(Number(target.split('.')[3]) / 2))
      t.equal(new Set(numbers).size, 2, 'whole endpoints')
    }
  })
  await t.test('sets that mean something as a whole are whole', async (t) => {
    const ask = [
      ['k.example.com.', 'NS'],
      ...['zone', 'sticky', 'app'].map((name) => [`${name}.k.example.com.kdrnt.`, 'A']),
    ]
    const found = await answers(server, ask)
    t.strictSame(
      found.map(({ targets }) => targets.length),
      [3, 5, 6, 8],
      'peers get all endpoints',
    )
  })
  await t.test('a name has one CNAME', async (t) => {
    const [first] = await answers(server, [['cname.k.example.com.', 'CNAME']])
    t.match(first!.text, /ANSWER: 1,/)
    const [led] = await answers(server, [['cname.k.example.com.', 'A']])
    t.equal(led!.targets.length, 3, 'it leads to several addresses')
  })
  await t.test('sticky: a network keeps its endpoints, and A and AAAA agree', async (t) => {
    const networks = Array.from({ length: 20 }, (_, i) => `10.1.${i}.0/24`)
    const ask = (type: string) =>
      answers(
        server,
        networks.map((subnet) => [`${STICKY_NAME}.`, type, `+subnet=${subnet}`]),
      )
    const [a, again, aaaa] = [await ask('A'), await ask('A'), await ask('AAAA')]
    const numbers = (found: readonly Answer[]) =>
      found.map(({ targets }) => targets.map((target) => target.at(-1)).join(''))
    t.strictSame(numbers(a), numbers(again))
    t.strictSame(numbers(a), numbers(aaaa))
    t.ok(new Set(numbers(a)).size > 5, 'other networks get others')
    for (const { text, targets } of a) {
      t.match(text, /CLIENT-SUBNET: 10\.1\.\d+\.0\/24\/24/)
      t.equal(new Set(targets).size, 3)
    }
  })
  await t.test('what is down is not in an answer, as long as something is up', async (t) => {
    for (const { targets } of await many('down.k.example.com')) {
      t.strictSame([...targets].sort(), ['192.0.2.23', '192.0.2.24'])
    }
    check(t, await many('alldown.k.example.com'), 3, of(4, '192.0.2.3'))
  })
  await t.test('a long answer is truncated over UDP and whole over TCP', async (t) => {
    const question = ['big.k.example.com.', 'A']
    const [udp, tcp] = await answers(server, [
      [...question, '+bufsize=1232', '+ignore'],
      [...question, '+tcp'],
    ])
    t.ok(udp!.flags.includes('tc'))
    t.equal(new Set(tcp!.targets).size, 3 * 64)
  })
  await t.test('a query for signatures gets the same', async (t) => {
    check(t, await many('app.k.example.com', ['A', '+dnssec']), 3, of(7))
  })
})
