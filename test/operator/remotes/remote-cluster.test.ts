import t, { type Test } from 'tap'
import { Random } from '../../../src/base/random.ts'
import { ResourceRegistry } from '../../../src/base/resource-registry.ts'
import { createLogger } from '../../../src/base/telemetry/log.ts'
import { Cluster } from '../../../src/operator/cluster/cluster.ts'
import { authoritativeKey } from '../../../src/operator/delegation/authoritative-record.ts'
import { KeyedMutex } from '../../../src/operator/delegation/keyed-mutex.ts'
import { OwnerIndex } from '../../../src/operator/delegation/owner-index.ts'
import { DnsRecordView } from '../../../src/operator/record/record-view.ts'
import { shortHash } from '../../../src/operator/record/short-hash.ts'
import { RemoteCluster } from '../../../src/operator/remotes/remote-cluster.ts'
import {
  ApiDouble,
  type Asked,
  listBody,
  missingBody,
  type Stream,
  statusBody,
  turns,
} from '../../support/api-double.ts'
import { annotated } from '../../support/cluster-server.ts'
import { AUTHORITATIVE, address, HOST } from '../../support/delegation-fixture.ts'
import { eventRecorder } from '../../support/event-recorder.ts'
import { dnsRecord, secret } from '../../support/operator-objects.ts'
import { FakeClock, FakeTimers } from '../../support/setup.ts'
import { DelegationSimulation } from '../delegation-simulation.ts'

const PLACE = 'https://boston'
const UID = shortHash('uid of boston')
const FORBIDDEN = statusBody(403, 'not yet', 'Forbidden')
const NO_PATH = statusBody(404, 'the server could not find the requested resource', 'NotFound')
const STARTING = statusBody(503, 'not all paths are installed', 'ServiceUnavailable')

const MAX_MS = 900_000
const CREATED_MS = 1_700_000_000_000

const RECORD = dnsRecord({
  metadata: { creationTimestamp: new Date(CREATED_MS).toISOString() },
  spec: { delegate: true },
  status: { conditions: [{ type: 'ReadyForDelegation', status: 'True' }] },
})

const LOCAL: Readonly<Record<string, readonly object[]>> = {
  secrets: [
    secret(
      'a',
      'coredns',
      { ZONES: 'k.example.com' },
      { labels: { 'kuadrant.io/default-provider': 'true' } },
    ),
  ],
}

/** A cluster that is followed by one with a provider and no records. */
class Stage {
  readonly api = new ApiDouble()
  readonly timers = new FakeTimers()
  readonly clock = new FakeClock()
  readonly claimed: string[] = []
  /** Authoritative records whose health check changed. */
  readonly checked: string[] = []
  readonly lines: string[] = []
  /** Number of reconciles that succeeded. */
  reconciles = 0
  /** Records that were written in the local cluster. */
  readonly written: string[] = []
  watch: Stream | undefined
  readonly #local: Cluster
  readonly #localApi = new ApiDouble()

  constructor() {
    const { clock, timers, lines } = this
    const log = createLogger(
      '',
      (line) => lines.push(line),
      () => false,
    )
    const env = { log, clock, timers, random: new Random(1) }
    const local = { ...env, api: this.#localApi, namespaces: [] }
    this.#local = new Cluster(local, eventRecorder(local))
    this.api.place = PLACE
  }

  /** `own`: DNSRecords of the local cluster. */
  async begin(t: Test, own: readonly object[] = []): Promise<RemoteCluster> {
    this.#local.start()
    await turns()
    for (const asked of this.#localApi.asked.splice(0)) {
      const lists: Readonly<Record<string, readonly object[]>> = { ...LOCAL, dnsrecords: own }
      asked.reply(200, listBody('1', lists[asked.path.split('/').at(-1) ?? ''] ?? []))
    }
    await this.#local.synced()
    const remote = new RemoteCluster({
      name: 'boston',
      api: this.api,
      local: this.#local,
      writer: { write: async (write) => void this.written.push(JSON.stringify(write)) },
      mutex: new KeyedMutex(),
      owners: new OwnerIndex(),
      resources: new ResourceRegistry(),
      site: 'here',
      bounds: { minMs: 5000, maxMs: MAX_MS },
      shares: [],
      ownUid: 'uid of dublin',
      mayWrite: () => true,
      claim: (id) => {
        this.claimed.push(id)
        return ''
      },
      hasAll: () => true,
      onCheck: (key) => this.checked.push(key),
      onReconcile: () => this.reconciles++,
      onForget: () => {},
    })
    t.teardown(async () => {
      await remote.close()
      this.#local.close()
    })
    remote.start()
    return remote
  }

  /** Answers all that is asked, second by second. */
  async pass(seconds: number, answer: (asked: Asked) => void): Promise<void> {
    for (let i = 0; i < seconds; i++) {
      for (let round = 0; round < 3; round++) {
        await turns(10)
        for (const asked of this.api.asked.splice(0)) {
          if (asked.isWatch) this.watch = asked.stream()
          else answer(asked)
        }
      }
      await this.timers.advance(1000)
    }
  }
}

function isOfNamespace({ path }: Asked): boolean {
  return path.endsWith('/namespaces/kube-system')
}

for (const { name, refusals, records, namespace, want } of [
  {
    name: 'a server that starts refuses all: who it is is asked until it grants the records',
    refusals: 12,
    records: 200,
    namespace: 200,
    want: [UID],
  },
  {
    name: 'an account that may follow the records only follows them, and its cluster is where it is',
    refusals: 0,
    records: 200,
    namespace: 403,
    want: [shortHash(PLACE)],
  },
  {
    name: 'an account without rights is retried, and the log names the rights that it needs',
    refusals: 0,
    records: 403,
    namespace: 403,
    want: [],
  },
]) {
  t.test(name, async (t) => {
    const stage = new Stage()
    const remote = await stage.begin(t)
    let left = refusals
    await stage.pass(300, (asked) => {
      const status = isOfNamespace(asked) ? namespace : records
      if (left-- > 0 || status === 403) asked.reply(403, FORBIDDEN)
      else if (!isOfNamespace(asked)) asked.reply(200, listBody('9', []))
      else asked.reply(200, { metadata: { name: 'kube-system', uid: 'uid of boston' } })
    })
    t.strictSame(stage.claimed, want)
    t.match(remote.fault, want.length === 0 ? /needs get, list and watch of dnsrecords/ : /^$/)
  })
}

for (const { name, replies, isThere, want } of [
  {
    name: 'a status is written again until a starting server accepts it',
    replies: [
      [503, STARTING],
      [403, FORBIDDEN],
      [404, NO_PATH],
      [404, ['404 page not found']],
      [200, RECORD],
    ],
    isThere: true,
    want: 5,
  },
  {
    name: 'the status of a deleted record is not written any more',
    replies: [[404, missingBody('dnsrecords', 'app')]],
    isThere: false,
    want: 1,
  },
  {
    name: 'the status of a record that exists after all is written again',
    replies: [
      [404, missingBody('dnsrecords', 'app')],
      [200, RECORD],
    ],
    isThere: true,
    want: 2,
  },
] as const) {
  t.test(name, async (t) => {
    const stage = new Stage()
    await stage.begin(t)
    let count = 0
    await stage.pass(120, (asked) => {
      if (isOfNamespace(asked)) asked.reply(200, { metadata: { uid: 'uid of boston' } })
      else if (asked.method === 'PATCH') {
        const [status, body] = replies[count++] ?? [200, RECORD]
        asked.reply(status, body)
      } else if (asked.path.endsWith('/dnsrecords')) asked.reply(200, listBody('9', [RECORD]))
      else if (isThere) asked.reply(200, RECORD)
      else asked.reply(404, missingBody('dnsrecords', 'app'))
    })
    t.equal(count, want)
  })
}

t.test('a cluster is heard while its API server answers, whatever it answers', async (t) => {
  const stage = new Stage()
  const remote = await stage.begin(t)
  let version: number | undefined
  const pass = async (seconds: number): Promise<void> => {
    for (let i = 0; i < seconds; i++) {
      stage.clock.pass(1000)
      await stage.pass(1, (asked) => {
        if (asked.path !== '/version') asked.reply(200, listBody('9', [RECORD]))
        else if (version !== undefined) asked.reply(version, {})
      })
    }
  }
  await pass(10)
  t.equal(remote.heardMs, Number.NEGATIVE_INFINITY, 'no answer')
  for (const { status, isHeard } of [
    { status: 200, isHeard: true },
    { status: undefined, isHeard: false },
    { status: 403, isHeard: true },
    { status: 503, isHeard: false },
    { status: 200, isHeard: true },
  ]) {
    version = status
    await pass(20)
    const silentMs = stage.clock.monotonic() - remote.heardMs
    t.equal(silentMs < 8000, isHeard, `${status}: ${silentMs} ms`)
  }
})

t.test('the clock of its API server is compared with ours', async (t) => {
  const stage = new Stage()
  const remote = await stage.begin(t)
  for (const { name, aheadMs, says, isUndated = false } of [
    { name: 'it agrees', aheadMs: 0, says: /^$/ },
    {
      name: 'behind',
      aheadMs: -60_000,
      says: /^the clock of the API server is behind ours/,
      isUndated: true,
    },
    { name: 'it agrees again', aheadMs: 0, says: /^$/ },
  ]) {
    stage.clock.pass(30_000)
    stage.api.dateMs = stage.clock.now() + aheadMs
    await stage.pass(10, (asked) => {
      if (isOfNamespace(asked)) asked.reply(200, { metadata: { uid: 'uid of boston' } })
      else if (asked.method === 'PATCH') asked.reply(200, RECORD)
      else asked.reply(200, asked.path === '/version' ? {} : listBody('9', [RECORD]))
    })
    t.match(remote.clockFault, says, name)
    t.equal(remote.fault, '', 'it is followed in any case')
    const last = stage.written.splice(0).at(-1) ?? 'nothing'
    t.equal(last.includes('undated'), isUndated, `${name}: its records are reconciled: ${last}`)
    t.match(last, 'sextant.io/sites', name)
  }
  const about = stage.lines.filter((line) => line.includes('clock'))
  t.equal(about.length, 2, 'each change once')
  t.match(
    about[0],
    /cluster boston: the clock of the API server is behind ours: synchronise the clocks; until then, site names/,
  )
  t.match(about[1], /cluster boston: the clock of the API server agrees with ours again/)
})

t.test('the health check of its records is known by their authoritative record', async (t) => {
  const stage = new Stage()
  const remote = await stage.begin(t)
  const healthCheck = { protocol: 'TCP', port: 443, interval: '7s' }
  const checked = dnsRecord({ name: 'checked', spec: { delegate: true, healthCheck } })
  await stage.pass(20, (asked) => {
    if (isOfNamespace(asked)) asked.reply(200, { metadata: { uid: 'uid of boston' } })
    else asked.reply(200, asked.method === 'PATCH' ? RECORD : listBody('9', [RECORD, checked]))
  })
  const key = authoritativeKey(new DnsRecordView(checked))
  t.equal(remote.checkOf(key)?.intervalMs, 7000)
  t.equal(remote.checkOf('a/another'), undefined)
  t.strictSame(stage.checked, [key], 'it is news once it is known')
  const metadata = { resourceVersion: '12' }
  const unchecked = dnsRecord({ name: 'checked', metadata, spec: { delegate: true } })
  stage.watch!.event('MODIFIED', unchecked)
  await stage.pass(1, () => {})
  t.strictSame(stage.checked, [key, key], 'and when it ends')
  t.equal(remote.checkOf(key), undefined)
})

t.test(
  'it has contributed once its records were read, and this cluster has a status of each',
  async (t) => {
    const stage = new Stage()
    const remote = await stage.begin(t)
    const key = authoritativeKey(new DnsRecordView(RECORD))
    let isListing = false
    let isWriting = false
    const pass = (seconds: number): Promise<void> =>
      stage.pass(seconds, (asked) => {
        if (isOfNamespace(asked)) asked.reply(200, { metadata: { uid: 'uid of boston' } })
        else if (asked.method === 'PATCH') {
          const written = { ...RECORD, ...asked.body }
          if (isWriting)
            asked.reply(200, {
              ...written,
              metadata: { ...Object(RECORD.metadata), resourceVersion: '12' },
            })
          else asked.reply(503, STARTING)
        } else if (isListing) asked.reply(200, listBody('9', [RECORD]))
        else asked.reply(503, STARTING)
      })
    await pass(10)
    t.notOk(remote.hasAll('a/other'), 'its records were not read')
    isListing = true
    await pass(60)
    t.ok(remote.hasAll('a/other'), 'it has none of that host')
    t.notOk(remote.hasAll(key), 'its record is not reconciled')
    const { clock } = stage
    const { nowMs, monotonicMs } = clock
    for (const { sinceMs, ageMs, isWaiting } of [
      { sinceMs: MAX_MS - 1, ageMs: MAX_MS, isWaiting: true },
      { sinceMs: MAX_MS, ageMs: MAX_MS - 1, isWaiting: true },
      { sinceMs: MAX_MS, ageMs: 1 - MAX_MS, isWaiting: true },
      { sinceMs: MAX_MS, ageMs: -MAX_MS, isWaiting: false },
      { sinceMs: MAX_MS, ageMs: MAX_MS, isWaiting: false },
    ]) {
      Object.assign(clock, { nowMs: CREATED_MS + ageMs, monotonicMs: monotonicMs + sinceMs })
      t.equal(remote.hasAll(key), !isWaiting, `${sinceMs} ms, created ${ageMs} ms ago`)
    }
    Object.assign(clock, { nowMs, monotonicMs })
    isWriting = true
    await pass(200)
    t.ok(remote.hasAll(key), 'its record is reconciled')
  },
)

t.test('a record whose failover list waits for other clusters is reconciled soon', async (t) => {
  for (const isChicagoUp of [false, true]) {
    const simulation = new DelegationSimulation()
    const dublin = simulation.add('dublin')
    const [boston, chicago] = ['boston', 'chicago'].map((name) => simulation.add(name, 'secondary'))
    chicago!.isUp = isChicagoUp
    boston!.delegate('app', [address(HOST, '192.0.2.1')])
    const listed = { 'sextant.io/failover': 'GEO-EU: spare' }
    boston!.cluster.put(annotated(boston!.cluster.stored('a/app')!, listed))
    await simulation.pass(2)
    const record = boston!.cluster.stored('a/app')!
    const stage = new Stage()
    await stage.begin(t, [dublin.cluster.stored(`a/${AUTHORITATIVE}`)!])
    await stage.pass(60, (asked) => {
      if (isOfNamespace(asked)) asked.reply(200, { metadata: { uid: 'uid of boston' } })
      else asked.reply(200, asked.method === 'PATCH' ? record : listBody('9', [record]))
    })
    t.equal(stage.reconciles > 5, !isChicagoUp, `${stage.reconciles} reconciles`)
  }
})

t.test(
  'statuses that failed while a cluster was unavailable are written when it returns',
  async (t) => {
    const stage = new Stage()
    await stage.begin(t)
    let isAway = false
    let attempts = 0
    const answer = (asked: Asked): void => {
      if (asked.method === 'PATCH' && ++attempts === 1) {
        isAway = true
        stage.watch?.fail(new Error('socket hang up'))
      }
      if (isAway) asked.reply(503, STARTING)
      else if (isOfNamespace(asked)) asked.reply(200, { metadata: { uid: 'uid of boston' } })
      else asked.reply(200, asked.method === 'PATCH' ? RECORD : listBody('9', [RECORD]))
    }
    // From then on the next attempt is two minutes away at least.
    const many = 13
    for (let i = 0; i < 5000 && attempts < many; i++) await stage.pass(1, answer)
    t.equal(attempts, many)
    isAway = false
    await stage.pass(20, answer)
    t.equal(attempts, many + 1)
  },
)
