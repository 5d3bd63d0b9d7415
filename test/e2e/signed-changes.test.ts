import { join } from 'node:path'
import t from 'tap'
import { Random } from '../../src/base/random.ts'
import { RRType } from '../../src/dns/iana/types.ts'
import { parseMessage } from '../../src/dns/message/parse-message.ts'
import { printRdata } from '../../src/dns/rdata/index.ts'
import { UdpClient } from '../support/client.ts'
import { freePort } from '../support/free-port.ts'
import { getText } from '../support/get-text.ts'
import { probeManifest } from '../support/manifest.ts'
import { serialAt } from '../support/nameservers.ts'
import { needs } from '../support/peer.ts'
import { putFile, type RunningServer, runSextant, startServer } from '../support/server.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'
import { until } from '../support/until.ts'
import { startUnboundResolver } from './resolvers.ts'
import { makeSettledKeys } from './settled-keys.ts'
import { dnskeysOf, SignedClients, strictCheck } from './signed-clients.ts'

// Long: it waits for drains and the steps of shifts.

/* Drains, shifts, health and weights make signatures of new answers only, and every answer validates meanwhile. */

const ZONE = 's.example'
const EUROPE = '198.51.100.0/24'
const AMERICA = '203.0.113.0/24'
/** Names of each kind. */
const NAMES = 10
/** So many answers have each address that clients get at all, all but once in 10^9 times. */
const DRAWS = 60

function endpoint(name: string, target: string, id: string, weight: number, code?: string) {
  const settings = [{ name: 'weight', value: String(weight) }]
  if (code !== undefined) settings.push({ name: 'geo-code', value: code })
  return {
    ...{ dnsName: `${name}.${ZONE}`, recordType: 'A', recordTTL: 1, targets: [target] },
    ...{ setIdentifier: id, providerSpecific: settings },
  }
}

function record(name: string, endpoints: readonly object[], annotations: object = {}): string {
  return JSON.stringify({
    ...{ apiVersion: 'kuadrant.io/v1alpha1', kind: 'DNSRecord', metadata: { name, annotations } },
    spec: { rootHost: ZONE, endpoints },
  })
}

const numbers = Array.from({ length: NAMES }, (_, i) => i)

/** Names with two endpoints in Europe and one elsewhere, and names with four of which an answer has two. */
function records(weight: number): string {
  const geo = numbers.flatMap((i) => [
    endpoint(`geo${i}`, '192.0.2.1', 'eu1', weight, 'GEO-EU'),
    endpoint(`geo${i}`, '192.0.2.2', 'eu2', 50, 'GEO-EU'),
    endpoint(`geo${i}`, '192.0.2.3', 'any', 100, '*'),
  ])
  const multi = numbers.flatMap((i) =>
    [1, 2, 3, 4].map((n) => endpoint(`multi${i}`, `192.0.3.${n}`, `m${n}`, weight + n)),
  )
  return [record('geo', geo), record('multi', multi, { 'sextant.io/answers': '2' })].join('\n---\n')
}

function shiftRecord(annotations: object): string {
  const endpoints = [
    endpoint('shift', '192.0.4.1', 's1', 100),
    endpoint('shift', '192.0.4.2', 's2', 0),
  ]
  return record('shift', endpoints, annotations)
}

const QUESTIONS = numbers.flatMap((i) => [`geo${i}`, `multi${i}`]).concat('shift', 'nope')

class Stage {
  readonly #server: RunningServer
  readonly #metrics: number
  readonly #client: UdpClient

  constructor(server: RunningServer, metrics: number, client: UdpClient) {
    this.#server = server
    this.#metrics = metrics
    this.#client = client
  }

  write(path: string, text: string): void {
    putFile(this.#server.directory, path, text)
  }

  async run(...args: string[]): Promise<void> {
    const { code, stderr } = await runSextant(this.#server.directory, args)
    if (code !== 0) throw new Error(stderr)
  }

  /** The last octets of the addresses that clients get. */
  async addresses(name: string, subnet: string): Promise<string> {
    const found = new Set<number>()
    const question = { name: `${name}.${ZONE}`, type: 'A', subnet }
    for (let i = 0; i < DRAWS; i++) {
      const { answer } = parseMessage(await this.#client.ask(question))!
      for (const { type, rdata } of answer) if (type === RRType.A) found.add(rdata[3]!)
    }
    return [...found].sort().join('')
  }

  /** Signatures made, without those of the SOA, which each version has. */
  async made(): Promise<number> {
    const { text } = await getText(`http://127.0.0.1:${this.#metrics}/metrics`)
    const [, made] = /^sextant_zone_signatures_made_total\{zone="s\.example\."\} (\d+)/m.exec(text)!
    return Number(made) - (await serialAt(this.#server.port, ZONE))
  }
}

interface Change {
  readonly what: string
  /** The name that shows that the change is served, and the last octets of its addresses then. */
  readonly shown: readonly [name: string, addresses: string]
  /** New answers, at most. */
  readonly answers: number
  readonly act: (stage: Stage) => void | Promise<void>
}

const SHIFT = (percents: string) => ({ 'sextant.io/shift': `to=s2 steps=${percents} bake=1s` })

const CHANGES: readonly Change[] = [
  {
    what: 'a drain',
    shown: ['geo3', '1'],
    answers: 0,
    act: (stage) => stage.run('drain', 'id:eu2', '--until', '1h'),
  },
  {
    what: 'the end of the drain',
    shown: ['geo3', '12'],
    answers: NAMES,
    act: (stage) => stage.run('undrain', 'id:eu2'),
  },
  {
    what: 'a drain of one of four',
    shown: ['multi3', '134'],
    answers: 0,
    act: (stage) => stage.write('drains', 'id:m2 by=test\n'),
  },
  {
    what: 'a drain of another instead',
    shown: ['multi3', '124'],
    answers: 2 * NAMES,
    act: (stage) => stage.write('drains', 'id:m3 by=test\n'),
  },
  {
    what: 'the end of that drain',
    shown: ['multi3', '1234'],
    answers: 3 * NAMES,
    act: (stage) => stage.write('drains', ''),
  },
  {
    what: 'a drain of a place',
    shown: ['geo3', '3'],
    answers: 0,
    act: (stage) => stage.write('drains', 'geo:GEO-EU by=test\n'),
  },
  {
    what: 'the end of the drain of a place',
    shown: ['geo3', '12'],
    answers: 2 * NAMES,
    act: (stage) => stage.write('drains', ''),
  },
  {
    what: 'an address that is down',
    shown: ['geo3', '2'],
    answers: 0,
    act: (stage) => stage.write('zones/health.yaml', probeManifest('geo', '192.0.2.1', false)),
  },
  {
    what: 'an address that is up',
    shown: ['geo3', '12'],
    answers: NAMES,
    act: (stage) => stage.write('zones/health.yaml', probeManifest('geo', '192.0.2.1', true)),
  },
  {
    what: 'other weights',
    shown: ['geo3', '12'],
    answers: 0,
    act: (stage) => stage.write('zones/records.yaml', records(40)),
  },
  {
    what: 'the first step of a shift',
    shown: ['shift', '12'],
    answers: 1,
    act: (stage) => stage.write('zones/shift.yaml', shiftRecord(SHIFT('40%,50%'))),
  },
  {
    what: 'further steps',
    shown: ['shift', '12'],
    answers: 0,
    act: (stage) => stage.write('zones/shift.yaml', shiftRecord(SHIFT('30%,40%,60%'))),
  },
  {
    what: 'the last step',
    shown: ['shift', '2'],
    answers: 0,
    act: (stage) => stage.write('zones/shift.yaml', shiftRecord(SHIFT('100%'))),
  },
  {
    what: 'the end of the shift',
    shown: ['shift', '1'],
    answers: 1,
    act: (stage) => stage.write('zones/shift.yaml', shiftRecord({})),
  },
]

const tools = needs('unbound')
t.test('changes of steering sign only new answers', tools, async (t) => {
  const keys = join(temporaryDirectory(t), 'keys')
  await makeSettledKeys(keys, ZONE, false)
  const metrics = await freePort()
  const server = await startServer(t, {
    corefile: `${ZONE}:{PORT} {
  bind 127.0.0.1
  errors
  prometheus 127.0.0.1:${metrics}
  geoip {
    edns-subnet
    net ${EUROPE} GEO-EU
  }
  dnssec {
    keys ${keys}
  }
  kuadrant {
    manifests zones
    drain drains
    shift shifts
  }
}
`,
    files: {
      'zones/records.yaml': records(100),
      'zones/health.yaml': probeManifest('geo', '192.0.2.1', true),
      'zones/shift.yaml': shiftRecord({}),
      drains: '',
    },
  })
  const random = new Random(3)
  const clients = new SignedClients(() => {
    const name = `${QUESTIONS[random.below(QUESTIONS.length)]!}.${ZONE}`
    return {
      name,
      type: random.below(8) === 0 ? 'TXT' : 'A',
      subnet: random.below(2) === 0 ? EUROPE : AMERICA,
    }
  })
  const dnskeys = await dnskeysOf(server.port, ZONE)
  const resolver = await startUnboundResolver(t, {
    key: `${ZONE}. 60 IN DNSKEY ${printRdata(RRType.DNSKEY, dnskeys[0]!)}`,
    zones: { [ZONE]: [server.port] },
  })
  await clients.askResolver(resolver)
  await clients.askServer('server', server.port, strictCheck(clients, ZONE, dnskeys))
  const client = await UdpClient.connect(server.port)
  t.teardown(() => client.close())
  const stage = new Stage(server, metrics, client)
  for (const { what, shown, answers, act } of CHANGES) {
    const before = await stage.made()
    const { count } = clients
    await act(stage)
    const [name, addresses] = shown
    await until(async () => (await stage.addresses(name, EUROPE)) === addresses, what)
    await until(() => clients.count > count + 200, 'more answers')
    const made = (await stage.made()) - before
    t.ok(made <= answers, `${what}: ${made} signatures of ${answers} new answers`)
  }
  await clients.stop()
  t.strictSame(clients.faults, [])
  t.comment(`${clients.count} answers`)
  t.notMatch(server.output(), /\[ERROR\]/)
})
