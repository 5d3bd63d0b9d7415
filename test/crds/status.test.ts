import fc from 'fast-check'
import t from 'tap'
import { thisMoment } from '../../src/base/moment.ts'
import { COUNT_MAX, type ProbeState, unknownState } from '../../src/health/probes/probe-state.ts'
import type { ApiObject } from '../../src/kube/api.ts'
import type { Write } from '../../src/operator/plan/write.ts'
import { desiredProbes } from '../../src/operator/probes/desired-probes.ts'
import { composeStatus, readState, scanProbe } from '../../src/operator/probes/probe-status.ts'
import { DnsRecordView } from '../../src/operator/record/record-view.ts'
import { HEALTH_CHECK_DEFAULTS, THRESHOLD_MAX } from '../../src/records/health-check.ts'
import { SPEC } from '../../src/records/validate/fields.ts'
import { scanHealthCheck } from '../../src/records/validate/health-check.ts'
import { validateResource } from '../../src/records/validate/resource.ts'
import { readCrd } from '../support/cluster.ts'
import { AUTHORITATIVE, address, DelegationFixture, HOST } from '../support/delegation-fixture.ts'
import { ToyCluster, ToyPeers } from '../support/operator-cluster.ts'
import { at, dnsRecord, secret } from '../support/operator-objects.ts'
import { runs } from '../support/runs.ts'
import { FakeClock } from '../support/setup.ts'
import { toyReconciler } from '../support/toy-reconciler.ts'
import { misfitsOf, pathsOf, type Schema, watched, writtenPaths } from './schema.ts'

function schemaOf(plural: string, part: 'spec' | 'status'): Schema {
  return readCrd(plural).spec.versions[0].schema.openAPIV3Schema.properties[part]
}

const RECORD_STATUS = schemaOf('dnsrecords', 'status')
const RECORD_SPEC = schemaOf('dnsrecords', 'spec')
const RECORD_CHECK = RECORD_SPEC.properties!.healthCheck!
const PROBE_SPEC = schemaOf('dnshealthcheckprobes', 'spec')
const PROBE_STATUS = schemaOf('dnshealthcheckprobes', 'status')

/** Reports which fields of records are read. */
class WatchedCluster extends ToyCluster {
  /** In the form of `pathsOf`. */
  readonly read = new Set<string>()
  readonly #plain = new WeakMap<object, DnsRecordView>()

  override record(key: string): DnsRecordView | undefined {
    const plain = this.stored(key)
    if (plain === undefined) return undefined
    const record = new DnsRecordView(watched(plain, this.read))
    this.#plain.set(record, new DnsRecordView(plain))
    return record
  }

  /** What is written over is looked for by its identity. */
  override async write(write: Write): Promise<void> {
    const parts = Object.entries(write).map(([name, part]) => {
      const plain = typeof part === 'object' && part !== null ? this.#plain.get(part) : undefined
      return [name, plain ?? part]
    })
    await super.write(Object.fromEntries(parts))
  }
}

/** True for a field that `leaf` is, or is below, and for a key of a mapping. Both in the form of `pathsOf`. */
function isOn(path: string, leaf: string): boolean {
  const [mapping = '', keys] = leaf.split('{}')
  if (keys !== undefined && path.startsWith(`${mapping}.`)) return true
  return ['.', '[', '{'].some((next) => `${leaf}.`.startsWith(`${path}${next}`))
}

/** Fields of records that were read and that the schema has not. */
function unknownTo(schemas: Readonly<Record<string, Schema>>, read: ReadonlySet<string>): string[] {
  const leaves = Object.entries(schemas).flatMap(([part, schema]) => pathsOf(schema, part))
  const isBelow = (path: string): boolean => /^(?:spec|status)\./.test(path)
  // JSON.stringify reads this field of each value.
  const isAsked = (path: string): boolean => !path.endsWith('.toJSON')
  const isKnown = (path: string): boolean => leaves.some((leaf) => isOn(path, leaf))
  return [...read].filter((path) => isBelow(path) && isAsked(path) && !isKnown(path)).sort()
}

/** Of upstream's, which the operator leaves alone. */
const NOT_OURS = /^(healthCheck|group|activeGroups|remoteRecordStatuses)/

t.test('the schema has all that the operator writes into the status of a DNSRecord', async (t) => {
  const written = new Set<string>()
  const check = (name: string, object: ApiObject | undefined): void => {
    const status = object?.status
    t.strictSame(misfitsOf(status, RECORD_STATUS), [], name)
    for (const path of writtenPaths(status)) written.add(path)
  }

  const peers = new ToyPeers()
  const [cluster, clock] = [new WatchedCluster(), new FakeClock()]
  const addresses = ['192.0.2.53:53', '192.0.2.54:53', '192.0.2.55:53']
  const data = { ZONES: HOST, NAMESERVERS: addresses.join() }
  cluster.put(secret('a', 'coredns', data))
  const reconciler = toyReconciler(cluster, clock, { peers })
  const look = async (name: string): Promise<void> => {
    await reconciler.reconcile('a/app')
    check(name, cluster.stored('a/app'))
  }
  cluster.put(dnsRecord())
  cluster.health.set('a/app', {
    down: [],
    up: ['192.0.2.1'],
    probes: [{ address: '192.0.2.1', health: 'up' }],
  })
  const steered = {
    setIdentifier: 'one',
    weight: 7,
    geoCodes: ['GEO-EU'],
    isDefault: true,
    health: 'up',
  } as const
  peers.say(addresses[0]!, 'east', [steered], thisMoment(clock))
  peers.say(addresses[1]!, 'west', [{ targets: ['192.0.2.3'] }], thisMoment(clock))
  peers.fallSilent(addresses[1]!)
  peers.fallSilent(addresses[2]!)
  await look('a live peer, a silent one, and one that was never heard')
  cluster.health.set('a/app', {
    down: ['192.0.2.1'],
    up: [],
    probes: [{ address: '192.0.2.1', health: 'down' }],
  })
  await look('one whose address is down')
  peers.say(addresses[0]!, 'north', [steered], thisMoment(clock), false)
  await look('one that a peer relays')
  const endpoint = { dnsName: HOST, recordType: 'A', targets: ['192.0.2.1'] }
  const providerSpecific = [{ name: 'weight', value: '7' }]
  cluster.edit('a/app', { endpoints: [{ ...endpoint, setIdentifier: 'own', providerSpecific }] })
  await look('one with a weight')
  cluster.edit('a/app', { endpoints: [{ ...endpoint, targets: ['x'] }] })
  await look('one that is refused')
  cluster.secrets.clear()
  await look('one without a provider')

  const delegating = new WatchedCluster()
  const fixture = new DelegationFixture(delegating)
  fixture.delegate('app', [address(HOST, '192.0.2.1')])
  await fixture.settle()
  check('one that delegates', fixture.cluster.stored('a/app'))
  check('an authoritative one', fixture.cluster.stored(`a/${AUTHORITATIVE}`))

  const isOurs = (path: string): boolean => !NOT_OURS.test(path)
  const isWritten = (path: string): boolean => written.has(path) || /labels/.test(path)
  const missing = pathsOf(RECORD_STATUS)
    .filter(isOurs)
    .filter((path) => !isWritten(path))
  t.strictSame(missing, [], 'and all fields are written that are not for others')

  const made = [...cluster.records.values(), ...delegating.records.values()]
  t.equal(made.length, 5, 'the originals, and what was made of them')
  for (const { metadata, spec } of made) {
    t.strictSame(misfitsOf(spec, RECORD_SPEC), [], `spec of ${Object(metadata).name}`)
  }
  const schemas = { spec: RECORD_SPEC, status: RECORD_STATUS }
  const read = new Set([...cluster.read, ...delegating.read])
  t.strictSame(unknownTo(schemas, read), [], 'nothing is read that does not exist')
  for (const path of ['spec.rootHost', 'spec.ownerID', 'spec.delegate', 'spec.providerRef.name']) {
    t.ok(read.has(path), `${path} is read`)
  }
})

const states: fc.Arbitrary<ProbeState> = fc.record({
  health: fc.constantFrom('up', 'down', 'unknown'),
  failures: fc.nat(COUNT_MAX),
  successes: fc.nat(COUNT_MAX),
  sinceMs: fc.nat(),
  httpStatus: fc.constantFrom(0, 200, 503, 999),
  reason: fc.string({ unit: 'binary', maxLength: 1000 }),
})

t.test('the schema has all that is written into the status of a DNSHealthCheckProbe', async (t) => {
  const written = new Set<string>()
  const thresholds = fc.integer({ min: 1, max: THRESHOLD_MAX })
  fc.assert(
    fc.property(states, thresholds, fc.nat(), (state, failureThreshold, generation) => {
      const check = { ...HEALTH_CHECK_DEFAULTS, failureThreshold }
      const status = composeStatus({ metadata: { generation } }, { check }, state)
      t.strictSame(misfitsOf(status, PROBE_STATUS), [])
      for (const path of writtenPaths(status)) written.add(path)
    }),
    { seed: 1, numRuns: runs(200) },
  )
  t.strictSame([...written].sort(), pathsOf(PROBE_STATUS).sort(), 'all of it')
})

const MAPPING: Schema = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true }

/** All that a health check can say, none of it the default, by protocol. */
const EVERY_CHECK: ApiObject = {
  path: '/healthz',
  port: 8080,
  interval: '30s',
  failureThreshold: 2,
  successThreshold: 3,
  additionalHeadersRef: { name: 'headers' },
}
const WHOLE_CHECKS: readonly ApiObject[] = [
  { ...EVERY_CHECK, protocol: 'HTTP', expectedStatus: '204', expectedBody: 'ready' },
  { ...EVERY_CHECK, protocol: 'GRPC', service: 'shop.v1.Cart' },
  {
    ...EVERY_CHECK,
    protocol: 'DNS',
    query: 'health.example.org A',
    expectedRcode: 'NXDOMAIN',
    expectedAddress: '192.0.2.7',
  },
]
const WHOLE_PROBES = WHOLE_CHECKS.map((check) => ({
  ...check,
  address: '192.0.2.1',
  testAddress: '192.0.2.9',
  hostname: 'app.example.org',
  allowInsecureCertificate: true,
}))
const METADATA = { name: 'p', labels: { 'kuadrant.io/health-probes-owner': 'app' } }

t.test('the probes that a record asks for are in the schema, with all it says', (t) => {
  const keys = new Set(WHOLE_CHECKS.flatMap(Object.keys))
  t.strictSame([...keys].sort(), Object.keys(RECORD_CHECK.properties!).sort())
  const providerSpecific = [{ name: 'health-address', value: '192.0.2.9' }]
  const targets = ['192.0.2.1', '192.0.2.2']
  const endpoints = [{ dnsName: HOST, recordType: 'A', targets, providerSpecific }]
  const written = new Set<string>()
  for (const healthCheck of WHOLE_CHECKS) {
    t.strictSame(misfitsOf(healthCheck, RECORD_CHECK), [])
    const record = new DnsRecordView(dnsRecord({ spec: { healthCheck, endpoints } }))
    const probes = desiredProbes(record, true)
    t.equal(probes.length, 2)
    for (const probe of probes) {
      t.strictSame(misfitsOf(probe.spec, PROBE_SPEC), [])
      t.match(at(probe, 'spec'), healthCheck)
      for (const path of writtenPaths(probe.spec)) written.add(path)
    }
  }
  t.strictSame([...written].sort(), pathsOf(PROBE_SPEC).sort(), 'all of it')
  t.end()
})

t.test('we read exactly the fields of a health check that the schema has', (t) => {
  const table = [
    ...WHOLE_CHECKS.map((given) => ({ name: 'of a record', given, schema: RECORD_CHECK })),
    ...WHOLE_PROBES.map((given) => ({ name: 'of a probe', given, schema: PROBE_SPEC })),
  ]
  for (const { name, given, schema } of table) {
    const read = new Set<string>()
    const spec = watched(given, read)
    const resource =
      schema === PROBE_SPEC
        ? validateResource({
            apiVersion: 'kuadrant.io/v1alpha1',
            kind: 'DNSHealthCheckProbe',
            metadata: METADATA,
            spec,
          })
        : { kind: 'check', check: scanHealthCheck(spec, SPEC) }
    t.not(resource.kind, 'refused', name)
    const leaves = pathsOf(schema)
    for (const path of leaves) t.ok(read.has(path), `${name}: ${path} is read`)
    const isKnown = (path: string): boolean =>
      leaves.some((leaf) => leaf === path || leaf.startsWith(`${path}.`))
    // A record has no such field: its certificates are a matter of the operator's flags.
    const unknown = [...read].filter((path) => !isKnown(path))
    // Commands are those of a Corefile, which a cluster does not have.
    const own = ['command', ...(schema === RECORD_CHECK ? ['allowInsecureCertificate'] : [])]
    t.strictSame(unknown, own, `${name}: nothing that does not exist`)
  }
  t.end()
})

t.test('every field of a health check counts, with the type that the schema has', (t) => {
  const check = (spec: ApiObject) => scanHealthCheck(spec, SPEC)
  /** A check without a field that it needs is refused. */
  const textOf = (scan: () => object): string => {
    try {
      return JSON.stringify(scan())
    } catch (error) {
      return String(error)
    }
  }
  for (const whole of WHOLE_CHECKS) {
    for (const [name, value] of Object.entries(whole)) {
      const { [name]: _, ...rest } = whole
      t.not(
        textOf(() => check({ ...rest, [name]: value })),
        textOf(() => check(rest)),
        name,
      )
      for (const other of [true, ['x'], { of: 'another type' }]) {
        if (misfitsOf(other, RECORD_CHECK.properties![name]!).length === 0) continue
        // A reference without a name is none.
        if (name === 'additionalHeadersRef' && misfitsOf(other, MAPPING).length === 0) continue
        const what = `${name} as ${JSON.stringify(other)}`
        t.throws(() => check({ ...whole, [name]: other }), what)
      }
    }
  }
  const insecure = (value: ApiObject[string]) => check({ allowInsecureCertificate: value })
  t.equal(insecure(true).allowsInsecureCertificate, true)
  t.equal(insecure('true').allowsInsecureCertificate, false, 'no string')
  t.end()
})

t.test('we read the fields of the status of a probe that the schema has, with its types', (t) => {
  const status = { healthy: false, consecutiveFailures: 4, reason: 'timeout', status: 503 }
  t.strictSame(misfitsOf(status, PROBE_STATUS), [])
  const read = new Set<string>()
  t.match(readState(watched({ metadata: METADATA, status }, read), 5), {
    health: 'down',
    failures: 4,
    reason: 'timeout',
    httpStatus: 503,
  })
  const known = new Set(pathsOf(PROBE_STATUS))
  const below = [...read].filter((path) => path.startsWith('status.'))
  t.equal(below.length, Object.keys(status).length)
  for (const path of below) t.ok(known.has(path.slice('status.'.length)), path)
  const written = composeStatus(
    { metadata: { generation: 1 } },
    { check: HEALTH_CHECK_DEFAULTS },
    { ...unknownState(5), health: 'up' },
  )
  t.match(readState({ metadata: METADATA, status: written }, 5), { health: 'up', failures: 0 })
  t.type(scanProbe({ metadata: METADATA, spec: WHOLE_PROBES[0]!, status }), 'object')
  t.end()
})

t.test('a field that the schema lacks, or has with another type, is found', (t) => {
  const table: readonly { name: string; given: unknown; want: string }[] = [
    { name: 'a field', given: { nonsense: 1 }, want: 'nonsense: no such field' },
    { name: 'one of elsewhere', given: { serial: 1 }, want: 'serial: no such field' },
    { name: 'a text', given: { zoneID: 7 }, want: 'zoneID: 7, no string' },
    { name: 'a half', given: { writeCounter: 1.5 }, want: 'writeCounter: 1.5, no integer' },
    { name: 'none', given: { ownerID: undefined }, want: 'ownerID: undefined, no string' },
    { name: 'less', given: { providerRef: {} }, want: 'providerRef: without name' },
    {
      name: 'a state',
      given: { peers: [{ address: 'a', state: 'Dead' }] },
      want: 'peers[0].state: "Dead" is none of the enumeration',
    },
    {
      name: 'a time',
      given: { peers: [{ address: 'a', state: 'Live', lastSeenTime: 'soon' }] },
      want: 'peers[0].lastSeenTime: "soon" is no time',
    },
  ]
  for (const { name, given, want } of table) {
    t.strictSame(misfitsOf(given, RECORD_STATUS), [want], name)
  }
  t.end()
})
