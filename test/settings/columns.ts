import { thisMoment } from '../../src/base/moment.ts'
import type { ApiObject } from '../../src/kube/api.ts'
import { keyOf as keyOfObject } from '../../src/kube/object-key.ts'
import type { Reconciler } from '../../src/operator/reconcile/reconciler.ts'
import { operatorDeathRules, RecordDeaths } from '../../src/operator/reconcile/record-deaths.ts'
import { roleOf } from '../../src/operator/record/record-view.ts'
import { kuadrant } from '../../src/plugins/kuadrant/setup.ts'
import { ROOT_KEY } from '../../src/records/host-share.ts'
import type { AllDownPolicy } from '../../src/steering/rules.ts'
import { endpointOf } from '../publish/record-zone-stage.ts'
import { isOwner } from '../support/delegation-fixture.ts'
import { peerHealthOf, ToyCluster, ToyPeers } from '../support/operator-cluster.ts'
import { at, secret } from '../support/operator-objects.ts'
import { recordLog } from '../support/recorded-log.ts'
import { FakeClock, SetUp } from '../support/setup.ts'
import { toyReconciler } from '../support/toy-reconciler.ts'
import { type Exported, type Given, HOST, type Nameserver, serve } from './nameserver.ts'
import { linesOfRefusals, linesOfV1 } from './peer-log.ts'
import { ProbePlaces } from './probe-places.ts'

/** A DNSRecord of the host. */
export interface Sketch {
  /** As in `Given` of record-zone-stage.ts. */
  readonly endpoints: readonly string[]
  readonly annotations?: { readonly [key: string]: string }
  /** Addresses that checks of its site found down, and up. */
  readonly down?: readonly string[]
  readonly up?: readonly string[]
  /** Of the record; missing = `a`. */
  readonly namespace?: string
}

/** Records of one host, where the setting or state of a row is, and beside it. */
export interface Case {
  /** `app` at the site `there`, with what the row is about. It is the older one. */
  readonly there: Sketch
  /** `other` at the site `here`. */
  readonly here: Sketch
  /** Lines of the drain file, or of the ConfigMap of drains, at the site `there`. */
  readonly drains?: readonly string[]
  /** Lines of a drain file there, also of a server in a cluster. */
  readonly drainFile?: readonly string[]
  /** Annotations of the Namespace `a` at the site `there`. */
  readonly namespace?: { readonly [key: string]: string }
  /** Group of the site `there`, which is not active. */
  readonly passiveGroup?: string
  /** Both records have a health check. */
  readonly isChecked?: boolean
  /** The property `all-down` of all servers. */
  readonly allDown?: AllDownPolicy
  /** Addresses that have just recovered. All servers have `slow-start`. */
  readonly slowStarts?: readonly string[]
}

/** What clients get, and all messages about it. */
export interface Outcome {
  /** Of each site: the RRsets, as its nameserver serves them. */
  readonly served: ReadonlyMap<string, string>
  readonly messages: readonly string[]
}

const RESOURCE = { apiVersion: 'kuadrant.io/v1alpha1', kind: 'DNSRecord' }
const PEER = '192.0.2.53:53'
const ROUNDS = 3
const DAY_MS = 24 * 3_600_000

function recordOf(name: string, sketch: Sketch, spec: ApiObject): ApiObject {
  const { endpoints, annotations = {}, namespace = 'a' } = sketch
  const creationTimestamp = name === 'app' ? '2023-01-01T00:00:00Z' : '2023-01-02T00:00:00Z'
  const metadata = { name, namespace, uid: `uid-of-${name}`, generation: 1, annotations }
  return {
    ...RESOURCE,
    metadata: { ...metadata, creationTimestamp, resourceVersion: '10' },
    spec: { rootHost: HOST, endpoints: endpoints.map(endpointOf), ...spec },
  }
}

const CHECKED: ApiObject = { healthCheck: { protocol: 'HTTP', port: 8080 } }

type Records = readonly (readonly [name: string, sketch: Sketch])[]

/** The records of one site that has all of them, and of the two sites of which each has one. */
function together({ there, here }: Case): Records {
  return [
    ['app', there],
    ['other', here],
  ]
}

/** What a site has beside its records. */
interface More extends Partial<Given> {
  readonly isChecked: boolean
}

/** What both sites have beside their records. */
function commonOf({ isChecked = false, allDown, slowStarts = [] }: Case): More {
  return { isChecked, slowStarts, ...(allDown === undefined ? {} : { allDown }) }
}

/** What the site `there` has beside its records. */
function moreOf(row: Case, isInCluster: boolean): More {
  const { drains = [], drainFile, namespace, passiveGroup: group } = row
  const object = namespace && { metadata: { name: 'a', annotations: namespace } }
  const files = { drains: [], drainFile: drainFile ?? drains }
  const ofCluster = { drains, drainFile: drainFile ?? [] }
  return { ...(isInCluster ? ofCluster : files), namespace: object, group, ...commonOf(row) }
}

/** A nameserver with files. */
async function plainOf(
  site: string,
  records: Records,
  { namespace, isChecked, ...more }: More,
): Promise<Nameserver> {
  const find = (which: 'down' | 'up') => {
    return new Map(records.map(([name, sketch]) => [keyOf(name, sketch), sketch[which] ?? []]))
  }
  const spec = isChecked ? CHECKED : {}
  const objects = records.map(([name, sketch]) => recordOf(name, sketch, spec))
  const facts = { down: find('down'), up: find('up'), ...more }
  const found = await serve({ site, isInCluster: false, objects, ...facts })
  const refusal = namespace && refusalOf('kuadrant {\n manifests zones\n namespace-drains\n}')
  return refusal === undefined ? found : { ...found, messages: [...found.messages, refusal] }
}

/** What a server says of a Corefile with this directive. */
function refusalOf(directive: string): string | undefined {
  try {
    new SetUp(kuadrant, directive)
    return undefined
  } catch (error) {
    return `Corefile: ${(error as Error).message}`
  }
}

function keyOf(name: string, { namespace = 'a' }: Sketch): string {
  return `${namespace}/${name}`
}

/** A cluster with an operator, and a nameserver that serves what the operator derived. */
class Cluster {
  readonly #site: string
  readonly #cluster = new ToyCluster()
  readonly #peers = new ToyPeers()
  readonly #clock = new FakeClock()
  readonly #reconciler: Reconciler
  readonly #more: Partial<Given>
  readonly #probed = new ProbePlaces()
  readonly #log = recordLog()

  constructor(site: string, records: Records, kind: 'alone' | 'delegating' | 'peer', all: More) {
    const { group = '', isChecked, ...more } = all
    this.#site = site
    this.#more = more
    const clock = this.#clock
    const { log } = this.#log
    const probing = this.#probed.probing()
    const settings = {
      probing: { allowed: [], allowsInsecureCertificates: true },
      probesPeers: true,
      silentMs: DAY_MS,
    }
    const rules = operatorDeathRules({ ...settings, quorum: 0, holdDownMs: 0 })
    const membership = group === '' ? undefined : { group, active: ['another'] }
    this.#reconciler = toyReconciler(this.#cluster, clock, {
      site,
      peers: this.#peers,
      peerHealth: peerHealthOf(site, clock, { probing }),
      deaths: new RecordDeaths({ site, rules, clock, log }),
      // One row has records of two namespaces.
      shares: [{ host: ROOT_KEY, namespaces: undefined }],
      groups: { ownGroup: group, membershipOf: () => membership, forget: () => {} },
      owners: { rivalOf: () => '', isPresent: (key, id) => isOwner(this.#cluster, key, id) },
    })
    const labels = { 'kuadrant.io/default-provider': 'true' }
    const data = { ZONES: 'k.example.com', NAMESERVERS: kind === 'peer' ? PEER : '' }
    for (const namespace of ['a', 'b']) {
      this.#cluster.put(secret(namespace, 'coredns', data, { labels }))
    }
    for (const [name, sketch] of records) {
      const spec = {
        ...(kind === 'delegating' ? { delegate: true } : {}),
        ...(isChecked ? CHECKED : {}),
      }
      const record = recordOf(name, sketch, spec)
      this.#cluster.put(record)
      this.#probed.addDesired(record)
      const { down = [], up = [] } = sketch
      const probes = [
        ...down.map((address) => ({ address, health: 'down' as const, reason: 'HTTP 503' })),
      ]
      this.#cluster.health.set(keyOf(name, sketch), { down, up, probes })
    }
  }

  /** Takes what a peer reports. */
  hear({ state, problems }: Exported): void {
    const moment = thisMoment(this.#clock)
    const said = { siteStates: [state], generation: state.generation, serial: 7, problems }
    this.#peers.answers.set(PEER, { kind: 'answered', state: { ...moment, ...said } })
  }

  async settle(): Promise<void> {
    for (let i = 0; i < ROUNDS; i++) {
      for (const key of [...this.#cluster.records.keys()].sort())
        await this.#reconciler.reconcile(key)
    }
  }

  async serve(): Promise<Nameserver> {
    const objects = [...this.#cluster.records.values()]
    const own = { site: this.#site, isInCluster: true, objects, ...this.#more }
    const { messages, ...found } = await serve(own)
    const lines = this.#log.lines.map((line) => `log: ${line}`)
    const probed = this.#probed.print()
    return { ...found, probed, messages: [...messages, ...lines, ...this.#conditions()] }
  }

  #conditions(): string[] {
    return [...this.#cluster.records.values()].flatMap((object) => {
      if (roleOf(object) === 'authoritative') return []
      const conditions = (at(object, 'status', 'conditions') ?? []) as readonly ApiObject[]
      return conditions.map(({ type, status, reason, message }) => {
        return `condition: ${keyOfObject(object)} ${type}=${status} ${reason}: ${message}`
      })
    })
  }
}

async function oneCluster(row: Case, kind: 'alone' | 'delegating'): Promise<Outcome> {
  const cluster = new Cluster('there', together(row), kind, moreOf(row, true))
  await cluster.settle()
  return outcomeOf({ there: await cluster.serve() })
}

async function twoClusters(row: Case): Promise<Outcome> {
  const there = new Cluster('there', [['app', row.there]], 'peer', moreOf(row, true))
  const here = new Cluster('here', [['other', row.here]], 'peer', commonOf(row))
  for (let i = 0; i < ROUNDS; i++) {
    for (const [one, other] of [
      [there, here],
      [here, there],
    ] as const) {
      await one.settle()
      other.hear((await one.serve()).exported('v2'))
    }
  }
  return outcomeOf({ there: await there.serve(), here: await here.serve() })
}

async function twoServers(row: Case, generation: 'v2' | 'v1'): Promise<Outcome> {
  const records = { there: [['app', row.there]], here: [['other', row.here]] } as const
  const there = await plainOf('there', records.there, moreOf(row, false))
  const here = await plainOf('here', records.here, commonOf(row))
  const [fromThere, fromHere] = [there.exported(generation), here.exported(generation)]
  const { served, messages } = outcomeOf({
    there: await plainOf('there', records.there, { ...moreOf(row, false), peer: [fromHere.state] }),
    here: await plainOf('here', records.here, { ...commonOf(row), peer: [fromThere.state] }),
  })
  const lacks = generation === 'v1' ? await linesOfV1() : []
  const notes = [...lacks, ...linesOfRefusals(fromHere.problems)].map(
    (text) => `there: log: ${text}`,
  )
  const more = linesOfRefusals(fromThere.problems).map((text) => `here: log: ${text}`)
  return { served, messages: [...messages, ...notes, ...more] }
}

function outcomeOf(servers: { readonly [site: string]: Nameserver }): Outcome {
  const entries = Object.entries(servers)
  return {
    served: new Map(entries.map(([site, one]) => [site, printServed(one)])),
    messages: entries.flatMap(([site, { messages }]) => messages.map((one) => `${site}: ${one}`)),
  }
}

function printServed({ served, probed }: Nameserver): string {
  const probes = probed.length === 0 ? [] : [`probes ${probed.join(', ')}`]
  return [...served, ...probes].join('; ')
}

/** The ways in which records are published, with what a case comes to there. */
export const COLUMNS = {
  plain: async (row) =>
    outcomeOf({ there: await plainOf('there', together(row), moreOf(row, false)) }),
  'own cluster': (row) => oneCluster(row, 'alone'),
  delegating: (row) => oneCluster(row, 'delegating'),
  'second cluster': twoClusters,
  'v2 peer': (row) => twoServers(row, 'v2'),
  'v1 peer': (row) => twoServers(row, 'v1'),
} as const satisfies { readonly [name: string]: (row: Case) => Promise<Outcome> }

export type ColumnName = keyof typeof COLUMNS
