import t, { type Test } from 'tap'
import { parseMessage } from '../../src/dns/message/parse-message.ts'
import { printRdata } from '../../src/dns/rdata/index.ts'
import { UdpClient } from '../support/client.ts'
import { ask } from '../support/dig.ts'
import { startGdnsd } from '../support/gdnsd.ts'
import { probeManifest } from '../support/manifest.ts'
import { needs } from '../support/peer.ts'
import { startServer } from '../support/server.ts'

/** Enough to see both of two answers with similar weights, except once in 10^10 times. */
const DRAWS = 40

/** Subnets of clients. No map has the third one. */
const CLIENTS = { west: '198.51.100.0/24', south: '203.0.113.0/24', elsewhere: '192.0.2.0/24' }
type Client = keyof typeof CLIENTS

interface Endpoint {
  /** Absent: for all clients. */
  readonly dc?: 'east' | 'west' | 'south' | 'spare'
  readonly type?: 'AAAA' | 'CNAME'
  readonly targets: readonly string[]
  readonly weight?: number
}

/** One kind of resource of gdnsd's own GEO tests, in our words. Answers: those that a client may get. */
interface Row {
  readonly what: string
  readonly name: string
  /** What follows `NAME =>` in `resources` of gdnsd, or a whole reference such as `geoip!NAME/west`. */
  readonly gdnsd: string
  readonly endpoints: readonly Endpoint[]
  /** Addresses that are down. */
  readonly down?: readonly string[]
  readonly failover?: string
  /** `CLIENT TYPE`: the answers of both, or of gdnsd where `different` has ours. */
  readonly answers: Readonly<Record<string, readonly string[]>>
  readonly different?: {
    readonly why: string
    readonly answers: Readonly<Record<string, readonly string[]>>
  }
}

const EVERYONE = (answers: readonly string[]) => ({
  'west A': answers,
  'south A': answers,
  'elsewhere A': answers,
})

/** One address for each datacenter, in gdnsd and in Sextant. */
const plain = (first: number): Pick<Row, 'gdnsd' | 'endpoints'> => ({
  gdnsd: `{ map => m, dcmap => { east => 192.0.2.${first}, west => 192.0.2.${first + 1}, south => 192.0.2.${first + 2} } }`,
  endpoints: [
    { dc: 'east', targets: [`192.0.2.${first}`] },
    { dc: 'west', targets: [`192.0.2.${first + 1}`] },
    { dc: 'south', targets: [`192.0.2.${first + 2}`] },
  ],
})

const ROWS: readonly Row[] = [
  {
    what: 'an address for each datacenter',
    name: 'one',
    ...plain(1),
    answers: {
      'west A': ['192.0.2.2'],
      'south A': ['192.0.2.3'],
      'elsewhere A': ['192.0.2.1'],
      'west AAAA': ['-'],
    },
  },
  {
    what: 'several addresses for a datacenter: all are returned',
    name: 'several',
    gdnsd:
      '{ map => m, dcmap => { east => 192.0.2.11, west => { a => 192.0.2.12, b => 192.0.2.13 }, south => { a => 192.0.2.14, b => 192.0.2.15, c => 192.0.2.16 } } }',
    endpoints: [
      { dc: 'east', targets: ['192.0.2.11'] },
      { dc: 'west', targets: ['192.0.2.12', '192.0.2.13'] },
      { dc: 'south', targets: ['192.0.2.14', '192.0.2.15', '192.0.2.16'] },
    ],
    answers: {
      'west A': ['192.0.2.12 192.0.2.13'],
      'south A': ['192.0.2.14 192.0.2.15 192.0.2.16'],
      'elsewhere A': ['192.0.2.11'],
    },
  },
  {
    what: 'a name for one datacenter only',
    name: 'fixed',
    gdnsd: 'geoip!several/south',
    endpoints: [{ targets: ['192.0.2.14', '192.0.2.15', '192.0.2.16'] }],
    answers: EVERYONE(['192.0.2.14 192.0.2.15 192.0.2.16']),
  },
  {
    what: 'addresses of both families',
    name: 'both',
    gdnsd:
      '{ map => m, dcmap => { east => 192.0.2.21, west => { addrs_v4 => { a => 192.0.2.22 }, addrs_v6 => { a => 2001:db8::22 } }, south => { addrs_v4 => { a => 192.0.2.23 }, addrs_v6 => { a => 2001:db8::23, b => 2001:db8::24 } } } }',
    endpoints: [
      { dc: 'east', targets: ['192.0.2.21'] },
      { dc: 'west', targets: ['192.0.2.22'] },
      { dc: 'south', targets: ['192.0.2.23'] },
      { dc: 'west', type: 'AAAA', targets: ['2001:db8::22'] },
      { dc: 'south', type: 'AAAA', targets: ['2001:db8::23', '2001:db8::24'] },
    ],
    answers: {
      'west A': ['192.0.2.22'],
      'west AAAA': ['2001:db8::22'],
      'south AAAA': ['2001:db8::23 2001:db8::24'],
      'elsewhere A': ['192.0.2.21'],
    },
  },
  {
    what: 'a datacenter without an address of the family that the client asks for',
    name: 'lacking',
    gdnsd:
      '{ map => m, dcmap => { east => 192.0.2.31, west => 2001:db8::32, south => 192.0.2.33 } }',
    endpoints: [
      { dc: 'east', targets: ['192.0.2.31'] },
      { dc: 'west', type: 'AAAA', targets: ['2001:db8::32'] },
      { dc: 'south', targets: ['192.0.2.33'] },
    ],
    answers: {
      'west A': ['-'],
      'west AAAA': ['2001:db8::32'],
      'south A': ['192.0.2.33'],
      'south AAAA': ['-'],
    },
    different: {
      why: 'endpoints of one type do not know those of another: a client without an endpoint gets the default, or all',
      answers: { 'west A': ['192.0.2.31'], 'south AAAA': ['2001:db8::32'] },
    },
  },
  {
    what: 'an alias for each datacenter',
    name: 'alias',
    gdnsd:
      '{ map => m, dcmap => { east => e.example.net., west => w.example.net., south => s.example.net. } }',
    endpoints: [
      { dc: 'east', type: 'CNAME', targets: ['e.example.net.'] },
      { dc: 'west', type: 'CNAME', targets: ['w.example.net.'] },
      { dc: 'south', type: 'CNAME', targets: ['s.example.net.'] },
    ],
    answers: {
      'west A': ['w.example.net.'],
      'south AAAA': ['s.example.net.'],
      'elsewhere A': ['e.example.net.'],
    },
  },
  {
    what: 'groups with weights: one group, all of its addresses',
    name: 'groups',
    gdnsd:
      '{ map => m, plugin => weighted, dcmap => { east => { a => [192.0.2.41, 1] }, west => { g1 => { a => [192.0.2.42, 20], b => [192.0.2.43, 20] }, g2 => { a => [192.0.2.44, 20], b => [192.0.2.45, 20] } }, south => { a => [192.0.2.46, 20], b => [192.0.2.47, 20] } } }',
    endpoints: [
      { dc: 'east', targets: ['192.0.2.41'] },
      { dc: 'west', targets: ['192.0.2.42', '192.0.2.43'], weight: 40 },
      { dc: 'west', targets: ['192.0.2.44', '192.0.2.45'], weight: 40 },
      { dc: 'south', targets: ['192.0.2.46'], weight: 20 },
      { dc: 'south', targets: ['192.0.2.47'], weight: 20 },
    ],
    answers: {
      'west A': ['192.0.2.42 192.0.2.43', '192.0.2.44 192.0.2.45'],
      'south A': ['192.0.2.46', '192.0.2.47'],
      'elsewhere A': ['192.0.2.41'],
    },
  },
  {
    what: 'aliases with weights: one of them',
    name: 'aliases',
    gdnsd:
      '{ map => m, plugin => weighted, dcmap => { east => { a => [e.example.net., 1] }, west => { a => [w1.example.net., 16], b => [w2.example.net., 20] }, south => { a => [s.example.net., 1] } } }',
    endpoints: [
      { dc: 'east', type: 'CNAME', targets: ['e.example.net.'] },
      { dc: 'west', type: 'CNAME', targets: ['w1.example.net.'], weight: 16 },
      { dc: 'west', type: 'CNAME', targets: ['w2.example.net.'], weight: 20 },
      { dc: 'south', type: 'CNAME', targets: ['s.example.net.'] },
    ],
    answers: {
      'west A': ['w1.example.net.', 'w2.example.net.'],
      'elsewhere A': ['e.example.net.'],
    },
  },
  {
    what: 'the first datacenter is down: the next one',
    name: 'next',
    ...plain(51),
    down: ['192.0.2.52'],
    failover: 'NET-west: east, NET-south',
    answers: { 'west A': ['192.0.2.51'], 'south A': ['192.0.2.53'], 'elsewhere A': ['192.0.2.51'] },
  },
  {
    what: 'two datacenters are down: the third one',
    name: 'third',
    ...plain(54),
    down: ['192.0.2.54', '192.0.2.56'],
    failover: 'NET-south: NET-west\n*: NET-west',
    answers: EVERYONE(['192.0.2.55']),
  },
  {
    what: 'all datacenters are down: the first one of the list',
    name: 'dead',
    ...plain(57),
    down: ['192.0.2.57', '192.0.2.58', '192.0.2.59'],
    answers: { 'west A': ['192.0.2.58'], 'south A': ['192.0.2.59'], 'elsewhere A': ['192.0.2.57'] },
  },
  {
    what: 'one of two addresses is down: the other one',
    name: 'half',
    gdnsd:
      '{ map => m, dcmap => { east => 192.0.2.61, west => { a => 192.0.2.62, b => 192.0.2.63 }, south => 192.0.2.64 } }',
    endpoints: [
      { dc: 'east', targets: ['192.0.2.61'] },
      { dc: 'west', targets: ['192.0.2.62', '192.0.2.63'] },
      { dc: 'south', targets: ['192.0.2.64'] },
    ],
    down: ['192.0.2.62'],
    answers: { 'west A': ['192.0.2.63'], 'south A': ['192.0.2.64'] },
  },
  {
    what: 'the light member of a weighted datacenter is down: the heavy one',
    name: 'light',
    gdnsd:
      '{ map => m, plugin => weighted, dcmap => { east => { a => [192.0.2.71, 1] }, west => { a => [192.0.2.72, 90], b => [192.0.2.73, 10] }, south => { a => [192.0.2.74, 1] } } }',
    endpoints: [
      { dc: 'east', targets: ['192.0.2.71'] },
      { dc: 'west', targets: ['192.0.2.72'], weight: 90 },
      { dc: 'west', targets: ['192.0.2.73'], weight: 10 },
      { dc: 'south', targets: ['192.0.2.74'] },
    ],
    down: ['192.0.2.73'],
    answers: { 'west A': ['192.0.2.72'] },
  },
  {
    what: 'the heavy member of a weighted datacenter is down',
    name: 'heavy',
    gdnsd:
      '{ map => m, plugin => weighted, dcmap => { east => { a => [192.0.2.75, 1] }, west => { a => [192.0.2.76, 90], b => [192.0.2.77, 10] }, south => { a => [192.0.2.78, 1] } } }',
    endpoints: [
      { dc: 'east', targets: ['192.0.2.75'] },
      { dc: 'west', targets: ['192.0.2.76'], weight: 90 },
      { dc: 'west', targets: ['192.0.2.77'], weight: 10 },
      { dc: 'south', targets: ['192.0.2.78'] },
    ],
    down: ['192.0.2.76'],
    answers: { 'west A': ['192.0.2.75'] },
    different: {
      why: 'Sextant has no up_thresh: the members that are up serve until the last one is down',
      answers: { 'west A': ['192.0.2.77'] },
    },
  },
  {
    what: 'a client in no map, and the first of the datacenters is down',
    name: 'unmapped',
    ...plain(81),
    down: ['192.0.2.81'],
    answers: { 'elsewhere A': ['192.0.2.82'] },
    different: {
      why: 'without a line * of a failover list, all endpoints that are up serve',
      answers: { 'elsewhere A': ['192.0.2.82 192.0.2.83'] },
    },
  },
  {
    what: 'an empty list of datacenters',
    name: 'nowhere',
    gdnsd: '{ map => empty, dcmap => { east => 192.0.2.91, west => 192.0.2.92 } }',
    endpoints: [
      { dc: 'east', targets: ['192.0.2.91'] },
      { dc: 'west', targets: ['192.0.2.92'] },
    ],
    answers: { 'south A': ['-'], 'west A': ['192.0.2.92'], 'elsewhere A': ['192.0.2.91'] },
    different: {
      why: 'no endpoint can refuse a client: it gets the default endpoint',
      answers: { 'south A': ['192.0.2.91'] },
    },
  },
  {
    what: 'a group within a datacenter that fails over on its own',
    name: 'nested',
    gdnsd:
      '{ map => m, dcmap => { east => 192.0.2.93, west => { plugin => metafo, datacenters => [a, b], dcmap => { a => 192.0.2.94, b => 192.0.2.95 } }, south => 192.0.2.96 } }',
    endpoints: [
      { dc: 'east', targets: ['192.0.2.93'] },
      { dc: 'west', targets: ['192.0.2.94'] },
      { dc: 'spare', targets: ['192.0.2.95'] },
      { dc: 'south', targets: ['192.0.2.96'] },
    ],
    down: ['192.0.2.94'],
    failover: 'NET-west: NET-spare',
    answers: { 'west A': ['192.0.2.95'], 'south A': ['192.0.2.96'] },
  },
]

const RESOURCES = ROWS.filter(({ gdnsd }) => gdnsd.startsWith('{'))

const CONFIG = `options => { listen => 127.0.0.1:{PORT}, run_dir => {DIR}/run, state_dir => {DIR}/state, edns_client_subnet => true }
plugins => { geoip => {
  maps => {
    m => {
      datacenters => [east, west, south]
      nets => { ${CLIENTS.west} => [west, east, south], ${CLIENTS.south} => [south, east, west] }
    }
    empty => { datacenters => [east, west], nets => { ${CLIENTS.west} => [west, east], ${CLIENTS.south} => [] } }
  }
  resources => {
${RESOURCES.map(({ name, gdnsd }) => `    ${name} => ${gdnsd}`).join('\n')}
  }
} }
`

const isAlias = ({ endpoints }: Row): boolean => endpoints[0]!.type === 'CNAME'
const ZONE = `@ SOA ns1 hostmaster 1 7200 1800 259200 900
@ NS ns1
ns1 A 127.0.0.1
${ROWS.map((row) => `${row.name} 60 ${isAlias(row) ? 'DYNC' : 'DYNA'} ${row.gdnsd.startsWith('{') ? `geoip!${row.name}` : row.gdnsd}`).join('\n')}
`

function manifest({ name, endpoints, failover }: Row): string {
  const dnsName = `${name}.k.example.com`
  return JSON.stringify({
    apiVersion: 'kuadrant.io/v1alpha1',
    kind: 'DNSRecord',
    metadata: {
      name,
      annotations: failover === undefined ? {} : { 'sextant.io/failover': failover },
    },
    spec: {
      rootHost: dnsName,
      endpoints: endpoints.map(({ dc, type = 'A', targets, weight }, i) => ({
        dnsName,
        recordType: type,
        recordTTL: 60,
        setIdentifier:
          endpoints.findIndex((one) => one.dc === dc) === i ? (dc ?? 'all') : `${dc}-${i}`,
        targets,
        providerSpecific: [
          ...(dc === 'east' ? [{ name: 'default', value: 'true' }] : []),
          ...(dc === undefined ? [] : [{ name: 'geo-code', value: `NET-${dc}` }]),
          ...(weight === undefined ? [] : [{ name: 'weight', value: String(weight) }]),
        ],
      })),
    },
  })
}

async function startSextant(t: Test): Promise<number> {
  const corefile = `k.example.com:{PORT} {
    bind 127.0.0.1
    geoip {
        edns-subnet
        net ${CLIENTS.west} NET-west
        net ${CLIENTS.south} NET-south
    }
    kuadrant {
        manifests records
        nameserver ns1.k.example.com 127.0.0.1
    }
}
`
  const files = ROWS.flatMap((row) => [
    [`records/${row.name}.json`, manifest(row)],
    ...(row.down ?? []).map((address) => [
      `records/${row.name}-${address}.yaml`,
      probeManifest(row.name, address, false),
    ]),
  ])
  return (await startServer(t, { corefile, files: Object.fromEntries(files) })).port
}

/** The answers that a client gets, each with its addresses sorted; '-' = none. */
async function answersOf(
  client: UdpClient,
  name: string,
  question: string,
  draws: number,
): Promise<string[]> {
  const [from, type] = question.split(' ') as [Client, string]
  const ask = async (): Promise<string> => {
    const message = parseMessage(
      await client.ask({ name: `${name}.k.example.com`, type, subnet: CLIENTS[from] }),
    )
    const records = message!.answer.map((record) => printRdata(record.type, record.rdata))
    return records.sort().join(' ') || '-'
  }
  const answers = new Set<string>()
  for (let i = 0; i < draws; i++) answers.add(await ask())
  return [...answers].sort()
}

async function compare(t: Test, port: number, isSextant: boolean): Promise<void> {
  const client = await UdpClient.connect(port)
  t.teardown(() => client.close())
  for (const { what, name, answers, different } of ROWS) {
    for (const [question, both] of Object.entries(answers)) {
      const ours = isSextant ? different?.answers[question] : undefined
      const got = await answersOf(client, name, question, DRAWS)
      const why = ours === undefined ? '' : `, because ${different!.why}`
      t.strictSame(got, ours ?? both, `${what}: ${question}${why}`)
    }
  }
}

/** ECS scopes by name and subnet: both servers have the same. */
const SCOPES = [
  { name: 'one', subnet: '198.51.100.0/24', scope: 24 },
  { name: 'one', subnet: '198.51.100.128/25', scope: 24 },
  { name: 'one', subnet: '198.51.100.7/32', scope: 24 },
  { name: 'one', subnet: '198.51.0.0/16', scope: 18 },
  { name: 'several', subnet: '203.0.113.9/32', scope: 24 },
  { name: 'fixed', subnet: '198.51.100.0/24', scope: 0 },
  { name: 'one', subnet: '8.8.8.0/24', scope: 1 },
  { name: 'one', subnet: '0.0.0.0/0', scope: 0 },
  { name: 'ns1', subnet: '198.51.100.0/24', scope: 0 },
  { name: 'missing', subnet: '198.51.100.0/24', scope: 0 },
]

async function compareScopes(t: Test, port: number): Promise<void> {
  for (const { name, subnet, scope } of SCOPES) {
    const { text } = await ask('dig', port, [`${name}.k.example.com`, 'A', `+subnet=${subnet}`])
    t.equal(
      /CLIENT-SUBNET: \S+\/(\d+)$/m.exec(text)?.[1],
      String(scope),
      `scope of ${name} for ${subnet}`,
    )
  }
}

t.test(
  'answers are those of gdnsd 3.8.1, except where the table says why',
  needs('dig'),
  async (t) => {
    const port = await startSextant(t)
    await compare(t, port, true)
    await compareScopes(t, port)
  },
)

t.test('gdnsd answers as in the table', needs('gdnsd', 'dig'), async (t) => {
  const states = ROWS.flatMap(({ down = [] }) => down.map((address) => `"${address}/up" => DOWN`))
  const port = await startGdnsd(t, { config: CONFIG, zone: ZONE, states })
  await compare(t, port, false)
  await compareScopes(t, port)
})
