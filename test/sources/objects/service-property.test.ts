import fc from 'fast-check'
import t from 'tap'
import { keyOf } from '../../../src/kube/object-key.ts'
import { SERVICE } from '../../../src/sources/objects/service/service-kind.ts'
import { nodeOf, podOf, serviceOf, sliceOf } from './service-objects.ts'
import { fold, type Put, settledOf } from './settled.ts'

const HOSTNAME = 'external-dns.kubernetes.io/hostname'
const NODES = ['n1', 'n2']
const PODS = ['p1', 'p2']
const SERVICES = ['web', 'api']

const address = fc.integer({ min: 1, max: 3 }).map((n) => `10.0.0.${n}`)
const annotations = fc.record(
  {
    [HOSTNAME]: fc.constantFrom('a.example.com', 'b.example.com, a.example.com', 'bad..host'),
    'external-dns.kubernetes.io/endpoints-type': fc.constantFrom('HostIP', 'NodeExternalIP'),
    'sextant.io/weight': fc.constantFrom('1', 'x'),
  },
  { requiredKeys: [] },
)
const spec = fc.constantFrom(
  { type: 'LoadBalancer' },
  { type: 'NodePort', ports: [{ nodePort: 30080 }] },
  { type: 'NodePort', externalTrafficPolicy: 'Local' },
  { clusterIP: 'None' },
  { clusterIP: 'None', publishNotReadyAddresses: true },
)
const put: fc.Arbitrary<Put> = fc.oneof(
  fc
    .tuple(fc.constantFrom(...SERVICES), annotations, spec, fc.option(address))
    .map(([name, texts, fields, ip]) => {
      const status = { loadBalancer: { ingress: ip === null ? [] : [{ ip }] } }
      return serviceOf(name, texts as Record<string, string>, { spec: fields, status })
    }),
  fc
    .tuple(fc.constantFrom(...NODES), address, fc.boolean())
    .map(([name, ip, unschedulable]) => nodeOf(name, { ExternalIP: [ip] }, { unschedulable })),
  fc
    .tuple(fc.constantFrom(...PODS), fc.constantFrom(...NODES), address, fc.constantFrom('', 'one'))
    .map(([name, node, hostAddress, hostname]) => podOf(name, { node, hostAddress, hostname })),
  fc
    .tuple(
      fc.constantFrom('s1', 's2', 's3'),
      fc.constantFrom(...SERVICES, 'other'),
      fc.array(
        fc.record({
          pod: fc.constantFrom(...PODS),
          addresses: fc.array(address, { maxLength: 1 }),
          conditions: fc.constantFrom({}, { ready: false }, { ready: false, serving: true }),
          node: fc.constantFrom(...NODES),
        }),
        { maxLength: 2 },
      ),
    )
    .map(([name, service, endpoints]) => sliceOf(name, service, endpoints)),
)
/** `isRemoval`: the object is removed, if it is known. `settles`: the reader is asked for changes after it. */
const step = fc.record({
  put,
  isRemoval: fc.integer({ max: 3, min: 0 }).map((n) => n === 0),
  settles: fc.boolean(),
})

t.test('any order of changes gives what a new reader of the final objects gives', async (t) => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 25 }), (steps) => {
      const reader = SERVICE.open()
      const held = new Map<string, Put>()
      const served = new Map()
      for (const { put, isRemoval, settles } of steps) {
        const key = keyOf(put.object)
        if (isRemoval) {
          held.delete(`${put.plural} ${key}`)
          reader.remove(put.plural, key)
        } else {
          held.set(`${put.plural} ${key}`, put)
          reader.put(put.plural, put.object)
        }
        if (settles) fold(served, reader)
      }
      fold(served, reader)
      const sorted = (map: typeof served) => [...map].sort(([a], [b]) => (a < b ? -1 : 1))
      t.strictSame(sorted(served), sorted(settledOf(SERVICE, [...held.values()])))
      for (const { plural } of SERVICE.resources) {
        const keys = [...held.values()].filter((one) => one.plural === plural)
        t.strictSame(
          [...reader.keys(plural, '')].sort(),
          keys.map((one) => keyOf(one.object)).sort(),
        )
      }
      t.strictSame(reader.settle(), [], 'each change is settled once')
    }),
    { numRuns: 300 },
  )
})

t.test('an equal object settles nothing', async (t) => {
  const reader = SERVICE.open()
  const node = nodeOf('n1', { ExternalIP: ['192.0.2.1'] })
  const service = serviceOf('web', { [HOSTNAME]: 'a.example.com' }, { spec: { type: 'NodePort' } })
  for (const { plural, object } of [service, node]) reader.put(plural, object)
  t.equal(reader.settle().length, 1)
  reader.put('nodes', { ...node.object, metadata: { name: 'n1', resourceVersion: '2' } })
  t.strictSame(reader.settle(), [])
})
