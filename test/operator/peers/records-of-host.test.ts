import t from 'tap'
import { thisMoment } from '../../../src/base/moment.ts'
import { Random } from '../../../src/base/random.ts'
import type { ApiObject } from '../../../src/kube/api.ts'
import type { PeerHealth } from '../../../src/operator/peers/peer-health.ts'
import { PeerProbing } from '../../../src/operator/probes/peer-probing.ts'
import type { Reconciler } from '../../../src/operator/reconcile/reconciler.ts'
import { OBSERVED_LABEL } from '../../../src/records/kdrnt.ts'
import { ClusterServer } from '../../support/cluster-server.ts'
import { peerHealthOf, ToyCluster, ToyPeers } from '../../support/operator-cluster.ts'
import { dnsRecord, secret } from '../../support/operator-objects.ts'
import { recordLog } from '../../support/recorded-log.ts'
import { FakeClock, FakeTimers } from '../../support/setup.ts'
import { toyReconciler } from '../../support/toy-reconciler.ts'

const HOST = 'k.example.com'
const EAST = '192.0.2.53:53'
const PEER = '192.0.2.9'
const OURS = ['192.0.2.1', '192.0.2.2']
const FAST: ApiObject = { protocol: 'TCP', port: 443, interval: '5s', failureThreshold: 1 }
const SLOW: ApiObject = { protocol: 'TCP', port: 80, interval: '1m', failureThreshold: 3 }
/** Of FAST. */
const BOUND_S = 3 * 5 + 10

/** Records `one` and `two` of a host in one cluster, and a peer with one address. */
class Stage {
  readonly cluster = new ToyCluster()
  readonly timers = new FakeTimers()
  readonly log = recordLog()
  readonly probed = new Set<string>()
  readonly #clock = new FakeClock()
  readonly #peers = new ToyPeers()
  readonly #server = new ClusterServer()
  /** Records that are to be reconciled. */
  readonly #queue = new Set<string>()
  #reconciler: Reconciler | undefined
  #peerHealth: PeerHealth | undefined
  isDead = false

  constructor() {
    this.cluster.put(secret('a', 'coredns', { ZONES: HOST, NAMESERVERS: EAST }))
  }

  put(name: string, healthCheck: ApiObject | undefined, more: readonly string[] = []): void {
    const targets = [OURS[name === 'one' ? 0 : 1]!, ...more]
    const endpoints = [{ dnsName: HOST, recordType: 'A', recordTTL: 60, targets }]
    const spec = { endpoints, ...(healthCheck === undefined ? {} : { healthCheck }) }
    this.cluster.put(dnsRecord({ name, spec }))
    this.#queue.add(`a/${name}`)
  }

  start(): void {
    this.#peerHealth?.close()
    const onEvent = (key: string) => void this.#queue.add(key)
    const { timers } = this
    const clock = this.#clock
    const { log } = this.log
    const probing = new PeerProbing({
      probe: async ({ address, check }) => {
        this.probed.add(`${address}:${check.port}`)
        const kind = this.isDead ? 'unhealthy' : 'healthy'
        return { kind, httpStatus: 0, reason: this.isDead ? 'timeout' : '' }
      },
      ...{ allowsInsecureCertificates: true, onChange: onEvent, onResult: () => {} },
      ...{ clock, timers, random: new Random(1) },
    })
    const peerHealth = peerHealthOf('here', clock, { probing, timers, log, onEvent })
    this.#peerHealth = peerHealth
    this.#reconciler = toyReconciler(this.cluster, clock, {
      ...{ site: 'here', peers: this.#peers, peerHealth },
    })
    for (const name of ['one', 'two']) this.#queue.add(`a/${name}`)
  }

  /** Passes time. Reconciles what an event names, and nothing else. */
  async run(seconds: number, check: () => void = () => {}): Promise<string | undefined> {
    for (let i = 0; i < seconds; i++) {
      this.#clock.pass(1000)
      if (this.isDead) this.#peers.fallSilent(EAST)
      else
        this.#peers.say(EAST, 'east', [{ targets: [PEER], health: 'up' }], thisMoment(this.#clock))
      this.#peers.heardMs.set(EAST, this.isDead ? 0 : this.#clock.monotonic())
      await this.timers.advance(1000)
      while (this.#queue.size > 0) {
        const keys = [...this.#queue]
        this.#queue.clear()
        for (const key of keys) await this.#reconciler!.reconcile(key)
      }
      this.#server.apply(this.cluster.records.values())
      check()
    }
    return this.served
  }

  get served(): string | undefined {
    return this.#server.targets(`${HOST}. A`)
  }

  /** Deletes a record, as its user would. */
  remove(name: string): void {
    this.cluster.markDeleted(`a/${name}`)
    this.#queue.add(`a/${name}`)
  }

  /** Number of observations that `local-<name>` exports. */
  exported(name: string): number {
    const { spec } = this.cluster.stored(`a/local-${name}`) as { spec: ApiObject }
    const names = (spec.endpoints as ApiObject[]).map(({ dnsName }) => `${dnsName}`)
    return names.filter((one) => one.startsWith(`${OBSERVED_LABEL}.`)).length
  }
}

const ALL = [...OURS, PEER].join(' ')
const LEFT = OURS.join(' ')

for (const [what, one, two, port] of [
  ['both checked', FAST, FAST, 443],
  ['one checked', FAST, undefined, 443],
  ['the other checked', undefined, FAST, 443],
  ['different checks: the first one holds', FAST, SLOW, 443],
] as const) {
  t.test(`a dead address of a peer is out in all records of a host: ${what}`, async (t) => {
    const stage = new Stage()
    stage.put('one', one)
    stage.put('two', two)
    stage.start()
    t.equal(await stage.run(30), ALL, 'before')
    stage.isDead = true
    t.equal(await stage.run(BOUND_S), LEFT, 'after the bound')
    t.strictSame([...stage.probed], [`${PEER}:${port}`], 'by one check')
    let found = ''
    stage.start()
    await stage.run(40, () => {
      if (stage.served !== LEFT) found = `${stage.served}`
    })
    t.equal(found, '', 'also after a restart')
    stage.isDead = false
    t.equal(await stage.run(BOUND_S), ALL, 'after the recovery')
  })
}

t.test('one record of a host exports what was observed, and its successor knows it', async (t) => {
  const stage = new Stage()
  stage.put('one', FAST)
  stage.put('two', SLOW)
  stage.start()
  t.equal(await stage.run(30), ALL)
  stage.isDead = true
  t.equal(await stage.run(60), LEFT)
  t.strictSame([stage.exported('one'), stage.exported('two')], [1, 0])
  stage.remove('one')
  let found = ''
  await stage.run(120, () => {
    if (stage.served !== OURS[1]) found = `${stage.served}`
  })
  t.equal(found, '', 'the address stays out')
  t.equal(stage.exported('two'), 1)
  t.strictSame([...stage.probed], [`${PEER}:443`, `${PEER}:80`])
})

t.test('an address of another record of the host is no address of a peer alone', async (t) => {
  const stage = new Stage()
  stage.put('one', FAST)
  stage.put('two', undefined, [PEER])
  stage.start()
  t.equal(await stage.run(30), ALL)
  t.strictSame([...stage.probed], [], 'it is ours')
})
