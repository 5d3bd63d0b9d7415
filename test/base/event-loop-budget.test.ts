import { setImmediate as nextTurn } from 'node:timers/promises'
import t from 'tap'
import {
  EventLoopBudget,
  noteAccepted,
  noteConnectionsMs,
  OtherWork,
} from '../../src/base/event-loop-budget.ts'

/** A clock that moves by 10 µs at each reading, so that the load of the machine decides nothing. */
function ticking(): () => number {
  let readings = 0
  return () => ++readings / 100
}

/** Uses the turn up. */
function spend(turns: EventLoopBudget): void {
  while (!turns.isOver());
}

t.test(
  'a turn is over after two milliseconds, and the next turn of the loop has a new one',
  async (t) => {
    const now = ticking()
    const turns = new EventLoopBudget(now)
    const startMs = now()
    t.equal(turns.isOver(), false)
    spend(turns)
    t.ok(now() - startMs >= 2)
    t.equal(turns.isOver(), true, 'and stays so')
    await nextTurn()
    t.equal(turns.isOver(), false)
  },
)

/** Runs that use up their turns and wait again; the names of their connections, `network.client.connection`, in order. */
async function order(names: readonly string[], count: number): Promise<string[]> {
  const turns = new EventLoopBudget(ticking())
  const ran: string[] = []
  spend(turns)
  for (const name of names) {
    const [network = '', client = ''] = name.split('.')
    const peer = { network, client: `${network}.${client}` }
    const run = (): void => {
      if (ran.length >= count) return
      ran.push(name)
      spend(turns)
      turns.wait(peer, run)
    }
    turns.wait(peer, run)
  }
  while (ran.length < count) await nextTurn()
  return ran.slice(0, count)
}

t.test('those that wait come in order, the longest waiting first', async (t) => {
  t.strictSame(await order(['a.1.1', 'b.1.1', 'c.1.1'], 6), [
    ...['a.1.1', 'b.1.1', 'c.1.1'],
    ...['a.1.1', 'b.1.1', 'c.1.1'],
  ])
})

t.test('turns are those of networks, then of clients, then of connections', async (t) => {
  const many = Array.from({ length: 50 }, (_, i) => `a.1.${i}`)
  t.strictSame(await order([...many, 'a.2.1', 'b.1.1'], 8), [
    ...['a.1.0', 'b.1.1', 'a.2.1', 'b.1.1'],
    ...['a.1.1', 'b.1.1', 'a.2.1', 'b.1.1'],
  ])
})

/** `wait`: as that of the budget, for the only client of a network. `ran`: the networks that ran, in order. */
function recordRuns(turns: EventLoopBudget) {
  const ran: string[] = []
  const wait = (network: string, run: () => void): void => {
    turns.wait({ network, client: network }, () => {
      ran.push(network)
      run()
    })
  }
  let isOver = false
  /** Always has something to do, until `stop`. */
  const busy = (network: string): void => {
    wait(network, () => {
      spend(turns)
      if (!isOver) busy(network)
    })
  }
  const stop = (): void => void (isOver = true)
  return { ran, wait, busy, stop }
}

t.test('networks with little to do come before those with much, most of the time', async (t) => {
  const turns = new EventLoopBudget(ticking())
  const { ran, wait, busy, stop } = recordRuns(turns)
  spend(turns)
  for (let i = 0; i < 10; i++) busy(`busy-${i}`)
  while (ran.length < 300) await nextTurn()
  const before = ran.length
  for (let i = 0; i < 12; i++) wait(`new-${i}`, () => spend(turns))
  while (!ran.includes('new-11')) await nextTurn()
  stop()
  const until = ran.indexOf('new-11')
  const later = ran.slice(before, until).map((name) => name.split('-')[0])
  const others = later.filter((name) => name === 'busy').length
  t.ok(others >= 1 && others <= 5, `${others} of the busy ones ran among 12 new ones`)
})

t.test(
  'on a thread that gets little time, a quiet network still comes before busy ones',
  async (t) => {
    const BUSY = 400
    let nowMs = 0
    // Other threads have the processors for 200 ms between two turns of the loop.
    const turns = new EventLoopBudget(() => (nowMs += 0.01))
    const { ran, wait, busy, stop } = recordRuns(turns)
    spend(turns)
    for (let i = 0; i < BUSY; i++) busy(`busy-${i}`)
    const turn = async (): Promise<void> => {
      await nextTurn()
      nowMs += 200
    }
    while (ran.length < 10 * BUSY) await turn()
    const waits: number[] = []
    for (let query = 0; query < 20; query++) {
      const startMs = nowMs
      let isAnswered = false
      wait('quiet', () => (isAnswered = true))
      while (!isAnswered) await turn()
      waits.push(nowMs - startMs)
    }
    stop()
    t.ok(Math.max(...waits) < 1000, `${waits.map(Math.round)} ms`)
  },
)

t.test('queries that cost little share a slice of their network', async (t) => {
  const turns = new EventLoopBudget(ticking())
  const { ran, wait } = recordRuns(turns)
  spend(turns)
  for (let i = 0; i < 5; i++) wait('a', () => {})
  wait('b', () => spend(turns))
  while (!ran.includes('b')) await nextTurn()
  t.strictSame(ran.slice(0, 6), [...Array(5).fill('a'), 'b'])
})

t.test('several that wait have parts of one turn', async (t) => {
  const now = ticking()
  const turns = new EventLoopBudget(now)
  const slices: number[] = []
  spend(turns)
  for (const name of ['a', 'b', 'c']) {
    turns.wait({ network: name, client: name }, () => {
      const startMs = now()
      spend(turns)
      slices.push(now() - startMs)
    })
  }
  while (slices.length < 3) await nextTurn()
  t.ok(Math.min(slices[0]!, slices[1]!) < 2, `${slices} ms`)
})

t.test('accepting has as much time as the turn before, and no more', async (t) => {
  const now = ticking()
  const turns = new EventLoopBudget(now)
  const peer = { network: 'a', client: 'a' }
  const waits: number[] = []
  const run = (): void => {
    spend(turns)
    const startMs = now()
    turns.wait(peer, () => {
      waits.push(now() - startMs)
      if (waits.length < 20) run()
    })
  }
  run()
  while (waits.length < 20) {
    noteAccepted()
    await nextTurn()
  }
  // No turn came before the first one.
  const later = waits.slice(1).sort((a, b) => a - b)
  t.ok(later[0]! >= 1, `${waits} ms`)
})

t.test('a peer without an address has its turn, too', async (t) => {
  const turns = new EventLoopBudget(ticking())
  spend(turns)
  let hasRun = false
  turns.wait({ network: '', client: '' }, () => (hasRun = true))
  for (let turn = 0; turn < 10 && !hasRun; turn++) await nextTurn()
  t.ok(hasRun)
})

t.test('what accepts and what serves do not count each other', async (t) => {
  let nowMs = 0
  /** Uses as much time as the thread did other work, at least 2 ms. */
  const user = () => {
    const other = new OtherWork()
    return (): number => {
      const ms = Math.max(2, Math.min(100, other.since(nowMs)))
      nowMs += ms
      noteConnectionsMs(ms)
      other.begin(nowMs)
      return ms
    }
  }
  const [accept, serve] = [user(), user()]
  const used: number[] = []
  for (let turn = 0; turn < 100; turn++) {
    nowMs += 5
    used.push(accept(), serve())
  }
  t.equal(Math.max(...used), 5)
})

t.test('there is none before the begin and after the end', async (t) => {
  const other = new OtherWork()
  t.equal(other.since(10), 0)
  other.begin(10)
  t.equal(other.since(17), 7)
  other.end()
  t.equal(other.since(20), 0)
})
