import { thisMoment } from '../../../src/base/moment.ts'
import type { ApiObject } from '../../../src/kube/api.ts'
import type { GroupDirectory } from '../../../src/operator/groups/group-set.ts'
import type { Plan } from '../../../src/operator/plan/plan.ts'
import type { Reconciler } from '../../../src/operator/reconcile/reconciler.ts'
import type { RecordDeaths } from '../../../src/operator/reconcile/record-deaths.ts'
import type { PeersForm } from '../../../src/operator/status/peer-status.ts'
import { ToyCluster, ToyPeers } from '../../support/operator-cluster.ts'
import { at, secret } from '../../support/operator-objects.ts'
import { FakeClock } from '../../support/setup.ts'
import { toyReconciler } from '../../support/toy-reconciler.ts'

export const HOUR_MS = 3_600_000
export const EAST = '192.0.2.53:53'
export const WEST = '[2001:db8::53]:53'
export const KEY = 'a/app'

export class OperatorFixture {
  readonly cluster = new ToyCluster()
  readonly peers = new ToyPeers()
  readonly clock = new FakeClock()
  readonly plans: Plan[] = []
  readonly conflicts: string[] = []
  readonly forgotten: string[] = []
  peersForm: PeersForm = 'whole'
  /** Changing it needs `start`. */
  groups: GroupDirectory | undefined
  /** Changing it needs `start`. */
  isProbing = true
  hasCounts = true
  /** What is wrong with the clock of the API server. */
  readonly apiClock = { fault: '' }
  deaths: RecordDeaths | undefined
  reconciler = this.start()

  constructor() {
    const data = { ZONES: 'k.example.com', NAMESERVERS: `${EAST}, ${WEST}` }
    this.cluster.put(secret('a', 'coredns', data))
  }

  /** An operator, as after a restart. */
  start(): Reconciler {
    this.reconciler = toyReconciler(this.cluster, this.clock, {
      peers: this.peers,
      listener: {
        reconciled: (_record, plan, { conflicts }) => {
          this.plans.push(plan)
          this.conflicts.push(...conflicts)
        },
        departed: () => {},
        forgot: (key) => this.forgotten.push(key),
      },
      deaths: this.deaths,
      apiClock: this.apiClock,
      peersForm: () => this.peersForm,
      isProbing: this.isProbing,
      hasCounts: () => this.hasCounts,
      ...(this.groups === undefined ? {} : { groups: this.groups }),
    })
    return this.reconciler
  }

  say(address: string, site: string, targets: readonly string[]): void {
    const endpoints = targets.length === 0 ? [] : [{ targets }]
    this.peers.say(address, site, endpoints, thisMoment(this.clock))
  }

  /** Makes a peer report a state of another site. */
  relay(address: string, site: string, targets: readonly string[]): void {
    this.peers.say(address, site, [{ targets }], thisMoment(this.clock), false)
  }

  /** Looks at the record until there is nothing to do; returns the writes. */
  async reconcile(key = KEY): Promise<string[]> {
    await this.reconciler.reconcile(key)
    const writes = this.cluster.takeWrites()
    await this.reconciler.reconcile(key)
    if (this.cluster.takeWrites().length > 0) throw new Error('a second look wrote something')
    return writes
  }

  field(name: string, ...path: readonly string[]): unknown {
    return at(this.cluster.stored(`a/${name}`), ...path)
  }

  /** Targets of the endpoints that are served. */
  served(): unknown {
    const endpoints = this.field('merged-app', 'spec', 'endpoints') as readonly ApiObject[]
    return endpoints.map(({ targets }) => targets)
  }

  ready(): readonly unknown[] {
    const conditions = this.field('app', 'status', 'conditions') as readonly ApiObject[]
    const ready = conditions.find(({ type }) => type === 'Ready')
    return [ready?.status, ready?.reason, ready?.message]
  }
}
