import t from 'tap'
import { unknownState } from '../../../src/health/probes/probe-state.ts'
import { ApiError, type ApiObject } from '../../../src/kube/api.ts'
import { headerSecrets } from '../../../src/operator/probes/header-secrets.ts'
import { composeStatus, readState, scanProbe } from '../../../src/operator/probes/probe-status.ts'
import { HEALTH_CHECK_DEFAULTS } from '../../../src/records/health-check.ts'
import { FakeClock } from '../../support/setup.ts'

const LABELS = { 'kuadrant.io/health-probes-owner': 'app' }

function object(spec: ApiObject, more: ApiObject = {}): ApiObject {
  return {
    metadata: { name: 'p', namespace: 'team', labels: LABELS, generation: 3 },
    spec,
    ...more,
  }
}

t.test('the requests of a probe', (t) => {
  const spec = { address: '192.0.2.1', hostname: 'app.example.org', port: 80, protocol: 'HTTP' }
  t.match(scanProbe(object(spec, { status: { healthy: true } })), {
    recordKey: 'team/app',
    probe: { id: 'team/p', address: '192.0.2.1', hostname: 'app.example.org', check: { port: 80 } },
  })
  t.match(scanProbe(object({ ...spec, interval: 'x' })), /interval must be a duration/)
  t.match(scanProbe(object({})), /spec\.address is required/)
  t.match(scanProbe(object({ ...spec, hostname: 'a\r\nX: y' })), /hostname .* is not a domain name/)
  const metadata = { name: 'p', namespace: 'team', labels: LABELS, deletionTimestamp: 'now' }
  t.equal(scanProbe({ metadata, spec }), '')
  t.end()
})

t.test('a status is written and read back as it was', (t) => {
  const probe = { check: { ...HEALTH_CHECK_DEFAULTS, failureThreshold: 2 } }
  const down = {
    ...unknownState(5),
    health: 'down' as const,
    failures: 40,
    httpStatus: 503,
    reason: 'status\n503',
  }
  const status = composeStatus(object({}), probe, down)
  t.strictSame(status, {
    healthy: false,
    consecutiveFailures: 3,
    reason: 'status\\x0a503',
    status: 503,
    observedGeneration: 3,
  })
  t.strictSame(
    composeStatus(object({}), probe, { ...down, failures: 41 }),
    status,
    'no write for each look',
  )
  t.match(readState(object({}, { status }), 7), {
    health: 'down',
    failures: 3,
    sinceMs: 7,
    httpStatus: 503,
  })
  const unknown = composeStatus(object({}), probe, unknownState(5))
  t.notOk('healthy' in unknown)
  t.match(readState(object({}, { status: unknown }), 7), { health: 'unknown', failures: 0 })
  t.match(readState(object({}), 7), { health: 'unknown' })
  const odd = {
    healthy: 'yes',
    consecutiveFailures: -1,
    status: 1.5,
    reason: 7,
  } as unknown as ApiObject
  t.match(readState(object({}, { status: odd }), 7), {
    health: 'unknown',
    failures: 0,
    httpStatus: 0,
    reason: '',
  })
  t.end()
})

t.test('Secrets with headers', async (t) => {
  const clock = new FakeClock()
  let reads = 0
  const metadata = { labels: { 'sextant.io/health-check-headers': 'true' } }
  let found: ApiObject | undefined | ApiError = {
    metadata,
    data: { Authorization: Buffer.from('Bearer x\n').toString('base64') },
  }
  const get = async (): Promise<ApiObject | undefined> => {
    reads++
    if (found instanceof ApiError) throw found
    return found
  }
  const read = headerSecrets({ get }, clock)
  t.strictSame(await read('team', 'token', true), new Map([['Authorization', 'Bearer x']]))
  await read('team', 'token', true)
  t.equal(reads, 1, 'it is kept for a while')
  t.match(await read('team', 'token', false), /^is sent over HTTPS or GRPCS only; set its label/)
  found = undefined
  clock.monotonicMs += 60_001
  t.equal(await read('team', 'token', true), 'is missing in namespace team')
  for (const type of ['kubernetes.io/service-account-token', 'kuadrant.io/coredns']) {
    found = { type, metadata, data: { token: 'eA==' } }
    t.equal(await read('team', type, true), `has the type ${type}; only Opaque is allowed`)
  }
  for (const labels of [{}, { 'sextant.io/health-check-headers': 'false' }]) {
    found = { type: 'Opaque', metadata: { labels }, data: { password: 'eA==' } }
    t.equal(
      await read('team', `not opted in ${JSON.stringify(labels)}`, true),
      'has not opted in; set its label sextant.io/health-check-headers: "true"',
    )
  }
  const plain = { labels: { 'sextant.io/health-check-headers': 'plain' } }
  found = { type: 'Opaque', metadata: plain, data: { 'X-Key': 'eA==' } }
  t.strictSame(await read('team', 'opaque', true), new Map([['X-Key', 'x']]))
  t.strictSame(await read('team', 'opaque', false), new Map([['X-Key', 'x']]))
  found = new ApiError(403, 'no')
  const denied =
    'may not be read: this operator needs the permission to get Secrets in namespace team'
  t.equal(await read('team', 'other', true), denied)
  found = new ApiError(500, 'etcd is away')
  t.equal(await read('team', 'third', true), 'cannot be read: etcd is away')
})
