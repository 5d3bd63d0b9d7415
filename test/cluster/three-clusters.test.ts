import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { chiSquare } from '../support/chi-square.ts'
import { temporaryDirectory } from '../support/cluster.ts'
import { needsCluster } from '../support/cluster-binary.ts'
import { ClusterSite } from '../support/cluster-site.ts'
import {
  addNameservers,
  answers,
  CLIENT_IN_AMERICA,
  CLIENT_IN_EUROPE,
  type Edge,
  layEdgeFiles,
  NAMESERVERS,
  startEdge,
} from '../support/edge.ts'
import { Lab } from '../support/lab.ts'
import { needs, needsRoot } from '../support/peer.ts'
import { until } from '../support/until.ts'

const ZONE = 'k.example.com'
const RESOLVER = '192.0.2.53'
const HOST = `app.${ZONE}`
const DRAWS = 20_000
/** What χ² of two degrees of freedom exceeds by chance once in a million runs: servers draw as they do in service. */
const CHI_SQUARE_BOUND = 2 * Math.log(1e6)
/** Digs at a time. */
const LANES = 4
/** On a machine on which everybody tests at once. */
const SEEN_MS = 30_000
const TEST_MS = 280_000

/** What each cluster has: a gateway somewhere, with a weight. */
const GATEWAYS = [
  { name: 'dublin', geo: 'GEO-EU', weight: 100, target: '192.0.2.101' },
  { name: 'milan', geo: 'GEO-EU', weight: 300, target: '192.0.2.102' },
  { name: 'boston', geo: 'GEO-NA', weight: 200, target: '192.0.2.103' },
] as const
type Gateway = (typeof GATEWAYS)[number]

const property = (name: string, value: string) => ({ name, value })

/** The layout that Kuadrant's DNSPolicy writes for one gateway. */
function layoutOf({ name, geo, weight, target }: Gateway): object[] {
  const klb = `klb.${HOST}`
  const place = `${geo.toLowerCase()}.${klb}`
  const gateway = `${name}.${klb}`
  const cname = (dnsName: string, to: string, recordTTL: number) => ({
    dnsName,
    recordType: 'CNAME',
    recordTTL,
    targets: [to],
  })
  return [
    cname(HOST, klb, 300),
    {
      ...cname(klb, place, 300),
      setIdentifier: geo,
      providerSpecific: [property('geo-code', geo)],
    },
    {
      ...cname(place, gateway, 60),
      setIdentifier: gateway,
      providerSpecific: [property('weight', String(weight))],
    },
    { dnsName: gateway, recordType: 'A', recordTTL: 60, targets: [target] },
  ]
}

/** A name of its own for each draw, so that no cache has a part in it. */
function drawnOf({ name, weight, target }: Gateway): object {
  return {
    dnsName: `*.draw.${ZONE}`,
    recordType: 'A',
    recordTTL: 60,
    setIdentifier: name,
    targets: [target],
    providerSpecific: [property('weight', String(weight))],
  }
}

function record(name: string, rootHost: string, endpoints: readonly object[]): object {
  return {
    apiVersion: 'kuadrant.io/v1alpha1',
    kind: 'DNSRecord',
    metadata: { name, labels: { 'kuadrant.io/coredns-zone-name': ZONE } },
    spec: { rootHost, endpoints },
  }
}

/** The sites with what the edge needs, and how clients ask. */
class World {
  readonly sites: readonly ClusterSite[]
  readonly edge: Edge
  readonly directory: string

  constructor(sites: readonly ClusterSite[], edge: Edge, directory: string) {
    this.sites = sites
    this.edge = edge
    this.directory = directory
  }

  /** Lines of `dig +short`: by the resolver, or of a nameserver at once. */
  async dig(name: string, from: string, server = RESOLVER): Promise<string[]> {
    const options = ['+short', '+time=2', '+tries=3', '-b', from, `@${server}`]
    const text = await this.edge.client.run('dig', ...options, name)
    return text.trim().split('\n')
  }

  /** Waits until the last line of every answer is one of `want`. */
  async see(name: string, from: string, want: readonly string[], servers: readonly string[]) {
    for (const server of servers) {
      let got = ''
      const isThere = async () =>
        want.includes((got = (await this.dig(name, from, server)).at(-1) ?? ''))
      await until(isThere, `${want} for ${name}`, SEEN_MS).catch((error: Error) => {
        throw new Error(`${error.message} at ${server}, it is ${got}:\n${this.output()}`)
      })
    }
  }

  /** Addresses of so many names below `draw`, each asked once. */
  async draw(from: string): Promise<Map<string, number>> {
    const lanes = Array.from({ length: LANES }, (_, lane) => lane)
    const texts = await Promise.all(
      lanes.map(async (lane) => {
        const path = join(this.directory, `names-${lane}`)
        const names = Array.from({ length: DRAWS / LANES }, (_, i) => `n${lane}-${i}.draw.${ZONE}`)
        writeFileSync(path, names.join('\n'))
        const options = ['+short', '+time=2', '+tries=3', '-b', from, `@${RESOLVER}`]
        return this.edge.client.run('dig', ...options, '-f', path)
      }),
    )
    const counts = new Map<string, number>()
    for (const line of texts.join('').trim().split('\n')) {
      counts.set(line, (counts.get(line) ?? 0) + 1)
    }
    return counts
  }

  output(): string {
    return this.sites.map((site) => site.output()).join('\n')
  }
}

async function startWorld(t: Test): Promise<World> {
  const directory = temporaryDirectory(t)
  layEdgeFiles(directory)
  const corefile = readFileSync(join(directory, 'Corefile'), 'utf8')
  const lab = await Lab.create(t)
  const hosts = await addNameservers(lab)
  const starting = hosts.map((host, i) => ClusterSite.start(t, host, NAMESERVERS[i]!))
  const [edge, ...sites] = await Promise.all([startEdge(lab, directory), ...starting])
  for (const site of sites) {
    const source = `kubeconfig ${site.cluster.kubeconfig('admin')}`
    const own = corefile.replace('kuadrant {', `kuadrant {\n        ${source}`)
    writeFileSync(join(site.directory, 'Corefile'), own)
    site.serve()
  }
  return new World(sites, edge, directory)
}

const options = {
  ...needsRoot(),
  ...needs('dig', 'named', 'unbound'),
  ...needsCluster(),
  timeout: TEST_MS,
}

t.test('three clusters, one zone', options, async (t) => {
  const world = await startWorld(t)
  const { sites, edge } = world
  for (const site of sites) {
    const all = GATEWAYS.flatMap(layoutOf)
    const once = [...new Map(all.map((endpoint) => [JSON.stringify(endpoint), endpoint])).values()]
    await site.cluster.must('POST', site.records(), record('app', HOST, once))
    const drawn = record('draw', `*.draw.${ZONE}`, GATEWAYS.map(drawnOf))
    await site.cluster.must('POST', site.records(), drawn)
  }
  for (const site of sites) {
    await answers(edge.client, site.server, `@${site.address}`, ZONE, 'SOA')
  }
  const places = [
    { from: CLIENT_IN_EUROPE, want: ['192.0.2.101', '192.0.2.102'] },
    { from: CLIENT_IN_AMERICA, want: ['192.0.2.103'] },
  ]

  await t.test(
    'clients get the gateways of their place, by the resolver and of each',
    async (t) => {
      for (const { from, want } of places) {
        await world.see(HOST, from, want, [...NAMESERVERS, RESOLVER])
      }
      // The resolver has both in its cache by now.
      for (let round = 0; round < 5; round++) {
        for (const { from, want } of places) {
          const lines = await world.dig(HOST, from)
          t.equal(lines.length, 4, 'the chain')
          t.ok(want.includes(lines.at(-1) ?? ''), `${lines} for ${from}`)
        }
      }
    },
  )

  await t.test('weights hold through the edge', async (t) => {
    await world.see(
      `first.draw.${ZONE}`,
      CLIENT_IN_EUROPE,
      GATEWAYS.map(({ target }) => target),
      NAMESERVERS,
    )
    const counts = await world.draw(CLIENT_IN_EUROPE)
    const observed = GATEWAYS.map(({ target }) => counts.get(target) ?? 0)
    t.equal(
      observed.reduce((sum, count) => sum + count, 0),
      DRAWS,
      'every query has its answer',
    )
    const total = GATEWAYS.reduce((sum, { weight }) => sum + weight, 0)
    const shares = GATEWAYS.map(({ weight }) => weight / total)
    const value = chiSquare(observed, shares)
    t.ok(value < CHI_SQUARE_BOUND, `χ² ${value} of ${observed}`)
  })
  await t.test("one cluster's API is killed: answers are what they were", async (t) => {
    const [, second] = sites
    await second!.cluster.killServer()
    for (const { from, want } of places) {
      for (const server of [...NAMESERVERS, RESOLVER]) {
        const lines = await world.dig(HOST, from, server)
        t.ok(want.includes(lines.at(-1) ?? ''), `${lines} for ${from} at ${server}`)
      }
    }
    await second!.cluster.startServer()
  })
})
