import t from 'tap'
import { MemoryRelease, releaseAfterStart } from '../../src/cli/memory-release.ts'
import { FakeClock } from '../support/setup.ts'

const MIB = 2 ** 20

interface Step {
  readonly connections: number
  readonly heapMib?: number
  /** Outside of the heap; collecting leaves 10. */
  readonly buffersMib?: number
  /** Since the step before. */
  readonly afterMs?: number
}

/** What each step does, in order. */
function run(steps: readonly Step[]): string[] {
  const clock = new FakeClock()
  let step: Step = { connections: 0 }
  let acts = ''
  let rss = 200 * MIB
  const lines: string[] = []
  const release = new MemoryRelease({
    clock,
    log: { info: (line) => lines.push(line) },
    connections: () => step.connections,
    memory: () => ({
      rss,
      heapUsed: (step.heapMib ?? 12) * MIB,
      arrayBuffers: (acts.includes('trim') ? 10 : (step.buffersMib ?? 10)) * MIB,
    }),
    collect: (done) => {
      acts += 'collect '
      done()
    },
    trim: () => {
      acts += 'trim'
      rss = 100 * MIB
    },
  })
  const done = steps.map((next) => {
    step = next
    acts = ''
    clock.pass(step.afterMs ?? 1000)
    release.check()
    return acts
  })
  return [...done, ...lines]
}

const LINE = 'memory: resident memory reduced from 200 to 100 MiB, TCP connections fell from'
const LINE_READ = 'memory: resident memory reduced from 200 to 100 MiB, after large data was read'
const read = (buffersMib: number): Step => ({ connections: 0, buffersMib })
const FLOOD = { connections: 2000, heapMib: 90 }
const after = (connections: number): Step => ({ connections, heapMib: 70 })

const table: readonly { name: string; steps: readonly Step[]; expected: readonly string[] }[] = [
  {
    name: 'a peak and a fall to less than a tenth',
    steps: [{ connections: 3 }, FLOOD, after(200), after(199), after(199), after(0), after(0)],
    expected: ['', '', '', '', 'collect trim', '', '', `${LINE} 2000 to 199`],
  },
  {
    name: 'connections that still fall',
    steps: [{ connections: 3 }, FLOOD, after(100), after(20), after(0), after(0)],
    expected: ['', '', '', '', '', 'collect trim', `${LINE} 2000 to 0`],
  },
  {
    name: 'the lowest peak',
    steps: [{ connections: 500 }, after(0), after(0)],
    expected: ['', '', 'collect trim', `${LINE} 500 to 0`],
  },
  {
    name: 'a peak that is too low',
    steps: [{ connections: 499 }, after(0), after(0)],
    expected: ['', '', ''],
  },
  {
    name: 'the second flood of a minute waits until the minute is over',
    steps: [
      FLOOD,
      after(0),
      after(0),
      FLOOD,
      after(0),
      { connections: 0, afterMs: 57_999 },
      { connections: 0, afterMs: 1 },
      after(0),
    ],
    expected: [
      ...['', '', 'collect trim', '', '', '', 'collect trim', ''],
      `${LINE} 2000 to 0`,
      'memory: resident memory reduced from 100 to 100 MiB, TCP connections fell from 2000 to 0',
    ],
  },
  {
    name: 'a heap that is large before the flood is not collected',
    steps: [{ connections: 3, heapMib: 33 }, FLOOD, after(0), after(0)],
    expected: ['', '', '', 'trim', `${LINE} 2000 to 0`],
  },
  {
    name: 'buffers that grew by enough, and have stopped growing',
    steps: [read(10), read(40), read(74), read(74), read(10), read(10)],
    expected: ['', '', '', 'collect trim', '', '', LINE_READ],
  },
  {
    name: 'buffers that grew by too little, and those that stay',
    steps: [read(100), read(163), read(163), read(150), read(150)],
    expected: ['', '', '', '', ''],
  },
  {
    name: 'buffers beside a large heap',
    steps: [read(10), { ...read(90), heapMib: 33 }, { ...read(90), heapMib: 33 }],
    expected: ['', '', ''],
  },
  {
    name: 'a heap that was large long before the flood',
    steps: [{ connections: 3, heapMib: 99 }, { connections: 3 }, FLOOD, after(0), after(0)],
    expected: ['', '', '', '', 'collect trim', `${LINE} 2000 to 0`],
  },
]

for (const { name, steps, expected } of table) {
  t.test(name, async (t) => t.strictSame(run(steps), expected))
}

t.test('a start releases its memory once if the heap is large', async (t) => {
  const run = (heapMib: number): readonly string[] => {
    const acts: string[] = []
    let rss = 300 * MIB
    releaseAfterStart({
      log: { info: (line) => acts.push(line) },
      memory: () => ({ rss, heapTotal: heapMib * MIB }),
      collect: (done) => {
        acts.push('collect')
        done()
      },
      trim: () => {
        acts.push('trim')
        rss = 180 * MIB
      },
    })
    return acts
  }
  const line = 'memory: resident memory reduced from 300 to 180 MiB, after the start'
  t.strictSame(run(32), ['collect', 'trim', line])
  t.strictSame(run(31), [])
})
