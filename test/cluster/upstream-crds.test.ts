import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { parse } from 'yaml'
import { CLUSTER_TEST_MS, Cluster, readCrd } from '../support/cluster.ts'
import { needsCluster } from '../support/cluster-binary.ts'
import { root } from '../support/server.ts'
import { until } from '../support/until.ts'
import { downloadModule } from './go-module.ts'

const NAMESPACE = 'upstream'
const ORACLES = join(root, 'test/cluster/oracles')
const DEFINITIONS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
const COLLECTION = `/apis/network.openshift.io/v1alpha1/namespaces/${NAMESPACE}/dnsnameresolvers`

/** A case of OpenShift's own tests of a definition; objects are YAML. */
interface Case {
  readonly name: string
  readonly initial: string
  readonly updated?: string
  readonly expected?: string
  readonly expectedError?: string
  readonly expectedStatusError?: string
}

interface Suite {
  readonly tests: { readonly onCreate: readonly Case[]; readonly onUpdate: readonly Case[] }
}

t.setTimeout(CLUSTER_TEST_MS)

t.test('our DNSNameResolver is that of OpenShift', needsCluster(), async (t) => {
  const cluster = await Cluster.start(t)
  const folder = join(downloadModule('github.com/openshift/api', ORACLES), 'network/v1alpha1')
  const suite: Suite = read(
    join(folder, 'tests/dnsnameresolvers.network.openshift.io/DNSNameResolver.yaml'),
  )
  const theirs = read(
    join(
      folder,
      'zz_generated.crd-manifests/0000_70_dns_00_dnsnameresolvers-TechPreviewNoUpgrade.crd.yaml',
    ),
  )
  const ours = readCrd('openshift/dnsnameresolvers')
  t.strictSame(schemaOf(ours), schemaOf(theirs), 'the same schema')
  await cluster.must('POST', DEFINITIONS, ours)
  await cluster.createNamespace(NAMESPACE)
  const isServed = async () => (await cluster.call('GET', COLLECTION)).status === 200
  await until(isServed, 'dnsnameresolvers', CLUSTER_TEST_MS)
  const { onCreate, onUpdate } = suite.tests
  t.strictSame([onCreate.length, onUpdate.length], [12, 9], 'no case is lost')
  for (const one of onCreate) await testCreate(t, cluster, one)
  for (const one of onUpdate) await testUpdate(t, cluster, one)
})

async function testCreate(t: Test, cluster: Cluster, one: Case): Promise<void> {
  const reply = await cluster.call('POST', COLLECTION, named(parse(one.initial)))
  if (one.expectedError === undefined) {
    t.match(reply, { status: 201, body: parse(one.expected ?? '{}') }, one.name)
  } else t.match(reply, { status: 422, body: { message: one.expectedError } }, one.name)
  await removeAll(cluster)
}

async function testUpdate(t: Test, cluster: Cluster, one: Case): Promise<void> {
  await cluster.must('POST', COLLECTION, named(parse(one.initial)))
  const path = `${COLLECTION}/example`
  const updated = parse(one.updated ?? '')
  const { metadata } = await cluster.must('GET', path)
  const replaced = await cluster.call('PUT', path, { ...updated, metadata })
  if (one.expectedError !== undefined) {
    // The API server names another value than the one of their tests, which was of an earlier version.
    const message = one.expectedError.slice(one.expectedError.lastIndexOf(': ') + 2)
    t.match(replaced, { status: 422, body: { message } }, one.name)
  } else {
    const { metadata: next } = await cluster.must('GET', path)
    const reply = await cluster.call('PUT', `${path}/status`, { ...updated, metadata: next })
    if (one.expectedStatusError === undefined) {
      t.match(reply, { status: 200, body: parse(one.expected ?? '{}') }, one.name)
    } else {
      // Later API servers print the value null without quotes.
      const message = one.expectedStatusError.replace(
        'Invalid value: "null"',
        'Invalid value: null',
      )
      t.match(reply, { status: 422, body: { message } }, one.name)
    }
  }
  await removeAll(cluster)
}

async function removeAll(cluster: Cluster): Promise<void> {
  await cluster.must('DELETE', COLLECTION)
}

function named(object: { metadata?: object }): object {
  return { ...object, metadata: { name: 'example', ...object.metadata } }
}

/** Folder of a Go module in the version of test/cluster/oracles. */
function read(path: string) {
  return parse(readFileSync(path, 'utf8'))
}

/** The versions of a definition without descriptions, with the required fields in order. */
function schemaOf({ spec }: { spec: { versions: unknown } }): unknown {
  return JSON.parse(JSON.stringify(spec.versions), (key, value) => {
    if (key === 'description' && typeof value === 'string') return undefined
    return key === 'required' && Array.isArray(value) ? value.toSorted() : value
  })
}
