import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { applyAll } from '../support/apply.ts'
import { CLUSTER_TEST_MS, type Cluster } from '../support/cluster.ts'
import { needsCluster } from '../support/cluster-binary.ts'
import { composeManifests } from '../support/kustomize.ts'
import { needsRoot } from '../support/peer.ts'
import { LACKED, rightsInForce, SYSTEM } from '../support/rights.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'
import { until } from '../support/until.ts'
import { DELTA10, GKE, ownAddress, POLICIES, SEEN_MS, Shop, to, Zone } from './fqdn-policies.ts'
import { startPod } from './pod.ts'

const NAME = 'fqdnnetworkpolicies.networking.gke.io'
const FINALIZER = `finalizer.${NAME}`
const ABANDON = { [`${NAME}/delete-policy`]: 'abandon' }
const ADDRESS = '198.51.100.1/32'

t.setTimeout(CLUSTER_TEST_MS)

/** As far as the API server says: each request, by whom, and for what. */
interface AuditEvent {
  readonly verb: string
  readonly user: { readonly username: string }
  readonly objectRef?: {
    readonly apiGroup?: string
    readonly resource: string
    readonly subresource?: string
  }
}

/** Does what the garbage collector of Kubernetes does with the policies of `shop`: the API server has none. */
class GarbageCollector {
  readonly #cluster: Cluster
  readonly #shop: Shop

  constructor(shop: Shop) {
    this.#cluster = shop.cluster
    this.#shop = shop
  }

  async run(): Promise<void> {
    const { items } = await this.#cluster.must('GET', POLICIES)
    for (const { metadata } of items) {
      const { name, uid, ownerReferences = [] } = metadata
      const owners = []
      for (const owner of ownerReferences) owners.push(await this.#ownerOf(owner))
      if (owners.length === 0 || owners.some((owner) => owner === 'live')) continue
      const path = `${POLICIES}/${name}`
      if (owners.includes('orphaning')) {
        await this.#cluster.must('PATCH', path, { metadata: { ownerReferences: null } })
      } else await this.#cluster.must('DELETE', path, { preconditions: { uid } })
    }
    for (const api of [DELTA10, GKE]) {
      const { items } = await this.#cluster.must('GET', this.#shop.path('', api))
      for (const { metadata } of items) {
        if (metadata.deletionTimestamp === undefined) continue
        const own = ['orphan', 'foregroundDeletion']
        const finalizers = metadata.finalizers.filter((one: string) => !own.includes(one))
        await this.#cluster.must('PATCH', this.#shop.path(metadata.name, api), {
          metadata: { finalizers },
        })
      }
    }
  }

  /** `orphaning`: its dependents are kept. */
  async #ownerOf(owner: { apiVersion: string; name: string; uid: string }): Promise<string> {
    const path = this.#shop.path(owner.name, owner.apiVersion)
    const { status, body } = await this.#cluster.call('GET', path)
    if (status === 404 || body.metadata.uid !== owner.uid) return 'gone'
    const { finalizers = [], deletionTimestamp } = body.metadata
    if (deletionTimestamp === undefined) return 'live'
    if (finalizers.includes('orphan')) return 'orphaning'
    return finalizers.includes('foregroundDeletion') ? 'gone' : 'live'
  }
}

/** The rights that requests of the operator needed, and those that the manifests give: `verb group/resource`. */
function rightsOf(auditLog: string): { used: Set<string>; given: Set<string> } {
  const used = new Set<string>()
  for (const line of readFileSync(auditLog, 'utf8').trim().split('\n')) {
    const { verb, user, objectRef }: AuditEvent = JSON.parse(line)
    if (user.username !== 'viewer' || objectRef === undefined) continue
    const { apiGroup = '', resource, subresource = '' } = objectRef
    const path = `${apiGroup}/${resource}${subresource === '' ? '' : `/${subresource}`}`
    used.add(`${verb} ${path}`)
    // An API server that streams lists gets a watch in place of each.
    if (verb === 'watch') used.add(`list ${path}`)
  }
  const given = new Set<string>()
  for (const { rules = [] } of composeManifests('deploy/fqdn-network-policy')) {
    for (const { apiGroups, resources, verbs } of rules) {
      for (const group of apiGroups) {
        for (const resource of resources) {
          for (const verb of verbs) given.add(`${verb} ${group}/${resource}`)
        }
      }
    }
  }
  return { used, given }
}

t.test(
  'the end of FQDNNetworkPolicies, and the rights of their operator',
  needsCluster(),
  async (t) => {
    const host = ownAddress()
    if (host === undefined)
      return void t.comment('skipped: this machine has only loopback addresses')
    const directory = temporaryDirectory(t)
    const [auditPolicy, auditLog] = [join(directory, 'policy'), join(directory, 'log')]
    const rule = { level: 'Metadata', omitStages: ['RequestReceived', 'ResponseStarted'] }
    const kind = { apiVersion: 'audit.k8s.io/v1', kind: 'Policy' }
    writeFileSync(auditPolicy, JSON.stringify({ ...kind, rules: [rule] }))
    const shop = await Shop.start(t, [
      `--audit-policy-file=${auditPolicy}`,
      `--audit-log-path=${auditLog}`,
      '--enable-admission-plugins=OwnerReferencesPermissionEnforcement',
    ])
    const { cluster } = shop
    const collector = new GarbageCollector(shop)
    const zone = await Zone.open(t, host)
    zone.set('a.example', 300, '198.51.100.1')
    zone.set('b.example', 300, '198.51.100.2')
    await shop.addServer('dns', zone.server)
    let operator = await shop.startOperator()

    const create = async (name: string, api = DELTA10, metadata: object = {}) => {
      const { metadata: created } = await shop.create(name, to('a.example'), metadata, api)
      await shop.has(name, ADDRESS)
      return created.uid
    }
    const remove = (name: string, api: string, propagationPolicy = 'Background') =>
      cluster.must('DELETE', shop.path(name, api), { propagationPolicy })
    const isGone = async (name: string, api: string) =>
      (await cluster.call('GET', shop.path(name, api))).status === 404
    const owners = async (name: string): Promise<readonly string[]> => {
      const { ownerReferences = [] } = (await shop.networkPolicy(name)).metadata
      return ownerReferences.map(({ uid }: { uid: string }) => uid)
    }
    const annotate = (name: string, annotations: object) =>
      cluster.must('PATCH', `${POLICIES}/${name}`, { metadata: { annotations } })
    /** Collects garbage, and waits until the operator has handled all earlier events. */
    const settle = async (): Promise<void> => {
      await collector.run()
      await create('settled')
      await remove('settled', DELTA10)
      await collector.run()
    }
    /** What Google's controller leaves: a finalizer, an annotation, and no owner reference. */
    const createOld = async (name: string, annotations: object = {}): Promise<void> => {
      await cluster.must('POST', POLICIES, {
        metadata: { name, annotations: { [`${NAME}/owned-by`]: name, ...annotations } },
        spec: { podSelector: {}, policyTypes: ['Egress'] },
      })
      await shop.create(name, to('a.example'), { finalizers: [FINALIZER] }, GKE)
    }

    for (const api of [DELTA10, GKE]) {
      const suffix = api === GKE ? 'gke' : 'delta10'
      const [plain, foreground] = [`plain-${suffix}`, `foreground-${suffix}`]
      const [orphan, again, final] = [`orphan-${suffix}`, `again-${suffix}`, `final-${suffix}`]
      await t.test(`${api}: the NetworkPolicy is deleted with its policy`, async (t) => {
        const uid = await create(plain, api)
        t.strictSame(await owners(plain), [uid])
        await remove(plain, api)
        t.ok(await isGone(plain, api))
        await settle()
        t.equal(await shop.cidrs(plain), 'none')

        await create(foreground, api)
        await remove(foreground, api, 'Foreground')
        t.notOk(await isGone(foreground, api))
        await settle()
        t.ok(await isGone(foreground, api))
        t.equal(await shop.cidrs(foreground), 'none', 'it was not restored')
      })

      await t.test(`${api}: the NetworkPolicy is kept on request`, async (t) => {
        await create(orphan, api)
        await remove(orphan, api, 'Orphan')
        await settle()
        t.ok(await isGone(orphan, api))
        t.strictSame(await owners(orphan), [])
        t.equal(await shop.cidrs(orphan), ADDRESS)
        const uid = await create(orphan, api)
        const isAdopted = async () => (await owners(orphan)).join() === uid
        await until(isAdopted, 'the adoption by a new policy', SEEN_MS)
      })

      await t.test(`${api}: a new policy of the same name`, async (t) => {
        await create(again, api)
        const before = (await shop.networkPolicy(again)).metadata.uid
        await remove(again, api)
        const uid = await create(again, api)
        const isAdopted = async () => (await owners(again)).join() === uid
        await until(isAdopted, 'the adoption', SEEN_MS)
        await settle()
        t.equal((await shop.networkPolicy(again)).metadata.uid, before, 'Pods were never without')
      })

      await t.test(`${api}: a policy with the finalizer of Google's controller`, async (t) => {
        await create(final, api, { finalizers: ['example.com/other', FINALIZER] })
        await remove(final, api)
        const finalizers = async () =>
          (await cluster.must('GET', shop.path(final, api))).metadata.finalizers.join()
        await until(
          async () => (await finalizers()) === 'example.com/other',
          'its removal',
          SEEN_MS,
        )
        await cluster.must('PATCH', shop.path(final, api), {
          metadata: { finalizers: null },
        })
        await settle()
        t.equal(await shop.cidrs(final), 'none')
      })
    }

    await t.test('a policy of Google is taken over and then deleted', async (t) => {
      await createOld('old')
      await shop.has('old', ADDRESS)
      await until(async () => (await owners('old')).length === 1, 'its adoption', SEEN_MS)
      await remove('old', GKE)
      await until(() => isGone('old', GKE), 'its end', SEEN_MS)
      await settle()
      t.equal(await shop.cidrs('old'), 'none')
    })

    await t.test('the annotation that abandons', async (t) => {
      const uid = await create('abandoned', GKE)
      await annotate('abandoned', ABANDON)
      await until(async () => (await owners('abandoned')).length === 0, 'its release', SEEN_MS)
      await cluster.must('PATCH', shop.path('abandoned', GKE), { spec: to('b.example') })
      await shop.has('abandoned', '198.51.100.2/32')
      await annotate('abandoned', { [`${NAME}/delete-policy`]: null })
      await until(async () => (await owners('abandoned')).join() === uid, 'its adoption', SEEN_MS)
      await annotate('abandoned', ABANDON)
      await until(async () => (await owners('abandoned')).length === 0, 'its release', SEEN_MS)
      await remove('abandoned', GKE)
      await settle()
      t.equal(await shop.cidrs('abandoned'), '198.51.100.2/32')
      // Only the API of Google has it.
      const next = await create('abandoned')
      await until(async () => (await owners('abandoned')).join() === next, 'its adoption', SEEN_MS)
      t.equal(
        (await shop.networkPolicy('abandoned')).metadata.annotations[`${NAME}/delete-policy`],
        'abandon',
      )
    })

    await t.test("from Google's API to that of delta10", async (t) => {
      await create('moved', GKE)
      const { uid } = (await shop.networkPolicy('moved')).metadata
      await shop.create('moved', to('a.example'))
      await shop.isIn('moved', 'Pending')
      t.match((await shop.status('moved')).reason, /managed by FQDNNetworkPolicy moved/)
      await annotate('moved', ABANDON)
      await shop.isIn('moved', 'Active')
      await shop.isIn('moved', 'Pending', GKE)
      await remove('moved', GKE)
      await settle()
      const after = await shop.networkPolicy('moved')
      t.equal(after.metadata.uid, uid, 'Pods were never without')
      t.equal(after.metadata.ownerReferences[0].apiVersion, DELTA10)
      await shop.isIn('moved', 'Active')
    })

    await t.test('policies that were deleted while no operator ran', async (t) => {
      await operator.stop()
      await createOld('late')
      await createOld('late-abandoned', ABANDON)
      await shop.create('late-foreign', to('a.example'), { finalizers: [FINALIZER] }, GKE)
      const spec = { podSelector: {}, policyTypes: ['Egress'] }
      await cluster.must('POST', POLICIES, { metadata: { name: 'late-foreign' }, spec })
      const names = ['late', 'late-abandoned', 'late-foreign']
      for (const name of names) await remove(name, GKE)
      operator = await shop.startOperator()
      for (const name of names) await until(() => isGone(name, GKE), `the end of ${name}`, SEEN_MS)
      await collector.run()
      // An empty list of rules: what they were before.
      t.strictSame(await Promise.all(names.map((name) => shop.cidrs(name))), ['none', '', ''])
    })

    await t.test('the operator has the rights that it needs, and no others', async (t) => {
      shop.checkOutput(t)
      const { used, given } = rightsOf(auditLog)
      t.strictSame(
        [...used].filter((right) => !given.has(right)),
        [],
      )
      // Repeated Events take longer than this test.
      const unused = [...given].filter(
        (right) => !used.has(right) && right !== 'patch events.k8s.io/events',
      )
      // Admission asks for these, without a request of that kind.
      t.strictSame(unused.sort(), [
        'delete networking.k8s.io/networkpolicies',
        'update networking.delta10.nl/fqdnnetworkpolicies/finalizers',
        'update networking.gke.io/fqdnnetworkpolicies/finalizers',
      ])
      await checkAdmission(t, shop)
    })

    await t.test('the operator as deploy/overlays has it', needsRoot(), (t) => runDeployed(t, shop))
  },
)

/** The API server refuses the operator's writes of owner references to a user without the two rights for admission. */
async function checkAdmission(t: Test, { cluster }: Shop): Promise<void> {
  const api = '/apis/rbac.authorization.k8s.io/v1/namespaces/shop'
  const metadata = { name: 'writer' }
  const verbs = ['get', 'create', 'update']
  const rules = [{ apiGroups: ['networking.k8s.io'], resources: ['networkpolicies'], verbs }]
  await cluster.must('POST', `${api}/roles`, { metadata, rules })
  await cluster.must('POST', `${api}/rolebindings`, {
    metadata,
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: metadata.name },
    subjects: [{ kind: 'User', name: 'stranger' }],
  })
  const moved = await cluster.must('GET', `${POLICIES}/moved`)
  const created = { ...moved, metadata: { ...moved.metadata, name: 'x', resourceVersion: '' } }
  const released = { ...moved, metadata: { ...moved.metadata, ownerReferences: [] } }
  const call = (user: 'stranger' | 'viewer', method: string, name: string, body: object) =>
    cluster.call(method, `${POLICIES}${name}?dryRun=All`, body, { user })
  const isRefused = async () => {
    const { body } = await call('stranger', 'POST', '', created)
    return /cannot set blockOwnerDeletion/.test(body.message)
  }
  await until(isRefused, 'the refusal', SEEN_MS)
  const { body } = await call('stranger', 'PUT', '/moved', released)
  t.match(body.message, /cannot set an ownerRef on a resource you can't delete/)
  t.equal((await call('viewer', 'POST', '', created)).status, 201)
  t.equal((await call('viewer', 'PUT', '/moved', released)).status, 200)
}

async function runDeployed(t: Test, shop: Shop): Promise<void> {
  const manifests = composeManifests('deploy/overlays/fqdn-network-policy')
  await applyAll(shop.cluster, manifests)
  await rightsInForce(shop.cluster, 'operator', [
    'list networking.delta10.nl:fqdnnetworkpolicies',
    'list discovery.k8s.io:endpointslices kube-system',
    `update coordination.k8s.io:leases ${SYSTEM}`,
  ])
  const operator = await startPod(t, shop.cluster, manifests, 'operator')
  await operator.isReady()
  await shop.create('deployed', to('a.example', 'b.example'))
  await shop.has('deployed', '198.51.100.1/32 198.51.100.2/32')
  await shop.isIn('deployed', 'Active')
  const events = '/apis/events.k8s.io/v1/namespaces/shop/events'
  const hasEvent = async () => {
    const { items } = await shop.cluster.must('GET', events)
    return items.some(
      ({ reason, regarding }: { reason: string; regarding: { name: string } }) =>
        reason === 'Created' && regarding.name === 'deployed',
    )
  }
  await until(hasEvent, 'the Event', SEEN_MS)
  t.notMatch(operator.output(), LACKED)
}
