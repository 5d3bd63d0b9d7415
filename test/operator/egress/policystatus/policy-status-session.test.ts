import t, { type Test } from 'tap'
import { Random } from '../../../../src/base/random.ts'
import { createLogger } from '../../../../src/base/telemetry/log.ts'
import { MetricsRegistry } from '../../../../src/base/telemetry/metrics.ts'
import { POLICY_KINDS } from '../../../../src/egress/policies/policy-kinds.ts'
import { type ApiObject, isObject, type JsonValue } from '../../../../src/kube/api.ts'
import { PolicyStatusSession } from '../../../../src/operator/egress/policystatus/policy-status-session.ts'
import { turns } from '../../../support/api-double.ts'
import { eventRecorder } from '../../../support/event-recorder.ts'
import { MemoryApi } from '../../../support/memory-api.ts'
import { FakeClock, FakeTimers } from '../../../support/setup.ts'

const kindOf = (name: string) => POLICY_KINDS.find(({ kind }) => kind === name)!
const CLUSTER_POLICY = kindOf('ClusterNetworkPolicy')
const FOREIGN = { type: 'Ready-In-Zone-a', status: 'True', reason: 'Done', message: '' }

/** A session, its API server, and time. */
class Bench {
  readonly api = new MemoryApi()
  readonly clock = new FakeClock()
  readonly timers = new FakeTimers()
  mayWrite = true
  readonly session: PolicyStatusSession

  constructor(t: Test) {
    const log = createLogger(
      'operator',
      () => {},
      () => true,
    )
    const { api, clock, timers } = this
    const env = { api, namespaces: [], log, clock, timers, random: new Random(7) }
    this.session = new PolicyStatusSession({
      ...env,
      events: eventRecorder(env),
      registry: new MetricsRegistry(),
      mayWrite: () => this.mayWrite,
    })
    t.teardown(() => this.session.close())
  }

  /** Writes a policy. It keeps its status, unless `conditions` are given. */
  put(kind: string, spec: ApiObject, generation = 1, conditions = this.conditions(kind)): void {
    this.api.put(kindOf(kind).resource, {
      metadata: { name: 'one', generation },
      spec,
      ...(conditions.length === 0 ? {} : { status: { conditions } }),
    })
  }

  async settle(): Promise<void> {
    for (let i = 0; i < 6; i++) {
      await turns(30)
      this.clock.pass(2000)
      await this.timers.advance(2000)
    }
    await turns(30)
  }

  conditions(kind = 'ClusterNetworkPolicy'): readonly JsonValue[] {
    const object = this.api.all(kindOf(kind).resource).get('one')
    const conditions = isObject(object?.status) ? object.status.conditions : []
    return Array.isArray(conditions) ? conditions : []
  }
}

const SUBJECT = { namespaces: {} }
const GOOD = { tier: 'Admin', priority: 1, subject: SUBJECT }
const accept = (peer: ApiObject) => ({
  ...GOOD,
  egress: [{ action: 'Accept', to: [peer] }],
})
const V1ALPHA1 = {
  subject: SUBJECT,
  egress: [{ action: 'Allow', to: [{ networks: ['192.0.2.0/24'] }] }],
}

for (const { title, kind = 'ClusterNetworkPolicy', spec, want } of [
  {
    title: 'names',
    spec: accept({ domainNames: ['www.example.com'] }),
    want: {
      status: 'True',
      reason: 'Accepted',
      message: 'sextant node can enforce all egress rules.',
    },
  },
  {
    title: 'an unknown kind of peer',
    spec: accept({ moons: {} }),
    want: { status: 'False', reason: 'UnsupportedParts', message: /^spec\.egress\[0\]\.to\[0\]/ },
  },
  {
    title: 'many faults',
    spec: { ...GOOD, egress: Array(25).fill({ action: 'Accept', to: [{ moons: {} }] }) },
    want: { status: 'False', message: /; and \d+ more$/ },
  },
  {
    title: 'an AdminNetworkPolicy',
    kind: 'AdminNetworkPolicy',
    spec: { ...V1ALPHA1, priority: 1 },
    want: { status: 'True', reason: 'Accepted' },
  },
  {
    title: 'a BaselineAdminNetworkPolicy',
    kind: 'BaselineAdminNetworkPolicy',
    spec: V1ALPHA1,
    want: { status: 'True', reason: 'Accepted' },
  },
]) {
  t.test(`the condition of a policy: ${title}`, async (t) => {
    const bench = new Bench(t)
    bench.put(kind, spec, 3)
    await bench.settle()
    t.match(bench.conditions(kind), [{ type: 'SextantAccepted', observedGeneration: 3, ...want }])
    t.equal(bench.conditions(kind).length, 1)
  })
}

t.test('it follows the policy, and is written when it changes only', async (t) => {
  const bench = new Bench(t)
  bench.put('ClusterNetworkPolicy', accept({ moons: {} }), 1, [FOREIGN])
  await bench.settle()
  t.match(bench.conditions(), [FOREIGN, { type: 'SextantAccepted', status: 'False' }])
  const [, before] = bench.conditions() as [JsonValue, { lastTransitionTime: string }]
  await bench.settle()
  t.equal(bench.api.writes.length, 1)
  // Another fault: the status is the same, so the time of its transition stays.
  bench.put('ClusterNetworkPolicy', accept({ suns: {} }), 2)
  await bench.settle()
  t.match(bench.conditions()[1], { lastTransitionTime: before.lastTransitionTime })
  bench.put('ClusterNetworkPolicy', accept({ networks: ['192.0.2.0/24'] }), 3)
  await bench.settle()
  t.match(bench.conditions(), [FOREIGN, { status: 'True', observedGeneration: 3 }])
  t.notMatch(bench.conditions()[1], { lastTransitionTime: before.lastTransitionTime })
  t.equal(bench.api.writes.length, 3)
  bench.api.drop(CLUSTER_POLICY.resource, 'one')
  await bench.settle()
  t.equal(bench.api.writes.length, 3)
})

t.test('a cluster that serves one version of ClusterNetworkPolicy', async (t) => {
  for (const version of ['v1beta1', 'v1alpha2']) {
    const bench = new Bench(t)
    const resource = { ...CLUSTER_POLICY.resource, version }
    bench.api.refuse = ({ path }) => {
      return path.includes('/clusternetworkpolicies') && !path.includes(version) ? 404 : undefined
    }
    const spec = { ...accept({ domainNames: ['www.example.com'] }), tier: 'Baseline' }
    bench.api.put(resource, { metadata: { name: 'one', generation: 1 }, spec })
    await bench.settle()
    const message =
      'spec.egress[0].to[0].domainNames: only policies of the tier Admin may have names'
    t.match(
      bench.api.all(resource).get('one'),
      { status: { conditions: [{ type: 'SextantAccepted', status: 'False', message }] } },
      version,
    )
    t.equal(bench.session.reason, '')
  }
})

t.test('only the leader writes', async (t) => {
  const bench = new Bench(t)
  bench.mayWrite = false
  bench.put('ClusterNetworkPolicy', GOOD)
  await bench.settle()
  t.strictSame(bench.api.writes, [])
})

t.test('kinds that the cluster lacks are no fault, unless it has none', async (t) => {
  for (const [absent, isFault] of [
    [['adminnetworkpolicies', 'baselineadminnetworkpolicies'], false],
    [['adminnetworkpolicies', 'baselineadminnetworkpolicies', 'clusternetworkpolicies'], true],
  ] as const) {
    const bench = new Bench(t)
    bench.api.refuse = ({ path }) =>
      absent.some((one) => path.includes(`/${one}`)) ? 404 : undefined
    await bench.settle()
    t.equal(bench.session.reason !== '', isFault, bench.session.reason)
  }
})
