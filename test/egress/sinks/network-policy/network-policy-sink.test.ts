import t from 'tap'
import { FQDN_APIS, readPolicy } from '../../../../src/egress/policies/fqdn/fqdn-policy.ts'
import { networkPolicySpec } from '../../../../src/egress/policies/fqdn/network-policy.ts'
import {
  type NetworkPolicyChange,
  NetworkPolicySink,
} from '../../../../src/egress/sinks/network-policy/network-policy-sink.ts'
import { ApiError, type ApiObject } from '../../../../src/kube/api.ts'

const REF = { apiVersion: 'networking.delta10.nl/v1alpha4', kind: 'FQDNNetworkPolicy', name: 'p' }
const OWNER = { ...REF, uid: 'u1', controller: true, blockOwnerDeletion: true }
const POLICY = readPolicy(FQDN_APIS[0]!, {
  metadata: { namespace: 'ns', name: 'p', uid: 'u1' },
  spec: { podSelector: {}, egress: [{ to: [{ fqdns: ['a.example'] }] }] },
})

/** An API with one NetworkPolicy, and the sink that keeps it. */
class Stage {
  existing: ApiObject | undefined
  readonly changes: NetworkPolicyChange[] = []
  /** What the API and the cache did. */
  readonly calls: string[] = []
  refusal: Error | undefined
  isLeading = true
  #version = 0
  readonly sink = new NetworkPolicySink({
    objects: {
      create: async (_, namespace, object) => this.#store(`create in ${namespace}`, object),
      replace: async ({ name }, object) => this.#store(`replace ${name}`, object),
    },
    networkPolicies: {
      noteWritten: (object) => void (this.existing = object),
      noteDeleted: () => void this.calls.push('deleted'),
    },
    checkLease: () => {
      if (!this.isLeading) throw new Error('not leading')
    },
    onApplied: (_, change) => void this.changes.push(change),
  })

  /** '' or why the NetworkPolicy does not allow these addresses. */
  apply(...addresses: readonly string[]): Promise<string> {
    const spec = networkPolicySpec(POLICY.spec, () => addresses.map((one) => `${one}/32`))
    return this.sink.apply({ policy: POLICY, existing: this.existing, spec }).catch(String)
  }

  get cidrs(): readonly string[] {
    return JSON.stringify(this.existing?.spec).match(/[\d.]+\/32/g) ?? []
  }

  /** The API adds what is not written, as for ports without a protocol. */
  #store(call: string, { metadata, spec, ...object }: ApiObject): ApiObject {
    this.calls.push(call)
    if (this.refusal !== undefined) throw this.refusal
    this.#version++
    const stored = { ...Object(metadata), resourceVersion: String(this.#version) }
    return { ...object, metadata: stored, spec: { ...Object(spec), added: 'by the API' } }
  }
}

t.test('a NetworkPolicy is written when it differs from what was written last', async (t) => {
  const stage = new Stage()
  t.equal(await stage.apply('192.0.2.1'), '')
  t.match(stage.existing, { metadata: { namespace: 'ns', name: 'p', ownerReferences: [OWNER] } })
  t.equal(await stage.apply('192.0.2.1'), '', 'what the API adds is not overwritten')
  t.equal(await stage.apply('192.0.2.1', '192.0.2.2'), '')
  t.strictSame(stage.cidrs, ['192.0.2.1/32', '192.0.2.2/32'])
  const version = { ...Object(stage.existing!.metadata), resourceVersion: '9' }
  stage.existing = { ...stage.existing!, metadata: version }
  t.equal(await stage.apply('192.0.2.1', '192.0.2.2'), '', 'another client changed it')
  t.strictSame(stage.changes, ['created', 'unchanged', 'updated', 'updated'])
  t.strictSame(stage.calls, ['create in ns', 'replace p', 'replace p'])
})

t.test('a NetworkPolicy without an owner is adopted', async (t) => {
  const stage = new Stage()
  const found = { metadata: { namespace: 'ns', name: 'p', resourceVersion: '1' }, spec: { a: 1 } }
  await stage.sink.adopt(POLICY, found)
  t.match(stage.existing, { metadata: { ownerReferences: [OWNER] }, spec: { a: 1 } })
  t.strictSame(stage.changes, [], 'the specification is not applied')
  stage.existing = found
  t.equal(await stage.apply('192.0.2.1'), '')
  t.strictSame(stage.cidrs, ['192.0.2.1/32'])
  t.strictSame(stage.changes, ['adopted'])
})

t.test('what is not written is not acknowledged', async (t) => {
  const stage = new Stage()
  stage.isLeading = false
  t.equal(await stage.apply('192.0.2.1'), 'Error: not leading')
  t.strictSame(stage.calls, [])
  stage.isLeading = true
  await stage.apply('192.0.2.1')
  for (const { status, missing, calls } of [
    { status: 403, missing: '', calls: ['create in ns', 'replace p'] },
    {
      status: 404,
      missing: 'networkpolicies p',
      calls: ['create in ns', 'replace p', 'replace p', 'deleted'],
    },
  ]) {
    stage.refusal = new ApiError(status, 'refused', 0, '', missing)
    t.match(await stage.apply('192.0.2.2'), /refused/)
    t.strictSame(stage.calls, calls)
  }
  stage.refusal = undefined
  t.equal(await stage.apply('192.0.2.2'), '')
  t.strictSame(stage.changes, ['created', 'updated'])
})
