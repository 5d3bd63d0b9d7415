import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Test } from 'tap'
import { ClusterSite } from '../support/cluster-site.ts'
import {
  addNameservers,
  CLIENT_IN_AMERICA,
  CLIENT_IN_EUROPE,
  type Edge,
  layEdgeFiles,
  NAMESERVERS,
  startEdge,
} from '../support/edge.ts'
import { HostNetwork } from '../support/host-network.ts'
import { KEY } from '../support/nameservers.ts'
import { CHOSEN } from '../support/rights.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'
import { until } from '../support/until.ts'
import { drawnOf, GATEWAYS, layoutOf } from './gateways.ts'
import { OldSite } from './old-site.ts'

export const ZONE = 'k.example.com'
const PROVIDER = 'dns-provider'
/** As before there were keys, and with a nameserver more. */
const OLD_PROVIDER = 'old-dns-provider'
export const OLD_NAMESERVER = '192.0.2.14'
export const RESOLVER = '192.0.2.53'
export const HOST = `app.${ZONE}`
/** A name of its own for each draw, so that no cache has a part in it. */
const DRAWN = `*.draw.${ZONE}`
/** Digs at a time. */
const LANES = 4
/** Ample, for a machine on which other tests run too. */
export const SEEN_MS = 120_000
/**
 * How long what a silent site said is kept: longer than a busy machine keeps two sites from hearing of each other. It is called
 * silent after half of it.
 */
export const EXPIRY_MS = 40_000
/** What dig takes at most on a machine on which measured times mean something. */
const DIG_MS = 50

export function record(
  name: string,
  rootHost: string,
  endpoints: readonly object[],
  { provider = PROVIDER, ...spec }: { provider?: string; healthCheck?: object } = {},
): object {
  return {
    apiVersion: 'kuadrant.io/v1alpha1',
    kind: 'DNSRecord',
    metadata: { name },
    spec: { rootHost, providerRef: { name: provider }, endpoints, ...spec },
  }
}

/** Has the gateways of a record looked at, so that there are probes to leave behind: once, and without a verdict. */
const CHECKED = { healthCheck: { protocol: 'TCP', port: 443, interval: '24h' } }

/** The host that is changed: each site has an address of it, and all sites serve all addresses. */
export const EDITED = `edit.${ZONE}`
export const addressOf = (dnsName: string, target: string) => [
  { dnsName, recordType: 'A', recordTTL: 1, targets: [target] },
]
export const editedOf = (target: string) => addressOf(EDITED, target)
/**
 * The same, without transfers between sites, and with a v1 site. One for each site,
 * whose edits of the others' would have it ask for them.
 */
export const OLD = [0, 1, 2, 3].map((i) => `old-${i}.${ZONE}`)
/** The address that a site has of one of them. */
export const oldAddressOf = (site: number, i: number) => `192.0.2.${160 + 4 * site + i}`
export const oldRecord = (i: number, target: string) =>
  record(`old-${i}`, OLD[i]!, addressOf(OLD[i]!, target), { provider: OLD_PROVIDER })

/** The sites with what the edge needs, and how clients ask. */
export class MultiCluster {
  readonly sites: readonly ClusterSite[]
  readonly oldSite: OldSite
  readonly edge: Edge
  readonly directory: string
  /** How long each dig of the last measurement took. */
  #digsMs: number[] = []

  constructor(sites: readonly ClusterSite[], oldSite: OldSite, edge: Edge, directory: string) {
    this.sites = sites
    this.oldSite = oldSite
    this.edge = edge
    this.directory = directory
  }

  /** Lines of `dig +short` of one name or several: by the resolver, or of a nameserver at once. */
  async dig(names: string | readonly string[], from: string, server = RESOLVER): Promise<string[]> {
    const options = ['+short', '+time=5', '+tries=3', '-b', from, `@${server}`]
    const startMs = performance.now()
    const text = await this.edge.client.run('dig', ...options, ...[names].flat())
    this.#digsMs.push(performance.now() - startMs)
    const lines = text.trim().split('\n')
    // It also reports queries that were repeated.
    const answers = lines.filter((line) => !line.startsWith(';'))
    return answers.length > 0 ? answers : lines
  }

  /** By how much times are longer here than on a machine with time to spare, at least 1: as of the digs since the last call. */
  takeSlowness(): number {
    const digsMs = this.#digsMs.sort((a, b) => a - b)
    this.#digsMs = []
    return Math.max(1, (digsMs[digsMs.length >> 1] ?? 0) / DIG_MS)
  }

  /**
   * Waits until each of these addresses has been in answers of all `servers`; when the last of them had it, for each in
   * their order.
   */
  async arrivals(
    names: string | readonly string[],
    targets: readonly string[],
    servers: readonly string[],
    from = CLIENT_IN_EUROPE,
  ): Promise<number[]> {
    const atMs = targets.map(() => 0)
    const look = async (server: string): Promise<void> => {
      const missing = new Set(targets)
      let got: string[] = []
      const areThere = async () => {
        got = await this.dig(names, from, server)
        for (const [i, target] of targets.entries()) {
          if (!got.includes(target) || !missing.delete(target)) continue
          atMs[i] = Math.max(atMs[i]!, performance.now())
        }
        return missing.size === 0
      }
      await until(areThere, `${targets} for ${names}`, SEEN_MS).catch((error: Error) => {
        throw new Error(`${error.message} at ${server}, it is ${got}:\n${this.output()}`)
      })
    }
    await Promise.all(servers.map(look))
    return atMs
  }

  /** Addresses of so many names below `draw`, each asked once. */
  async draw(from: string, count: number): Promise<Map<string, number>> {
    const lanes = Array.from({ length: LANES }, (_, lane) => lane)
    const texts = await Promise.all(
      lanes.map(async (lane) => {
        const path = join(this.directory, `names-${lane}`)
        const names = Array.from({ length: count / LANES }, (_, i) => `n${lane}-${i}.draw.${ZONE}`)
        writeFileSync(path, names.join('\n'))
        const options = ['+short', '+time=5', '+tries=3', '-b', from, `@${RESOLVER}`]
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

export async function startMultiCluster(t: Test): Promise<MultiCluster> {
  const directory = temporaryDirectory(t)
  layEdgeFiles(directory)
  const page = readFileSync(join(directory, 'Corefile'), 'utf8')
  const network = await HostNetwork.create(t)
  const hosts = await addNameservers(network)
  const oldSite = await OldSite.start(t, network, { address: OLD_NAMESERVER, zone: ZONE })
  for (const i of OLD.keys()) oldSite.put(`old-${i}`, oldRecord(i, oldAddressOf(3, i)))
  const starting = hosts.map((host, i) => ClusterSite.start(t, host, NAMESERVERS[i]!))
  const [edge, ...sites] = await Promise.all([startEdge(network, directory), ...starting])
  for (const [i, site] of sites.entries()) {
    await site.serve((kubeconfig) => corefileOf(page, kubeconfig))
    await site.operate('--silent-site', `remove ${EXPIRY_MS / 1000}s`)
    for (const secret of [SECRET, OLD_SECRET]) {
      await site.cluster.must('POST', `/api/v1/namespaces/${CHOSEN}/secrets`, secret)
    }
    const gateway = GATEWAYS[i]!
    for (const one of [
      record('app', HOST, layoutOf(HOST, gateway), CHECKED),
      record('draw', DRAWN, [drawnOf(DRAWN, gateway)]),
      record('edit', EDITED, editedOf(`192.0.2.${150 + i}`)),
      ...OLD.map((_, old) => oldRecord(old, oldAddressOf(i, old))),
    ]) {
      await site.cluster.must('POST', site.records(), one)
    }
  }
  return new MultiCluster(sites, oldSite, edge, directory)
}

/** Whether the last line of an answer is as it should be. */
type IsRight = (line: string, from: string, server: string) => boolean

/** Asks the same things again and again until it is stopped, and keeps what was not answered as `isRight` wants it. */
export class Watch {
  readonly failures: string[] = []
  #asked = 0
  #isStopped = false
  readonly #done: Promise<void>

  constructor(clusters: MultiCluster, servers: readonly string[], isRight: IsRight) {
    const round = async (server: string): Promise<void> => {
      while (!this.#isStopped) {
        for (const { from } of PLACES) {
          const startMs = performance.now()
          const line = (await clusters.dig(HOST, from, server)).at(-1) ?? ''
          this.#asked++
          // A fifth of the time: each question is a process, and the servers need the processors as well.
          await delay(4 * (performance.now() - startMs))
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
export async function seeAll(clusters: MultiCluster): Promise<void> {
  for (const { from, want } of PLACES) {
    await clusters.arrivals(HOST, want, NAMESERVERS, from)
  }
  await clusters.arrivals(`any.draw.${ZONE}`, ALL, NAMESERVERS)
}

export const PLACES = [
  { from: CLIENT_IN_EUROPE, want: ['192.0.2.101', '192.0.2.102'] },
  { from: CLIENT_IN_AMERICA, want: ['192.0.2.103'] },
]
export const ALL = GATEWAYS.map(({ target }) => target as string)
