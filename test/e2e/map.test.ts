import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { Random } from '../../src/base/random.ts'
import { RRType } from '../../src/dns/iana/types.ts'
import { parseMessage } from '../../src/dns/message/parse-message.ts'
import { printRdata } from '../../src/dns/rdata/index.ts'
import { bundledLocator } from '../../src/geo/bundled-locator.ts'
import type { AnswerMap } from '../../src/plugin/admin-map.ts'
import { UdpClient } from '../support/client.ts'
import { freePort, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

// Long: it sends many queries.

const PAIRS = 1000
const NAMES = 40
const STICKY_EVERY = 5
/** A share of 1 in 60 is missed in fewer than one of 10^9 runs. */
const QUERIES_MAX = 1500
/** Answers with a smaller share of a country may be in networks that the test does not know. */
const SHARE_MIN = 0.02
const CODES = ['DE', 'US', 'JP', 'FR', 'BR', 'GEO-EU', 'GEO-NA', 'GEO-AS', 'GEO-AF', '*', '*']

const pick = <T>(random: Random, list: readonly T[]): T => list[random.below(list.length)]!

interface Endpoint {
  readonly dnsName: string
  readonly setIdentifier?: string
  readonly recordType: string
  readonly targets: readonly string[]
  readonly codes?: string
  readonly weight?: string
}

function record(name: string, endpoints: readonly Endpoint[], annotations: object = {}): string {
  return JSON.stringify({
    apiVersion: 'kuadrant.io/v1alpha1',
    kind: 'DNSRecord',
    metadata: { name, namespace: 'n', annotations },
    spec: {
      rootHost: `${name}.k.example.com`,
      endpoints: endpoints.map(({ codes = '', weight = '', ...rest }) => ({
        ...rest,
        recordTTL: 60,
        providerSpecific: [
          ...(codes === '' ? [] : [{ name: 'geo-code', value: codes }]),
          ...(weight === '' ? [] : [{ name: 'weight', value: weight }]),
        ],
      })),
    },
  })
}

/** A record with endpoints for random codes; every third name leads to them by weighted CNAMEs. */
function randomRecord(random: Random, number: number): string {
  const name = `n${number}`
  const host = `${name}.k.example.com`
  const count = 2 + random.below(4)
  const endpoints: Endpoint[] = []
  for (let i = 0; i < count; i++) {
    const codes = pick(random, [...CODES, 'NET-LAB', ''])
    const weight = pick(random, ['', '1', '4', '8'])
    const own = { setIdentifier: `s${i}`, codes, weight }
    const address = `192.0.${number}.${i + 1}`
    if (number % 3 > 0) {
      endpoints.push({ dnsName: host, recordType: 'A', targets: [address], ...own })
      continue
    }
    const target = `t${i}.${host}`
    endpoints.push({ dnsName: host, recordType: 'CNAME', targets: [target], ...own })
    endpoints.push({ dnsName: target, recordType: 'A', targets: [address] })
  }
  return record(name, endpoints, {
    ...(number % STICKY_EVERY === 0 && { 'sextant.io/sticky': 'true' }),
    ...(number % 4 === 1 && { 'sextant.io/answers': '2' }),
  })
}

/** Returns addresses of countries in the bundled database. */
async function findClients(random: Random): Promise<Map<string, string[]>> {
  const locator = bundledLocator()
  await locator.open({ readsEntries: true })
  const clients = new Map<string, string[]>()
  for (let i = 0; i < 60_000; i++) {
    const bytes = Uint8Array.from([
      1 + random.below(222),
      ...[0, 0, 0].map(() => random.below(256)),
    ])
    const isPublic = bytes[0] !== 10 && bytes[0] !== 127
    const { country } = isPublic ? locator.locate(bytes, 1) : { country: '' }
    const known = clients.get(country) ?? []
    if (country !== '' && known.length < 25) clients.set(country, [...known, bytes.join('.')])
  }
  locator.close()
  return clients
}

interface Stage {
  readonly port: number
  readonly directory: string
  readonly map: (name: string, more?: string) => Promise<AnswerMap>
  readonly post: (path: string, body: object) => Promise<Response>
  readonly events: () => Promise<readonly LoggedEvent[]>
}

async function start(t: Test, files: Record<string, string>, nets = ''): Promise<Stage> {
  const adminPort = await freePort()
  const corefile = `k.example.com:{PORT} {
    bind 127.0.0.1
    admin 127.0.0.1:${adminPort}
    geoip {
        edns-subnet
        ${nets}
    }
    kuadrant {
        manifests records
        drain drains
    }
}
`
  const { port, directory } = await startServer(t, { corefile, files: { drains: '', ...files } })
  const api = `http://127.0.0.1:${adminPort}`
  return {
    port,
    directory,
    map: async (name, more = '') => {
      const reply = await fetch(`${api}/v1/map?name=${name}${more}`)
      return (await reply.json()) as AnswerMap
    },
    events: async () => {
      const reply = (await (await fetch(`${api}/v1/events`)).json()) as {
        events: readonly LoggedEvent[]
      }
      return reply.events
    },
    post: (path, body) => {
      const headers = { 'content-type': 'application/json' }
      return fetch(`${api}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
    },
  }
}

/** By country: share of each target. */
function sharesOf({ countries, groups, answers }: AnswerMap): Map<string, Map<string, number>> {
  return new Map(
    countries.map(({ code, group }) => {
      const shares = new Map<string, number>()
      for (const { answer, ipv4 } of groups[group]!.shares) {
        for (const target of answers[answer]!.targets) {
          shares.set(target, (shares.get(target) ?? 0) + ipv4)
        }
      }
      return [code, shares] as const
    }),
  )
}

t.test('clients of random countries get the answers of the map', async (t) => {
  const random = new Random(Number(process.env.SEXTANT_SEED ?? 33))
  const clients = await findClients(random)
  const lab = clients.get('DE')![0]!
  const nets = `net ${lab.split('.').slice(0, 2).join('.')}.0.0/16 NET-LAB`
  const files = Object.fromEntries(
    Array.from({ length: NAMES }, (_, i) => [`records/n${i}.json`, randomRecord(random, i)]),
  )
  const { port, map } = await start(t, files, nets)
  const udp = await UdpClient.connect(port)
  t.teardown(() => udp.close())
  const maps = new Map<string, Map<string, Map<string, number>>>()
  const ask = async (name: string, subnet: string): Promise<string[]> => {
    const reply = await udp.ask({ name, type: 'A', subnet: `${subnet}/32` })
    const { answer = [] } = parseMessage(new Uint8Array(reply)) ?? {}
    return answer
      .filter(({ type }) => type === RRType.A)
      .map(({ rdata }) => printRdata(RRType.A, rdata))
  }
  let asked = 0
  const check = async (number: number, country: string): Promise<void> => {
    const name = `n${number}.k.example.com`
    const shares = maps.get(name)!.get(country) ?? new Map<string, number>()
    // Few clients cannot get all answers of a sticky choice.
    const isWanted = ([, share]: readonly [string, number]): boolean => {
      return share >= SHARE_MIN && number % STICKY_EVERY > 0
    }
    const wanted = [...shares].filter(isWanted).map(([target]) => target)
    const addresses = clients.get(country)!
    const seen = new Set<string>()
    for (let i = 0; i < QUERIES_MAX && !(i >= 3 && wanted.every((one) => seen.has(one))); i++) {
      for (const one of await ask(name, pick(random, addresses))) seen.add(one)
      asked++
    }
    const odd = [...seen].filter((one) => !shares.has(one))
    const missing = wanted.filter((one) => !seen.has(one))
    if (odd.length + missing.length > 0)
      t.fail(`${name} in ${country}`, { odd, missing, shares: [...shares] })
  }
  for (let i = 0; i < NAMES; i++) {
    const name = `n${i}.k.example.com`
    maps.set(name, sharesOf(await map(name)))
  }
  const countries = [...clients.keys()]
  const pairs = Array.from({ length: PAIRS }, (_, i) => {
    // The country with the network of its own comes often.
    return [random.below(NAMES), i % 10 === 0 ? 'DE' : pick(random, countries)] as const
  })
  let next = 0
  const work = async (): Promise<void> => {
    while (next < pairs.length) await check(...pairs[next++]!)
  }
  await Promise.all(Array.from({ length: 16 }, work))
  t.ok(asked >= PAIRS * 3, `${asked} queries of ${countries.length} countries`)
})

const APP = record('app', [
  ...[1, 2].map((i) => ({
    ...{ dnsName: 'app.k.example.com', recordType: 'CNAME', setIdentifier: `c${i}` },
    ...{ targets: [`c${i}.app.k.example.com`], codes: i === 1 ? 'GEO-EU,*' : 'GEO-NA' },
  })),
  { dnsName: 'c1.app.k.example.com', recordType: 'A', targets: ['192.0.2.1'] },
  { dnsName: 'c2.app.k.example.com', recordType: 'A', targets: ['192.0.2.2'] },
])

t.test('previews show what a drain, manifests and events do', async (t) => {
  const { map, post, events, directory } = await start(t, { 'records/app.json': APP })
  const name = 'app.k.example.com'
  const text = (one: AnswerMap): string =>
    JSON.stringify([...sharesOf(one)].map(([code, shares]) => [code, ...shares]))
  const before = await map(name)
  const drained = await map(name, '&drain=address:192.0.2.2')
  t.not(text(drained), text(before))
  t.match(drained.preview, 'after the drain address:192.0.2.2: 1 record changes')
  t.strictSame(
    drained.answers.map(({ targets }) => targets),
    before.answers.map(({ targets }) => targets),
    'answers keep their numbers',
  )
  const other = APP.replace('GEO-NA', 'GEO-AS')
  const changed = (await (await post('/v1/map', { name, manifests: other })).json()) as AnswerMap
  t.equal((await post('/v1/drains', { selector: 'address:192.0.2.2' })).status, 200)
  await until(async () => text(await map(name)) === text(drained), 'the drain')
  const logged = await events()
  const drain = logged.find((one) => one.actor.kind === 'drain' && one.type === 'CNAME')!
  const past = logged.filter(({ id }) => id < drain.id).at(-1)!
  t.equal(text(await map(name, `&event=${past.id}`)), text(before))
  t.equal(text(await map(name, `&event=${drain.id}`)), text(drained))
  await writeFile(join(directory, 'drains'), '')
  await until(async () => text(await map(name)) === text(before), 'the end of the drain')
  await writeFile(join(directory, 'records/app.json'), other)
  await until(async () => text(await map(name)) === text(changed), 'the manifest')
  t.equal((await post('/v1/map', { name, drain: 'nothing' })).status, 400)
  t.equal((await post('/v1/map', { name, drain: 'site:a', undrain: 'site:a' })).status, 400)
  t.match(await map(name, '&event=1'), { status: 400, detail: /no event 1/ })
  t.match(await map('other.example'), { status: 400 })
})

interface LoggedEvent {
  readonly id: number
  readonly actor: { readonly kind: string }
  readonly type?: string
}
