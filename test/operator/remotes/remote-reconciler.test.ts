import fc from 'fast-check'
import t from 'tap'
import { ApiError } from '../../../src/kube/api.ts'
import { AUTHORITATIVE, address, HOST } from '../../support/delegation-fixture.ts'
import { dnsRecord, secret } from '../../support/operator-objects.ts'
import { runs } from '../../support/runs.ts'
import {
  DelegationSimulation,
  REMOVAL_TIMEOUT_MS,
  type SimulatedSite,
} from '../delegation-simulation.ts'

const READY = 'True ProviderSuccess: Provider ensured the dns record'
const DELETED_MS = Date.parse('2026-02-01T00:00:00Z')

/** A primary and a secondary with a record that both know of. */
async function pair(): Promise<{
  simulation: DelegationSimulation
  dublin: SimulatedSite
  boston: SimulatedSite
}> {
  const simulation = new DelegationSimulation()
  const dublin = simulation.add('dublin')
  const boston = simulation.add('boston', 'secondary')
  boston.delegate('app', [address(HOST, '192.0.2.1')])
  await simulation.settle()
  return { simulation, dublin, boston }
}

t.test(
  'a record gets a finalizer, is announced, goes into the authoritative record, and gets a status',
  async (t) => {
    const simulation = new DelegationSimulation()
    const dublin = simulation.add('dublin')
    const boston = simulation.add('boston', 'secondary')
    boston.delegate('app', [address(HOST, '192.0.2.1')])
    t.strictSame(await simulation.settle(), [
      'boston: hold app',
      'boston: status app',
      `dublin: put ${AUTHORITATIVE}`,
      'boston: remote status of app by dublin',
      'boston: status app',
      `dublin: status ${AUTHORITATIVE}`,
    ])
    t.strictSame(dublin.served(), [`${HOST} A 192.0.2.1`])
    t.equal(boston.ready('app'), READY)
    t.equal(boston.ready('app', dublin), READY)
    t.strictSame([...boston.cluster.records.keys()], ['a/app'])
    t.strictSame(await simulation.settle(), [], 'who looks again writes nothing')
  },
)

t.test('a record that is not held yet is not taken up', async (t) => {
  const simulation = new DelegationSimulation()
  const dublin = simulation.add('dublin')
  const boston = simulation.add('boston', 'secondary')
  boston.isUp = false
  boston.delegate('app', [address(HOST, '192.0.2.1')])
  boston.isUp = true
  await dublin.reconcile()
  t.strictSame(dublin.cluster.takeWrites(), [])
})

t.test('records of other ways are left to their cluster', async (t) => {
  const simulation = new DelegationSimulation()
  const dublin = simulation.add('dublin')
  const milan = simulation.add('milan')
  milan.delegate('app', [address(HOST, '192.0.2.1')], {
    delegate: false,
    providerRef: { name: 'coredns' },
  })
  await simulation.settle()
  t.strictSame([...dublin.cluster.records.keys()], [])
})

t.test('if another operator has the provider, nothing is written', async (t) => {
  const { simulation, dublin, boston } = await pair()
  const there = async () =>
    (await simulation.settle()).filter((write) => write.startsWith('boston'))
  const labels = { 'kuadrant.io/default-provider': 'true' }
  dublin.cluster.put(secret('a', 'coredns', {}, { labels, type: 'kuadrant.io/aws' }))
  boston.cluster.edit('a/app', { endpoints: [address(HOST, '192.0.2.2')] })
  t.strictSame(await there(), ['boston: status app'])
  boston.cluster.markDeleted('a/app')
  simulation.clock.nowMs = DELETED_MS
  t.strictSame(await there(), ['boston: status app'], 'the last word is its own, too')
})

t.test('an obstacle is in the status of the record, until its cause is gone', async (t) => {
  const table = [
    {
      name: 'no Secret, or no such namespace',
      spoil: ({ dublin }: { dublin: SimulatedSite }) => dublin.cluster.secrets.clear(),
      want: /^False DNSProviderError: cluster dublin: .*No default provider secret .* \(namespace a of the primary cluster\)$/,
    },
    {
      name: 'no zone',
      spoil: ({ dublin }: { dublin: SimulatedSite }) => dublin.putSecret('other.example'),
      want: /^False DNSProviderError: cluster dublin: .*no zone for host: k\.example\.com/,
    },
    {
      name: 'the API refuses',
      spoil: ({ dublin, boston }: { dublin: SimulatedSite; boston: SimulatedSite }) => {
        boston.cluster.edit('a/app', { endpoints: [address(HOST, '192.0.2.2')] })
        dublin.cluster.refuse = ({ kind }) =>
          kind === 'put' ? new ApiError(403, '403 not here') : undefined
      },
      isTriedAgain: true,
      after: '192.0.2.2',
      want: /^False ProviderError: cluster dublin: .*403 not here$/,
    },
  ]
  for (const { name, spoil, want, isTriedAgain = false, after = '192.0.2.1' } of table) {
    const { simulation, dublin, boston } = await pair()
    spoil({ dublin, boston })
    if (isTriedAgain) {
      await t.rejects(dublin.reconcile(), /403/, name)
      await t.rejects(dublin.reconcile(), /403/, name)
      const statuses = boston.cluster.writes.filter((write) => write.startsWith('remote status'))
      t.equal(statuses.length, 1, `${name}: it is reported once`)
      await boston.reconcile()
    } else await simulation.settle()
    t.match(boston.ready('app'), want, name)
    t.strictSame(dublin.served(), [`${HOST} A 192.0.2.1`], `${name}: what is served stays`)
    dublin.cluster.refuse = () => undefined
    dublin.putSecret(HOST)
    await simulation.settle()
    t.equal(boston.ready('app'), READY, name)
    t.strictSame(dublin.served(), [`${HOST} A ${after}`], name)
  }
})

t.test('a namespace of another cluster does not get the host of a namespace here', async (t) => {
  const simulation = new DelegationSimulation()
  const dublin = simulation.add('dublin')
  const boston = simulation.add('boston', 'secondary')
  const endpoints = [address(HOST, '192.0.2.9')]
  const labels = { 'kuadrant.io/default-provider': 'true' }
  const metadata = { creationTimestamp: '2020-01-01T00:00:00Z' }
  const gw = dnsRecord({
    namespace: 'gw',
    uid: 'gw',
    metadata,
    spec: { rootHost: HOST, endpoints },
  })
  dublin.cluster.put(gw)
  dublin.cluster.put(secret('gw', 'coredns', { ZONES: HOST }, { labels }))
  boston.delegate('app', [address(HOST, '192.0.2.1')])
  await simulation.settle()
  t.equal(
    boston.ready('app', dublin),
    `False ProviderError: The DNS provider failed to ensure the record: ${HOST}: not served: namespace gw had ${HOST} first; to serve it, add --share-hosts "${HOST} a" to the operator`,
  )
  t.strictSame(dublin.served(), [])
  dublin.cluster.records.delete('gw/app')
  await simulation.settle()
  t.equal(boston.ready('app', dublin), READY, 'once the host is free')
  t.strictSame(dublin.served(), [`${HOST} A 192.0.2.1`])
})

t.test('a passing failure is retried, and not reported', async (t) => {
  const { dublin, boston } = await pair()
  boston.cluster.edit('a/app', { endpoints: [address(HOST, '192.0.2.2')] })
  dublin.cluster.refuse = ({ kind }) =>
    kind === 'put' ? new ApiError(409, '409 conflict', 0, 'Conflict') : undefined
  await t.rejects(dublin.reconcile(), /409/)
  t.equal(boston.ready('app', dublin), READY)
})

t.test('a deleted record goes once the primary took it back', async (t) => {
  const { simulation, dublin, boston } = await pair()
  boston.cluster.markDeleted('a/app')
  t.strictSame(await simulation.settle(), [
    `dublin: drop ${AUTHORITATIVE}`,
    'boston: remote status of app by dublin',
    'boston: unhold app',
  ])
  t.strictSame([...boston.cluster.records.keys(), ...dublin.cluster.records.keys()], [])
})

t.test('a primary that is gone is not waited for for ever, and leaves nothing', async (t) => {
  const { simulation, dublin, boston } = await pair()
  simulation.clock.nowMs = DELETED_MS
  dublin.isUp = false
  boston.cluster.markDeleted('a/app')
  await simulation.settle()
  t.match(
    boston.ready('app'),
    /^False ProviderEndpointsDeletion: DNS records are being deleted from provider; waiting for cluster dublin until 2026-02-01T01:00:00Z, or at once with the annotation sextant\.io\/let-go: "true"$/,
  )
  simulation.clock.nowMs += REMOVAL_TIMEOUT_MS
  t.strictSame(await simulation.settle(), ['boston: unhold app'])
  t.strictSame([...boston.cluster.records.keys()], [])
  dublin.isUp = true
  t.strictSame(await simulation.settle(), [`dublin: drop ${AUTHORITATIVE}`])
})

t.test('a record that was deleted and made again while the primary was away', async (t) => {
  const { simulation, dublin, boston } = await pair()
  boston.cluster.records.delete('a/app')
  dublin.isUp = false
  boston.delegate('app', [address(HOST, '192.0.2.2')], { ownerID: 'another' })
  await simulation.settle()
  dublin.isUp = true
  await simulation.settle()
  t.strictSame(dublin.served(), [`${HOST} A 192.0.2.2`])
})

t.test('a cluster that turns secondary takes its part back from what it had made', async (t) => {
  const simulation = new DelegationSimulation()
  const former = simulation.add('former')
  former.delegate('app', [address(HOST, '192.0.2.1')])
  await simulation.settle()
  const after = new DelegationSimulation()
  const turned = after.add('former', 'secondary')
  for (const record of former.cluster.records.values()) turned.cluster.put(record)
  await after.settle()
  t.strictSame(turned.served(), [`${HOST} A 192.0.2.1`], 'until it is deleted')
  turned.cluster.markDeleted('a/app')
  await after.settle()
  t.strictSame([...turned.cluster.records.keys()], [])
})

const NAMES = ['one', 'two'] as const
const SITES = ['dublin', 'milan', 'boston'] as const

t.test('whatever happens in which order, all primaries serve what there is', async () => {
  const change = fc.record({
    site: fc.constantFrom(...SITES),
    name: fc.constantFrom(...NAMES),
    what: fc.constantFrom('put', 'put', 'delete', 'vanish', 'down', 'up', 'look'),
    target: fc.integer({ min: 1, max: 5 }).map((i) => `192.0.2.${i}`),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(change, { maxLength: 15 }), async (changes) => {
      const simulation = new DelegationSimulation()
      simulation.clock.nowMs = DELETED_MS
      const primaries = [simulation.add('dublin'), simulation.add('milan')]
      simulation.add('boston', 'secondary')
      const lives = new Map<string, number>()
      for (const { site: where, name, what, target } of changes) {
        const site = simulation.sites.find((one) => one.name === where)!
        const { cluster } = site
        const key = `a/${name}`
        const endpoints = [address(HOST, target)]
        if (what === 'put' && cluster.stored(key) !== undefined) cluster.edit(key, { endpoints })
        else if (what === 'put') {
          const life = (lives.get(where + name) ?? 0) + 1
          lives.set(where + name, life)
          site.delegate(name, endpoints, { ownerID: `${where}-${name}-${life}` })
        } else if (what === 'delete' && cluster.stored(key) !== undefined) cluster.markDeleted(key)
        else if (what === 'vanish') cluster.records.delete(key)
        else if (what === 'down' || what === 'up') site.isUp = what === 'up'
        else if (what === 'look') await site.reconcile()
      }
      for (const site of simulation.sites) site.isUp = true
      await simulation.settle()
      const left = simulation.sites.flatMap(({ cluster }) =>
        NAMES.map((name) => cluster.stored(`a/${name}`)).filter((one) => one !== undefined),
      )
      const targets = left.flatMap(({ spec }) => {
        const { endpoints } = spec as { endpoints: readonly { targets: readonly string[] }[] }
        return endpoints.flatMap((endpoint) => endpoint.targets)
      })
      const want = left.length === 0 ? '' : `${HOST} A ${[...new Set(targets)].sort().join()}`
      for (const primary of primaries) {
        if (primary.served().join() !== want) {
          throw new Error(`${primary.name} serves "${primary.served()}", not "${want}"`)
        }
      }
    }),
    { seed: 20_260_301, numRuns: runs(150) },
  )
})
