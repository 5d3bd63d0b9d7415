import { Resolver } from 'node:dns/promises'
import t, { type Test } from 'tap'
import type { ApiObject } from '../../src/kube/api.ts'
import { CLUSTER_TEST_MS, Cluster } from '../support/cluster.ts'
import { needsCluster } from '../support/cluster-binary.ts'
import { freePort, type RunningServer, startServer } from '../support/server.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'
import { until } from '../support/until.ts'
import { RunningOperator } from './operator.ts'

const ZONE = 'k.example.com'
/** From a change in one cluster to the answers of all, on a machine on which other tests run too. */
const SEEN_MS = 120_000
/** Until a peer counts as silent, and is reported. */
const SILENT_MS = 150_000
/** Until a change of a definition, with which all its watches end, is past. */
const DEFINED_MS = 180_000

/** A cluster of its own, as far as anybody sees: a namespace, a nameserver and an operator. */
class Site {
  readonly name: string
  readonly cluster: Cluster
  readonly port: number
  readonly #directory: string
  /** Of the whole: what is started in one of its parts goes on in the next. */
  readonly #t: Test
  server: RunningServer | undefined
  operator: RunningOperator | undefined

  private constructor(t: Test, cluster: Cluster, name: string, port: number) {
    this.cluster = cluster
    this.name = name
    this.port = port
    this.#directory = temporaryDirectory(t)
    this.#t = t
  }

  static async create(t: Test, cluster: Cluster, name: string): Promise<Site> {
    await cluster.createNamespace(name)
    return new Site(t, cluster, name, await freePort())
  }

  async startServer(): Promise<void> {
    const block = (zone: string) => `${zone}:{PORT} {
    bind 127.0.0.1
    kuadrant {
        kubeconfig ${this.cluster.kubeconfig('admin')}
    }
    transfer {
        to 127.0.0.1
    }
}
`
    this.server = await startServer(this.#t, {
      corefile: block('kdrnt') + block(ZONE),
      beside: { port: this.port, directory: this.#directory },
      env: { WATCH_NAMESPACES: this.name },
    })
  }

  async startOperator(...args: readonly string[]): Promise<RunningOperator> {
    this.operator = await RunningOperator.start(this.#t, {
      kubeconfig: this.cluster.kubeconfig('admin'),
      args: [`--watch-namespaces=${this.name}`, `--site=${this.name}`, ...args],
    })
    return this.operator
  }

  async killServer(): Promise<void> {
    this.server?.process.kill('SIGKILL')
    await this.server?.exited()
  }

  /** Puts the provider Secret, the default one. */
  async putSecret(data: Readonly<Record<string, string>>): Promise<void> {
    const path = `/api/v1/namespaces/${this.name}/secrets`
    await this.cluster.call('DELETE', `${path}/coredns`)
    await this.cluster.must('POST', path, {
      metadata: { name: 'coredns', labels: { 'kuadrant.io/default-provider': 'true' } },
      type: 'kuadrant.io/coredns',
      stringData: data,
    })
  }

  async create(name: string, spec: object, metadata: object = {}): Promise<void> {
    await this.cluster.must('POST', this.cluster.records(this.name), {
      apiVersion: 'kuadrant.io/v1alpha1',
      kind: 'DNSRecord',
      metadata: { name, ...metadata },
      spec,
    })
  }

  async edit(name: string, spec: object): Promise<void> {
    await this.cluster.must('PATCH', this.cluster.records(this.name, name), { spec })
  }

  async remove(name: string): Promise<void> {
    await this.cluster.must('DELETE', this.cluster.records(this.name, name))
  }

  /** The record as it is; undefined = there is none. */
  // biome-ignore lint/suspicious/noExplicitAny: an object as the API has it
  async read(name: string): Promise<any> {
    const reply = await this.cluster.call('GET', this.cluster.records(this.name, name))
    return reply.status === 200 ? reply.body : undefined
  }

  /** Names of all records. */
  async names(): Promise<string[]> {
    const list = await this.cluster.must('GET', this.cluster.records(this.name))
    return list.items.map((item: { metadata: { name: string } }) => item.metadata.name).sort()
  }

  /** `name version` of all records, which each write changes. */
  async versions(): Promise<string[]> {
    const list = await this.cluster.must('GET', this.cluster.records(this.name))
    return list.items.map(
      ({ metadata }: { metadata: { name: string; resourceVersion: string } }) =>
        `${metadata.name} ${metadata.resourceVersion}`,
    )
  }

  /** Waits until the operator has nothing to do. */
  async rests(): Promise<void> {
    await this.operator?.rests(() => this.versions())
  }

  /** Status, reason and message of the Ready condition. */
  async condition(name: string): Promise<string> {
    const record = await this.read(name)
    const conditions: readonly ApiObject[] = record?.status?.conditions ?? []
    const ready = conditions.find(({ type }) => type === 'Ready')
    return ready === undefined ? '' : `${ready.status} ${ready.reason}: ${ready.message}`
  }

  async hasCondition(name: string, want: RegExp, timeoutMs = SEEN_MS): Promise<void> {
    let got = ''
    const isSo = async () => want.test((got = await this.condition(name)))
    await until(isSo, `${want} of ${name}`, timeoutMs).catch((error: Error) => {
      throw new Error(`${error.message}, it is ${got}:\n${this.operator?.output}`)
    })
  }

  /** Waits until the nameserver answers with these addresses; '' = with none. */
  async answers(host: string, want: string, timeoutMs = SEEN_MS): Promise<void> {
    const resolver = new Resolver({ timeout: 2000, tries: 2 })
    resolver.setServers([`127.0.0.1:${this.port}`])
    let got = ''
    const isSo = async () => {
      const found = await resolver.resolve4(host).catch(() => [] as string[])
      got = found.sort().join(' ')
      return got === want
    }
    await until(isSo, `${host} to be ${want} at ${this.name}`, timeoutMs).catch((error: Error) => {
      const output = [this.operator?.output, this.server?.output()].join('\n')
      throw new Error(`${error.message}, it is ${got}:\n${output}`)
    })
  }
}

const specOf = (host: string, ...targets: readonly string[]) => ({
  rootHost: host,
  endpoints: [{ dnsName: host, recordType: 'A', recordTTL: 60, targets }],
})

t.setTimeout(CLUSTER_TEST_MS)

/** One API server for all: it takes ten seconds to start. */
t.test('against an API server', needsCluster(), async (t) => {
  const cluster = await Cluster.start(t)
  await cluster.installCrds()
  const east = await Site.create(t, cluster, 'east')
  const west = await Site.create(t, cluster, 'west')
  const sites = [east, west]
  const nameservers = sites.map(({ port }) => `127.0.0.1:${port}`).join(', ')
  for (const site of sites) {
    await site.putSecret({ ZONES: `${ZONE}, other.example`, NAMESERVERS: nameservers })
    await site.startServer()
    await site.startOperator()
  }
  const everywhere = async (host: string, want: string): Promise<void> => {
    for (const site of sites) await site.answers(host, want)
  }

  await t.test('endpoints of each site are served by all sites', async (t) => {
    const host = `app.${ZONE}`
    await east.create('app', specOf(host, '192.0.2.1'))
    await east.answers(host, '192.0.2.1')
    await west.create('app', specOf(host, '192.0.2.2'))
    await everywhere(host, '192.0.2.1 192.0.2.2')
    t.strictSame(await east.names(), ['app', 'local-app', 'merged-app'])
    await east.hasCondition('app', /^True ProviderSuccess: Provider ensured the dns record$/)
    const { metadata, status } = await east.read('app')
    t.strictSame(metadata.finalizers, ['kuadrant.io/dns-record'])
    t.match(status, { zoneID: ZONE, zoneDomainName: ZONE, observedGeneration: 1 })
    t.match(status.ownerID, /^[0-9a-z]{8}$/)
    const local = await east.read('local-app')
    t.strictSame(local.metadata.labels, {
      'kuadrant.io/type': 'local',
      'kuadrant.io/coredns-zone-name': 'kdrnt',
    })
    t.match(local.metadata.ownerReferences, [{ kind: 'DNSRecord', uid: metadata.uid }])
    t.equal(local.spec.rootHost, `${host}.kdrnt`)
    const peers = status.peers.map(({ state, site = '' }: ApiObject) => `${state} ${site}`)
    t.strictSame(peers, ['Live ', 'Live west'], 'our own nameserver reports nothing')
    await until(
      async () => {
        const path = `/apis/events.k8s.io/v1/namespaces/${east.name}/events`
        const { items } = await cluster.must('GET', path)
        return items.some(({ reason }: { reason: string }) => reason === 'ProviderSuccess')
      },
      'an Event',
      SEEN_MS,
    )
  })

  await t.test('GEO, weights and wildcards get through', async (t) => {
    const host = `geo.${ZONE}`
    const given = (site: string, address: string, code: string) => ({
      rootHost: `*.${host}`,
      endpoints: [
        {
          dnsName: `*.${host}`,
          recordType: 'A',
          recordTTL: 60,
          setIdentifier: site,
          targets: [address],
          providerSpecific: [
            { name: 'geo-code', value: code },
            { name: 'weight', value: '7' },
          ],
        },
      ],
    })
    await east.create('geo', given('east', '192.0.2.1', 'GEO-EU'))
    await west.create('geo', given('west', '192.0.2.2', 'GEO-NA'))
    const endpointsOf = async (site: Site) => (await site.read('merged-geo'))?.spec.endpoints ?? []
    for (const site of sites) {
      await until(async () => (await endpointsOf(site)).length === 2, 'both endpoints', SEEN_MS)
    }
    t.strictSame(await endpointsOf(east), await endpointsOf(west))
    t.match(await endpointsOf(east), [
      {
        setIdentifier: 'east',
        providerSpecific: [
          { name: 'weight', value: '7' },
          { name: 'geo-code', value: 'GEO-EU' },
        ],
      },
      { setIdentifier: 'west' },
    ])
    for (const site of sites) await site.remove('geo')
    for (const site of sites) {
      await until(async () => !(await site.names()).includes('merged-geo'), 'its end', SEEN_MS)
    }
  })

  await t.test('an edit is served by all', async () => {
    const host = `app.${ZONE}`
    await east.edit('app', specOf(host, '192.0.2.11', '192.0.2.12'))
    await everywhere(host, '192.0.2.11 192.0.2.12 192.0.2.2')
  })

  await t.test('an operator that is started anew writes nothing', async (t) => {
    for (let i = 0; i < 20; i++)
      await east.create(`many-${i}`, specOf(`many-${i}.${ZONE}`, '192.0.2.9'))
    for (let i = 0; i < 20; i++) await east.hasCondition(`many-${i}`, /^True/)
    // Peers have been heard of all of them.
    for (let i = 0; i < 20; i++) {
      const isSaid = async () => (await east.read(`many-${i}`)).status.peers.length === 2
      await until(isSaid, `the word of the peers of many-${i}`, SEEN_MS)
    }
    await east.rests()
    t.equal(await east.operator?.stop(), 0)
    const before = await east.versions()
    const operator = await east.startOperator()
    const looks = async () => (await operator.metric('sextant_operator_reconciles')) ?? 0
    // Each host is looked at once, and more often only if its parts are seen one after the other.
    const hosts = before.filter((line) => /^(?:app|many-)/.test(line)).length
    await until(async () => (await looks()) >= hosts, 'all looks', SEEN_MS)
    const isLive = async () =>
      (await operator.metric(`sextant_operator_peer_up{peer="127.0.0.1:${west.port}"}`)) === 1
    await until(isLive, 'the peer', SEEN_MS)
    await east.rests()
    t.strictSame(await east.versions(), before)
    t.equal(await operator.metric('sextant_operator_writes_total{kind="status"}'), undefined)
    for (let i = 0; i < 20; i++) await east.remove(`many-${i}`)
  })

  await t.test('a Secret that is of no use says why, and takes nothing away', async () => {
    const table = [
      {
        data: { ZONES: ZONE, NAMESERVERS: '1.2.3:53' },
        want: /DNSProviderError: .*expected an IPAddress/,
      },
      {
        data: { NAMESERVERS: nameservers },
        want: /CoreDNS Provider credentials does not contain ZONES/,
      },
      {
        data: { ZONES: 'other.example' },
        want: /Unable to find suitable zone in provider: no zone for host/,
      },
    ]
    for (const { data, want } of table) {
      await east.putSecret(data)
      await east.hasCondition('app', want)
      await everywhere(`app.${ZONE}`, '192.0.2.11 192.0.2.12 192.0.2.2')
    }
    await east.putSecret({ ZONES: ZONE, NAMESERVERS: nameservers })
    await east.hasCondition('app', /^True/)
  })

  await t.test('edits of derived objects are undone', async () => {
    await east.edit('merged-app', specOf(`app.${ZONE}`, '192.0.2.66'))
    await everywhere(`app.${ZONE}`, '192.0.2.11 192.0.2.12 192.0.2.2')
    await east.remove('local-app')
    await until(async () => (await east.names()).includes('local-app'), 'local-app', SEEN_MS)
    await everywhere(`app.${ZONE}`, '192.0.2.11 192.0.2.12 192.0.2.2')
  })

  await t.test(
    'the endpoints of a dead peer are kept, also over a restart, and it stops no other peer',
    async (t) => {
      const host = `app.${ZONE}`
      await west.killServer()
      await east.hasCondition('app', /1 of 2 nameservers is silent/, SILENT_MS)
      await east.edit('app', specOf(host, '192.0.2.1'))
      await east.answers(host, '192.0.2.1 192.0.2.2')
      // Its status is written last.
      await east.rests()
      await east.operator?.kill()
      const before = await east.versions()
      const operator = await east.startOperator()
      const looks = async () => (await operator.metric('sextant_operator_reconciles')) ?? 0
      await until(async () => (await looks()) >= before.length, 'all looks', SEEN_MS)
      await east.rests()
      await east.answers(host, '192.0.2.1 192.0.2.2')
      t.strictSame(await east.versions(), before)
      const { status } = await east.read('app')
      const silent = status.peers.find(({ state }: ApiObject) => state === 'Silent')
      t.match(silent, { site: 'west', generation: 'v2', lastSeenTime: /Z$/, endpoints: [{}] })
      await west.startServer()
      await east.hasCondition('app', /^True ProviderSuccess: Provider ensured the dns record$/)
      await everywhere(host, '192.0.2.1 192.0.2.2')
    },
  )

  await t.test(
    'a record that comes and goes while a nameserver is dead leaves nothing behind',
    async (t) => {
      const host = `brief.${ZONE}`
      const isGone = async () => {
        const names = [...(await east.names()), ...(await west.names())]
        return !names.some((name) => name.endsWith('brief'))
      }
      await west.killServer()
      await east.create('brief', specOf(host, '192.0.2.7'))
      await west.create('brief', specOf(host, '192.0.2.8'))
      for (const site of sites) await site.hasCondition('brief', /^True/)
      await east.answers(host, '192.0.2.7')
      for (const site of sites) await site.remove('brief')
      await until(isGone, 'its end', SEEN_MS)
      await east.answers(host, '')
      await west.startServer()
      // Once it serves, and has exported its endpoints.
      await west.answers(`app.${ZONE}`, '192.0.2.1 192.0.2.2')
      await east.hasCondition('app', /^True ProviderSuccess: Provider ensured the dns record$/)
      for (const name of [host, `${host}.kdrnt`]) await everywhere(name, '')
      t.ok(await isGone(), 'and no peer brings it back')
    },
  )

  await t.test(
    'with a definition of before an operator works, and says what it lacks',
    async (t) => {
      const host = `relayed.${ZONE}`
      // A peer that reports two sites is a nameserver of neither.
      const reported = (name: string, site: string) =>
        `v2.${name}.kdrnt. 0 IN TXT "v=2" "site=${site}" "host=${name}" "name=${name}" "type=A" "ttl=60" "target=192.0.2.5"`
      const relay = await startServer(t, {
        corefile:
          'kdrnt:{PORT} {\n bind 127.0.0.1\n file zone\n transfer {\n to 127.0.0.1\n }\n}\n',
        files: {
          zone: `kdrnt. 60 IN SOA ns.kdrnt. h.kdrnt. 1 60 60 60 60
kdrnt. 60 IN NS ns.kdrnt.
${reported(host, 'north')}
${reported(`x.${ZONE}`, 'south')}
`,
        },
      })
      await east.putSecret({ ZONES: ZONE, NAMESERVERS: `127.0.0.1:${relay.port}` })
      const crd = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/dnsrecords.kuadrant.io'
      const items =
        '/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/peers/items'
      const relayed = { path: `${items}/properties/relayed`, value: { type: 'boolean' } }
      const define = (op: 'add' | 'remove') =>
        cluster.call('PATCH', crd, [{ op, ...relayed }], {
          contentType: 'application/json-patch+json',
        })
      // What the API server makes of a definition takes it a moment.
      const isKnown = async () => {
        const status = { peers: [{ address: 'x', state: 'Live', relayed: true }] }
        const metadata = { name: 'relayed' }
        const object = { apiVersion: 'kuadrant.io/v1alpha1', kind: 'DNSRecord', metadata, status }
        const path = `${cluster.records(east.name, 'relayed')}/status?dryRun=All&force=true&fieldManager=x`
        const contentType = 'application/apply-patch+yaml'
        return (await cluster.call('PATCH', path, object, { contentType })).status === 200
      }
      const peers = async () => (await east.read('relayed'))?.status?.peers
      await east.operator?.stop()
      await east.create('relayed', specOf(host, '192.0.2.6'))
      t.equal((await define('remove')).status, 200)
      await until(async () => !(await isKnown()), 'the definition of before', DEFINED_MS)
      const before = await east.startOperator()
      await east.answers(host, '192.0.2.5 192.0.2.6', DEFINED_MS)
      await east.hasCondition('relayed', /^True/, DEFINED_MS)
      await until(
        async () => (await peers())?.[0]?.site === 'north',
        'the status of the peer',
        DEFINED_MS,
      )
      await before.prints(/has no field status\.peers\[\]\.relayed/)
      t.equal((await peers())?.[0]?.relayed, undefined)
      t.equal(await before.stop(), 0)
      t.equal((await define('add')).status, 200)
      await until(isKnown, 'the definition', DEFINED_MS)
      const after = await east.startOperator()
      await until(async () => (await peers())?.[0]?.relayed === true, 'all of it', DEFINED_MS)
      t.notMatch(after.output, /has no field status/)
      await east.answers(host, '192.0.2.5 192.0.2.6', DEFINED_MS)
      await east.remove('relayed')
      await east.answers(host, '', DEFINED_MS)
      await east.putSecret({ ZONES: ZONE, NAMESERVERS: nameservers })
      for (const site of sites) await site.answers(`app.${ZONE}`, '192.0.2.1 192.0.2.2', DEFINED_MS)
    },
  )

  await t.test('a record that is deleted is gone everywhere, also after its Secret', async () => {
    const host = `app.${ZONE}`
    await cluster.must('DELETE', `/api/v1/namespaces/${west.name}/secrets/coredns`)
    await west.hasCondition('app', /No default provider secret labeled/)
    await everywhere(host, '192.0.2.1 192.0.2.2')
    await west.remove('app')
    await west.answers(host, '')
    await east.answers(host, '192.0.2.1')
    // The record itself is the last to go.
    await until(async () => (await west.names()).length === 0, 'its end', SEEN_MS)
    await west.putSecret({ ZONES: ZONE, NAMESERVERS: nameservers })
  })

  await t.test('one of two operators works, and the other one continues after it', async (t) => {
    await east.operator?.stop()
    const lease = ['--leader-elect', '--leader-elect-namespace=default']
    const first = await east.startOperator(...lease)
    const leads = (operator: RunningOperator) => async () =>
      (await operator.metric('sextant_operator_leading')) === 1
    await until(leads(first), 'the first to lead', SEEN_MS)
    const second = await east.startOperator(...lease)
    await until(
      async () => /waiting for the lease/.test((await second.ready()).text),
      'the second to wait',
      SEEN_MS,
    )
    const host = `lease.${ZONE}`
    await east.create('lease', specOf(host, '192.0.2.3'))
    await east.hasCondition('lease', /^True/)
    t.equal(await leads(second)(), false)
    t.equal(await second.metric('sextant_operator_writes_total{kind="status"}'), undefined)
    t.equal(await first.stop(), 0)
    await until(leads(second), 'the second to lead', SEEN_MS)
    await east.edit('lease', specOf(host, '192.0.2.4'))
    await east.answers(host, '192.0.2.4')
  })

  await t.test('nothing is left behind', async (t) => {
    for (const name of ['app', 'lease']) await east.remove(name)
    await until(async () => (await east.names()).length === 0, 'the end', SEEN_MS)
    await everywhere(`app.${ZONE}`, '')
    t.equal(await east.operator?.stop(), 0)
    t.equal(await west.operator?.stop(), 0)
  })
})
