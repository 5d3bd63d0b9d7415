import t from 'tap'
import type { ApiObject } from '../../../src/kube/api.ts'
import { roleOf } from '../../../src/operator/record/record-view.ts'
import {
  printZoneFault,
  printZoneNote,
  type ZoneState,
} from '../../../src/operator/zones/zone-state.ts'
import { ToyCluster } from '../../support/operator-cluster.ts'
import { at, secret } from '../../support/operator-objects.ts'
import { FakeClock } from '../../support/setup.ts'
import { toyReconciler } from '../../support/toy-reconciler.ts'

const FAULT = printZoneFault('k.example.com', '192.0.2.53:53 (REFUSED)')
const NOTE = printZoneNote('k.example.com', '192.0.2.53:53 (no answer)')
const READY = 'True ProviderSuccess: Provider ensured the dns record'
const UNSERVED = `False ZoneNotServed: Published, but ${FAULT}`
const PASSIVE = 'False MemberOfInactiveGroup: No further actions to take while in inactive group'

function recordOf(name: string, spec: ApiObject): ApiObject {
  return {
    apiVersion: 'kuadrant.io/v1alpha1',
    kind: 'DNSRecord',
    metadata: { name, namespace: 'a', uid: `uid-of-${name}`, generation: 1 },
    spec: {
      rootHost: `${name}.k.example.com`,
      endpoints: [{ dnsName: `${name}.k.example.com`, recordType: 'A', targets: ['192.0.2.1'] }],
      ...spec,
    },
  }
}

function stage(isPassive: boolean) {
  const cluster = new ToyCluster()
  const labels = { 'kuadrant.io/default-provider': 'true' }
  cluster.put(secret('a', 'coredns', { ZONES: 'k.example.com' }, { labels }))
  cluster.put(recordOf('plain', {}))
  cluster.put(recordOf('delegating', { delegate: true }))
  const zone: { state: ZoneState } = { state: { fault: '', note: '' } }
  const membership = isPassive ? { group: 'g1', active: ['g2'] } : undefined
  const reconciler = toyReconciler(cluster, new FakeClock(), {
    zones: { stateOf: () => zone.state, forget: () => {} },
    groups: { ownGroup: '', membershipOf: () => membership, forget: () => {} },
  })
  const settle = async (state: ZoneState): Promise<void> => {
    zone.state = state
    for (let i = 0; i < 3; i++)
      for (const key of [...cluster.records.keys()]) await reconciler.reconcile(key)
  }
  const readyOf = (name: string): string => {
    const [, object] = [...cluster.records].find(([key, one]) => {
      return name === 'authoritative' ? roleOf(one) === name : key === `a/${name}`
    })!
    const conditions = at(object, 'status', 'conditions') as readonly ApiObject[]
    const { status, reason, message } = conditions.find(({ type }) => type === 'Ready')!
    return `${status} ${reason}: ${message}`
  }
  const served = (): ApiObject[] =>
    [...cluster.records.values()].map((one) => one.spec as ApiObject)
  return { settle, readyOf, served }
}

t.test('a record whose zone no nameserver serves is not Ready', async (t) => {
  for (const { name, isPassive = false, state, want, delegating } of [
    { name: 'served', state: { fault: '', note: '' }, want: READY },
    { name: 'refused', state: { fault: FAULT, note: '' }, want: UNSERVED },
    {
      name: 'no answer',
      state: { fault: '', note: NOTE },
      want: `${READY}; ${NOTE}`,
      delegating: READY,
    },
    {
      name: 'refused, then no answer',
      state: { fault: FAULT, note: NOTE },
      want: `${UNSERVED}; ${NOTE}`,
      delegating: UNSERVED,
    },
    {
      name: 'passive',
      isPassive: true,
      state: { fault: FAULT, note: '' },
      want: `${PASSIVE}; ${FAULT}`,
    },
  ]) {
    const { settle, readyOf, served } = stage(isPassive)
    await settle({ fault: '', note: '' })
    const before = served()
    await settle(state)
    t.equal(readyOf('plain'), want, name)
    t.equal(readyOf('delegating'), delegating ?? want, `${name}: delegating`)
    if (!isPassive) t.equal(readyOf('authoritative'), want, `${name}: authoritative`)
    t.strictSame(served(), before, `${name}: what is published stays`)
    await settle({ fault: '', note: '' })
    t.equal(readyOf('plain'), isPassive ? PASSIVE : READY, `${name}: it is over`)
  }
})
