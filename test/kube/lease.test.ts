import t, { type Test } from 'tap'
import { Random } from '../../src/base/random.ts'
import { createLogger } from '../../src/base/telemetry/log.ts'
import { LeaderElector } from '../../src/kube/lease.ts'
import { ApiDouble, type Asked, missingBody, statusBody, turns } from '../support/api-double.ts'
import { FakeClock, FakeTimers } from '../support/setup.ts'

interface Lease {
  metadata: { resourceVersion: string; labels?: object }
  // biome-ignore lint/suspicious/noExplicitAny: whatever was written
  spec: any
}

/** The one lease of an API server, and electors that want it. */
class Stage {
  readonly timers = new FakeTimers()
  lease: Lease | undefined
  /** Requests to come: answered as an API server would, left without an answer, or refused with that status. */
  mode: 'answer' | 'hang' | number = 'answer'
  readonly electors: Candidate[] = []
  #version = 10
  readonly #t: Test

  constructor(t: Test) {
    this.#t = t
  }

  elector(identity: string, wallMs = 1_000_000): Candidate {
    const candidate = new Candidate(this, identity, wallMs)
    this.electors.push(candidate)
    this.#t.teardown(() => {
      this.mode = 500
      void candidate.elector.close()
    })
    return candidate
  }

  set(spec: object): void {
    this.lease = { metadata: { resourceVersion: `${++this.#version}` }, spec }
  }

  answer(asked: Asked): void {
    if (this.mode === 'hang') return
    if (this.mode !== 'answer') {
      asked.reply(this.mode, statusBody(this.mode, 'no way'))
      return
    }
    const { lease } = this
    const version = asked.body?.metadata.resourceVersion
    if (asked.method === 'POST' && lease !== undefined) {
      asked.reply(409, statusBody(409, 'there', 'AlreadyExists'))
    } else if (asked.method !== 'POST' && lease === undefined) {
      asked.reply(404, missingBody('leases', 'sextant'))
    } else if (asked.method === 'PUT' && version !== lease?.metadata.resourceVersion) {
      asked.reply(409, statusBody(409, 'modified', 'Conflict'))
    } else {
      if (asked.method !== 'GET') this.set(asked.body.spec)
      asked.reply(200, this.lease as object)
    }
  }

  /** Lets the requests that wait come and go. */
  async settle(): Promise<void> {
    for (let round = 0; round < 6; round++) {
      await turns(5)
      for (const { api } of this.electors) {
        for (const asked of api.asked.splice(0)) this.answer(asked)
      }
    }
    await turns(5)
  }

  async advance(milliseconds: number, stepMs = 250): Promise<void> {
    for (let at = 0; at < milliseconds; at += stepMs) {
      for (const { clock } of this.electors) {
        clock.monotonicMs += stepMs
        clock.nowMs += stepMs
      }
      await this.timers.advance(stepMs)
      await this.settle()
      const leaders = this.electors.filter(({ elector }) => elector.isLeader)
      if (leaders.length > 1) throw new Error('two leaders')
    }
  }
}

class Candidate {
  readonly api = new ApiDouble()
  readonly clock = new FakeClock()
  readonly lines: string[] = []
  readonly calls: string[] = []
  readonly elector: LeaderElector

  constructor({ timers }: Stage, identity: string, wallMs: number) {
    this.clock.nowMs = wallMs
    this.elector = new LeaderElector({
      api: this.api,
      namespace: 'system',
      name: 'sextant',
      identity,
      clock: this.clock,
      timers,
      random: new Random(1),
      log: createLogger(
        '',
        (line) => this.lines.push(line),
        () => false,
      ),
      onAcquire: () => this.calls.push('acquired'),
      onLose: (reason) => this.calls.push(`lost: ${reason}`),
    })
  }
}

t.test('the first takes the lease, and renews it', async (t) => {
  const stage = new Stage(t)
  const a = stage.elector('a')
  a.elector.start()
  await stage.settle()
  t.equal(a.elector.isLeader, true)
  t.strictSame(a.calls, ['acquired'])
  t.strictSame(stage.lease?.spec, {
    holderIdentity: 'a',
    leaseDurationSeconds: 15,
    acquireTime: '1970-01-01T00:16:40.000000Z',
    renewTime: '1970-01-01T00:16:40.000000Z',
    leaseTransitions: 0,
  })
  await stage.advance(60_000)
  t.equal(a.elector.isLeader, true)
  t.strictSame(a.calls, ['acquired'])
  t.equal(stage.lease?.spec.acquireTime, '1970-01-01T00:16:40.000000Z')
  t.match(stage.lease?.spec.renewTime, /^1970-01-01T00:17:(38|39|40)/)
  t.equal(stage.lease?.spec.leaseTransitions, 0)
})

t.test('another one waits, whatever the clocks say, and takes over from a dead one', async (t) => {
  for (const wallMs of [0, 1_000_000, 1e12]) {
    const stage = new Stage(t)
    const a = stage.elector('a')
    const b = stage.elector('b', wallMs)
    a.elector.start()
    await stage.settle()
    b.elector.start()
    await stage.advance(60_000)
    t.equal(a.elector.isLeader, true)
    t.equal(b.elector.isLeader, false)
    t.equal(b.elector.holder, 'a')
    // Killed: nothing comes from it any more.
    stage.electors.shift()
    await stage.advance(14_000)
    t.equal(b.elector.isLeader, false, 'not before the lease is over')
    await stage.advance(7000)
    t.equal(b.elector.isLeader, true, 'and soon after')
    t.equal(stage.lease?.spec.holderIdentity, 'b')
    t.equal(stage.lease?.spec.leaseTransitions, 1)
  }
})

t.test(
  'a lease that was renewed by a clock far ahead is still watched for its time only',
  async (t) => {
    const stage = new Stage(t)
    stage.set({
      holderIdentity: 'x',
      leaseDurationSeconds: 5,
      renewTime: '2999-01-01T00:00:00.000000Z',
      strategy: 'kept',
    })
    const a = stage.elector('a')
    a.elector.start()
    await stage.advance(4000)
    t.equal(a.elector.isLeader, false)
    await stage.advance(6000)
    t.equal(a.elector.isLeader, true)
    t.equal(stage.lease?.spec.strategy, 'kept', 'what others wrote there stays')
  },
)

t.test('given back, it is free at once', async (t) => {
  const stage = new Stage(t)
  const [a, b] = [stage.elector('a'), stage.elector('b')]
  a.elector.start()
  await stage.settle()
  b.elector.start()
  await stage.settle()
  const closed = a.elector.close()
  await stage.settle()
  await closed
  t.equal(a.elector.isLeader, false)
  t.equal(stage.lease?.spec.holderIdentity, '')
  t.strictSame(a.calls, ['acquired'], 'the caller of close is not notified')
  await stage.advance(4500)
  t.equal(b.elector.isLeader, true)
  t.equal(stage.lease?.spec.leaseTransitions, 1)
})

t.test('an elector that never held the lease releases nothing', async (t) => {
  const stage = new Stage(t)
  stage.set({ holderIdentity: 'x', leaseDurationSeconds: 15 })
  const a = stage.elector('a')
  a.elector.start()
  await stage.settle()
  await a.elector.close()
  t.equal(stage.lease?.spec.holderIdentity, 'x')
  t.equal(stage.timers.count, 0)
})

t.test('a holder that can not renew stops well before others begin', async (t) => {
  for (const mode of ['hang', 500, 403, 404] as const) {
    const stage = new Stage(t)
    const a = stage.elector('a')
    a.elector.start()
    await stage.advance(4000)
    stage.mode = mode
    await stage.advance(8000 - 250)
    t.equal(a.elector.isLeader, true, `${mode}: there is still time`)
    await stage.advance(2500)
    t.equal(a.elector.isLeader, false)
    t.equal(a.calls.length, 2, 'notified, though a request may hang')
    t.match(a.calls[1], /^lost: it was not renewed for 10 s/)
    if (mode === 403) t.match(a.elector.reason, /needs get, create and update of leases/)
    stage.mode = 'answer'
    await stage.advance(10_000)
    t.strictSame(a.calls.slice(2), ['acquired'], 'it goes on trying')
    t.equal(stage.lease?.spec.leaseTransitions, 0)
  }
})

t.test('a process that was stopped knows when it goes on, before any timer', async (t) => {
  const stage = new Stage(t)
  const a = stage.elector('a')
  a.elector.start()
  await stage.settle()
  a.clock.monotonicMs += 10_001
  t.equal(a.elector.isLeader, false)
})

t.test('a lease that another one took is lost at once', async (t) => {
  const table = [
    {
      name: 'taken',
      given: { holderIdentity: 'x', leaseDurationSeconds: 15 },
      want: 'lost: x took the lease',
    },
    {
      name: 'emptied',
      given: { holderIdentity: '' },
      want: 'lost: another process removed the lease',
    },
    { name: 'deleted', given: undefined, want: 'lost: another process removed the lease' },
  ]
  for (const { name, given, want } of table) {
    const stage = new Stage(t)
    const a = stage.elector('a')
    a.elector.start()
    await stage.settle()
    if (given === undefined) stage.lease = undefined
    else stage.set(given)
    await stage.advance(2000)
    const again = name === 'taken' ? [] : ['acquired']
    t.strictSame(a.calls, ['acquired', want, ...again], name)
    t.equal(a.elector.isLeader, name !== 'taken', name)
  }
})

t.test('a renewal whose answer was lost is no loss', async (t) => {
  const stage = new Stage(t)
  const a = stage.elector('a')
  a.elector.start()
  await stage.settle()
  // The server did it, but the elector never heard.
  stage.set({ ...stage.lease?.spec })
  await stage.advance(4000)
  t.equal(a.elector.isLeader, true)
  t.strictSame(a.calls, ['acquired'])
})

t.test('an answer that comes after its time makes no leader', async (t) => {
  const stage = new Stage(t)
  const a = stage.elector('a')
  a.elector.start()
  await turns()
  stage.answer(await a.api.next())
  await turns()
  const create = await a.api.next()
  a.clock.monotonicMs += 11_000
  stage.answer(create)
  await turns()
  t.equal(a.elector.isLeader, false)
  t.strictSame(a.calls, [])
})

t.test('an elector whose lease ended before its renewal starts again', async (t) => {
  const stage = new Stage(t)
  const a = stage.elector('a')
  a.elector.start()
  await stage.settle()
  a.clock.monotonicMs += 2000
  await stage.timers.advance(2000)
  await turns()
  const renewal = await a.api.next()
  // Its process got no turn, and its timers none yet.
  a.clock.monotonicMs += 8500
  t.equal(a.elector.isLeader, false)
  stage.answer(renewal)
  await turns()
  t.equal(a.elector.isLeader, true)
  t.strictSame(a.calls, ['acquired', 'lost: it was renewed too late', 'acquired'])
})

t.test('one of many candidates holds the lease at any time, whichever dies', async (t) => {
  const stage = new Stage(t)
  for (const [i, name] of ['a', 'b', 'c', 'd'].entries())
    stage.elector(name, i * 1e10).elector.start()
  for (let round = 0; round < 3; round++) {
    await stage.advance(25_000)
    const leader = stage.electors.find(({ elector }) => elector.isLeader)
    t.ok(leader)
    stage.electors.splice(stage.electors.indexOf(leader as Candidate), 1)
  }
  t.equal(stage.lease?.spec.leaseTransitions, 2)
})

t.test('a fault is logged once', async (t) => {
  const stage = new Stage(t)
  stage.mode = 500
  const a = stage.elector('a')
  a.elector.start()
  await stage.advance(30_000)
  t.match(a.lines, [/lease system\/sextant: 500 no way; retrying/])
  t.equal(a.lines.length, 1)
})
