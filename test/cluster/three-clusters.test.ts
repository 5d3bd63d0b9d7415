import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { HOST_MS } from '../../src/peering/host-poll.ts'
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
import { drawnOf, GATEWAYS, layoutOf } from '../support/gateways.ts'
import { Lab } from '../support/lab.ts'
import { KEY } from '../support/nameservers.ts'
import { OldSite } from '../support/old-site.ts'
import { needs, needsRoot } from '../support/peer.ts'
import { until } from '../support/until.ts'

const ZONE = 'k.example.com'
const PROVIDER = 'dns-provider'
/** As before there were keys, and with a nameserver more. */
const OLD_PROVIDER = 'old-dns-provider'
const OLD_NAMESERVER = '192.0.2.14'
const RESOLVER = '192.0.2.53'
const HOST = `app.${ZONE}`
/** A name of its own for each draw, so that no cache has a part in it. */
const DRAWN = `*.draw.${ZONE}`
const DRAWS = 20_000
/** What χ² of two degrees of freedom exceeds by chance once in a million runs: servers draw as they do in service. */
const CHI_SQUARE_BOUND = 2 * Math.log(1e6)
/** Digs at a time. */
const LANES = 4
/** On a machine on which everybody tests at once. */
const SEEN_MS = 30_000
const TEST_MS = 280_000
/** How long what a silent site said is kept. */
const EXPIRY_MS = 12_000
const EDITS = 5
/** Of each kind. */
const OLD_EDITS = 2
/** Peers that are asked host by host are asked this often, beside the second until it is known that they have news. */
const REQUEUE_MS = HOST_MS + 2000
const ROUNDS = 30

function record(
  name: string,
  rootHost: string,
  endpoints: readonly object[],
  provider = PROVIDER,
): object {
  return {
    apiVersion: 'kuadrant.io/v1alpha1',
    kind: 'DNSRecord',
    metadata: { name },
    spec: { rootHost, providerRef: { name: provider }, endpoints },
  }
}

/** What is changed: each site has an address of it, and all tell all of them. */
const EDITED = `edit.${ZONE}`
const addressOf = (dnsName: string, target: string) => [
  { dnsName, recordType: 'A', recordTTL: 1, targets: [target] },
]
const editedOf = (target: string) => addressOf(EDITED, target)
/** The same, but that nobody may transfer it from another, and a site has it that tells nothing whole. */
const OLD = `old.${ZONE}`

/** The sites with what the edge needs, and how clients ask. */
class World {
  readonly sites: readonly ClusterSite[]
  readonly oldSite: OldSite
  readonly edge: Edge
  readonly directory: string

  constructor(sites: readonly ClusterSite[], oldSite: OldSite, edge: Edge, directory: string) {
    this.sites = sites
    this.oldSite = oldSite
    this.edge = edge
    this.directory = directory
  }

  /** Lines of `dig +short`: by the resolver, or of a nameserver at once. */
  async dig(name: string, from: string, server = RESOLVER): Promise<string[]> {
    const options = ['+short', '+time=2', '+tries=3', '-b', from, `@${server}`]
    const text = await this.edge.client.run('dig', ...options, name)
    return text.trim().split('\n')
  }

  /** Waits until the answers of all `servers` have the address `want`. */
  async see(name: string, from: string, want: string, servers: readonly string[]): Promise<void> {
    const look = async (server: string): Promise<void> => {
      let got: string[] = []
      const isThere = async () => (got = await this.dig(name, from, server)).includes(want)
      await until(isThere, `${want} for ${name}`, SEEN_MS).catch((error: Error) => {
        throw new Error(`${error.message} at ${server}, it is ${got}:\n${this.output()}`)
      })
    }
    await Promise.all(servers.map(look))
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
    const oldSite = `--- server of ${OLD_NAMESERVER}:\n${this.oldSite.server.output()}`
    return [...this.sites.map((site) => site.output()), oldSite].join('\n')
  }
}

/** What the page has for the public side, and beside it what the operators of the others follow. */
function corefileOf(page: string, kubeconfig: string): string {
  const source = `kuadrant {\n        kubeconfig ${kubeconfig}`
  return `${page.replace('kuadrant {', source)}
kdrnt {
    tsig {
        secret ${KEY.name} ${KEY.secret}
        require AXFR IXFR
    }
    transfer {
        to *
        key ${KEY.name}
    }
    ${source}
    }
}
`
}

/** The Secret that all sites have. */
const SECRET = {
  metadata: { name: PROVIDER, labels: { 'kuadrant.io/default-provider': 'true' } },
  type: 'kuadrant.io/coredns',
  stringData: {
    ZONES: ZONE,
    NAMESERVERS: NAMESERVERS.map((address) => `${address}:53`).join(', '),
    TSIG_NAME: KEY.name,
    TSIG_SECRET: KEY.secret,
  },
}

/** Without a key: who has one must get zones whole. */
const OLD_SECRET = {
  metadata: { name: OLD_PROVIDER },
  type: SECRET.type,
  stringData: {
    ZONES: ZONE,
    NAMESERVERS: [...NAMESERVERS, OLD_NAMESERVER].map((address) => `${address}:53`).join(', '),
  },
}

async function startWorld(t: Test): Promise<World> {
  const directory = temporaryDirectory(t)
  layEdgeFiles(directory)
  const page = readFileSync(join(directory, 'Corefile'), 'utf8')
  const lab = await Lab.create(t)
  const hosts = await addNameservers(lab)
  const oldSite = await OldSite.start(t, lab, { address: OLD_NAMESERVER, zone: ZONE })
  oldSite.put('old', record('old', OLD, addressOf(OLD, '192.0.2.180')))
  const starting = hosts.map((host, i) => ClusterSite.start(t, host, NAMESERVERS[i]!))
  const [edge, ...sites] = await Promise.all([startEdge(lab, directory), ...starting])
  for (const [i, site] of sites.entries()) {
    await site.serve((kubeconfig) => corefileOf(page, kubeconfig))
    await site.operate('--peer-expiry', `${EXPIRY_MS / 1000}s`)
    for (const secret of [SECRET, OLD_SECRET]) {
      await site.cluster.must('POST', '/api/v1/namespaces/gateways/secrets', secret)
    }
    const gateway = GATEWAYS[i]!
    for (const one of [
      record('app', HOST, layoutOf(HOST, gateway)),
      record('draw', DRAWN, [drawnOf(DRAWN, gateway)]),
      record('edit', EDITED, editedOf(`192.0.2.${150 + i}`)),
      record('old', OLD, addressOf(OLD, `192.0.2.${170 + i}`), OLD_PROVIDER),
    ]) {
      await site.cluster.must('POST', site.records(), one)
    }
  }
  return new World(sites, oldSite, edge, directory)
}

/** Whether the last line of an answer is as it should be. */
type Judge = (line: string, from: string, server: string) => boolean

/** Asks the same things over and over until it is stopped, and keeps what was not answered as `isRight` wants it. */
class Watch {
  readonly failures: string[] = []
  #asked = 0
  #isStopped = false
  readonly #done: Promise<void>

  constructor(world: World, servers: readonly string[], isRight: Judge) {
    const round = async (server: string): Promise<void> => {
      while (!this.#isStopped) {
        for (const { from } of PLACES) {
          const line = (await world.dig(HOST, from, server)).at(-1) ?? ''
          this.#asked++
          if (!isRight(line, from, server)) this.failures.push(`${server} to ${from}: ${line}`)
        }
      }
    }
    this.#done = Promise.all(servers.map(round)).then(() => {})
  }

  /** How many questions were put. */
  async stop(): Promise<number> {
    this.#isStopped = true
    await this.#done
    return this.#asked
  }
}

/** Waits until every nameserver gives every gateway to whom it is for. */
async function seeAll(world: World): Promise<void> {
  for (const { from, want } of PLACES) {
    for (const target of want) await world.see(HOST, from, target, NAMESERVERS)
  }
  for (const target of ALL) {
    await world.see(`any.draw.${ZONE}`, CLIENT_IN_EUROPE, target, NAMESERVERS)
  }
}

const PLACES = [
  { from: CLIENT_IN_EUROPE, want: ['192.0.2.101', '192.0.2.102'] },
  { from: CLIENT_IN_AMERICA, want: ['192.0.2.103'] },
]
const ALL = GATEWAYS.map(({ target }) => target as string)

const options = {
  ...needsRoot(),
  ...needs('dig', 'named', 'unbound'),
  ...needsCluster(),
  timeout: TEST_MS,
}

t.test('three clusters, one zone', options, async (t) => {
  const world = await startWorld(t)
  const { sites, edge } = world
  const [first, second, third] = sites as [ClusterSite, ClusterSite, ClusterSite]
  for (const site of sites) {
    await answers(edge.client, site.server, `@${site.address}`, ZONE, 'SOA')
  }

  await t.test('each nameserver learns of the gateways of all', async (t) => {
    await seeAll(world)
    for (const site of sites) {
      const isReady = async () => {
        const { status } = await site.cluster.must('GET', site.records('app'))
        const ready = status?.conditions?.find(({ type }: { type: string }) => type === 'Ready')
        return ready?.status === 'True'
      }
      await until(isReady, `${site.address} to call its record ready`, SEEN_MS)
    }
    t.pass('all of them')
  })

  await t.test(
    'clients get the gateways of their place, by the resolver and of each',
    async (t) => {
      for (let round = 0; round < 5; round++) {
        for (const { from, want } of PLACES) {
          for (const server of [...NAMESERVERS, RESOLVER]) {
            const lines = await world.dig(HOST, from, server)
            t.equal(lines.length, 4, 'the chain')
            t.ok(want.includes(lines.at(-1) ?? ''), `${lines} for ${from} at ${server}`)
          }
        }
      }
    },
  )

  await t.test('weights hold through the edge', async (t) => {
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

  await t.test('an edit in one cluster is everywhere within two seconds', async (t) => {
    const takenMs: number[] = []
    for (let edit = 0; edit < EDITS; edit++) {
      const target = `192.0.2.${160 + edit}`
      const startMs = performance.now()
      await first.cluster.must('PATCH', first.records('edit'), {
        spec: { endpoints: editedOf(target) },
      })
      await world.see(EDITED, CLIENT_IN_EUROPE, target, NAMESERVERS)
      takenMs.push(Math.round(performance.now() - startMs))
    }
    takenMs.sort((a, b) => a - b)
    t.comment(`edits took ${takenMs} ms`)
    // The median: others use the machine as well.
    t.ok(takenMs[EDITS >> 1]! <= 2000, `${takenMs} ms`)
  })

  await t.test(
    'where peers are asked host by host, within the time between two looks',
    async (t) => {
      const { oldSite } = world
      for (const target of ['192.0.2.170', '192.0.2.171', '192.0.2.172', '192.0.2.180']) {
        await world.see(OLD, CLIENT_IN_EUROPE, target, NAMESERVERS)
      }
      for (const site of sites) {
        const { status } = await site.cluster.must('GET', site.records('old'))
        const told = status.peers.map(({ generation }: { generation: string }) => generation)
        t.ok(told.includes('v1'), `${site.address} has heard of v1: ${told}`)
        const asked = `peer ${OLD_NAMESERVER}:53 is asked for each host`
        t.ok(site.output().includes(asked), `${site.address} asks it for each host`)
      }
      const takenMs: number[] = []
      const edit = async (change: () => unknown, target: string): Promise<void> => {
        const startMs = performance.now()
        await change()
        await world.see(OLD, CLIENT_IN_EUROPE, target, NAMESERVERS)
        takenMs.push(Math.round(performance.now() - startMs))
      }
      for (let i = 1; i <= OLD_EDITS; i++) {
        const [old, target] = [`192.0.2.${180 + i}`, `192.0.2.${190 + i}`]
        await edit(() => oldSite.put('old', record('old', OLD, addressOf(OLD, old))), old)
        const spec = { endpoints: addressOf(OLD, target) }
        await edit(() => first.cluster.must('PATCH', first.records('old'), { spec }), target)
      }
      t.comment(`edits took ${takenMs} ms`)
      takenMs.sort((a, b) => a - b)
      t.ok(takenMs[OLD_EDITS]! <= REQUEUE_MS, `${takenMs} ms`)
      const lines = await world.dig(OLD, CLIENT_IN_EUROPE)
      t.equal(lines.length, 4, `what was before is gone: ${lines}`)
    },
  )

  await t.test("one cluster's API is killed: answers are what they were", async (t) => {
    const watch = new Watch(world, [...NAMESERVERS, RESOLVER], (line) => ALL.includes(line))
    await second.cluster.killServer()
    const spec = { endpoints: editedOf('192.0.2.201') }
    await first.cluster.must('PATCH', first.records('edit'), { spec })
    await world.see(EDITED, CLIENT_IN_EUROPE, '192.0.2.201', [first.address, third.address])
    for (const { from, want } of PLACES) {
      for (const server of [...NAMESERVERS, RESOLVER]) {
        const lines = await world.dig(HOST, from, server)
        t.ok(want.includes(lines.at(-1) ?? ''), `${lines} for ${from} at ${server}`)
      }
    }
    await second.cluster.startServer()
    await world.see(EDITED, CLIENT_IN_EUROPE, '192.0.2.201', [second.address])
    t.ok((await watch.stop()) > 0)
    t.strictSame(watch.failures, [])
  })

  await t.test('one cluster is cut off: its endpoints stay until they expire', async (t) => {
    const others = [first.address, second.address]
    const watch = new Watch(world, [...others, RESOLVER], (line) => ALL.includes(line))
    await third.host.cut()
    const cutMs = performance.now()
    const isGone = async (server: string) => {
      const line = (await world.dig(HOST, CLIENT_IN_AMERICA, server)).at(-1) ?? ''
      return line !== '192.0.2.103' && ALL.includes(line)
    }
    for (const server of others) {
      await until(() => isGone(server), `${server} to drop what expired`, EXPIRY_MS + SEEN_MS)
      const afterMs = performance.now() - cutMs
      // It was seen a moment before it was cut off.
      t.ok(afterMs > EXPIRY_MS - 3000, `after ${Math.round(afterMs)} ms`)
    }
    t.ok((await watch.stop()) > 0)
    t.strictSame(watch.failures, [], 'no query was without an answer')
    const isAlone = async () => {
      const subnet = `+subnet=${CLIENT_IN_EUROPE}/24`
      const text = await third.host.run('dig', '+short', subnet, `@${third.address}`, HOST)
      return text.trim().split('\n').at(-1) === '192.0.2.103'
    }
    await until(isAlone, 'it to go on by itself', EXPIRY_MS + SEEN_MS)
  })

  await t.test('it comes back, and comes to stay', async (t) => {
    const healed = new Set<string>()
    const watch = new Watch(world, NAMESERVERS, (line, from, server) => {
      const isRight = PLACES.some((place) => place.from === from && place.want.includes(line))
      if (isRight) healed.add(`${server} ${from}`)
      // What others have for the place until then, but never again.
      return isRight || (ALL.includes(line) && !healed.has(`${server} ${from}`))
    })
    await third.host.mend()
    await seeAll(world)
    t.ok((await watch.stop()) > 0)
    t.strictSame(watch.failures, [], 'nothing came and went')
    t.equal(healed.size, NAMESERVERS.length * PLACES.length, 'everywhere')
    const versions = () =>
      Promise.all(
        sites.map(async (site) => {
          const merged = await site.cluster.must('GET', site.records('merged-app'))
          return merged.metadata.resourceVersion
        }),
      )
    const before = await versions()
    for (let round = 0; round < ROUNDS; round++) {
      for (const server of NAMESERVERS) {
        const line = (await world.dig(HOST, CLIENT_IN_AMERICA, server)).at(-1)
        if (line !== '192.0.2.103') t.fail(`${server} went back to ${line}`)
      }
    }
    t.strictSame(await versions(), before, 'merged records are left alone')
  })

  await t.test('everything is deleted: nothing is left behind', async (t) => {
    for (const site of sites) {
      for (const name of ['app', 'draw', 'edit', 'old'])
        await site.cluster.must('DELETE', site.records(name))
    }
    for (const site of sites) {
      let left: string[] = []
      const isEmpty = async () => {
        const { items } = await site.cluster.must('GET', site.records())
        left = items.map(({ metadata }: { metadata: { name: string } }) => metadata.name)
        return left.length === 0
      }
      await until(isEmpty, `${site.address} to be empty`, SEEN_MS).catch((error: Error) => {
        throw new Error(`${error.message}, there is ${left}:\n${world.output()}`)
      })
    }
    for (const server of NAMESERVERS) {
      for (const name of [HOST, `any.draw.${ZONE}`, EDITED, OLD, `${HOST}.kdrnt`]) {
        const isGone = async () => {
          const text = await edge.client.run('dig', '+time=2', `@${server}`, name)
          return text.includes('status: NXDOMAIN')
        }
        await until(isGone, `${name} to be gone at ${server}`, SEEN_MS)
      }
    }
    t.pass('no object, no name')
    // Not the second's: an API server that starts refuses everything until it has read its roles.
    for (const site of [first, third]) t.notMatch(site.output(), /\b403\b/, 'no right was missing')
  })
})
