import t from 'tap'
import { MemoryRelease, releaseAfterStart } from '../../src/cli/memory-release.ts'
import { FakeClock } from '../support/setup.ts'

const MIB = 2 ** 20

interface Step {
  readonly connections: number
  readonly heapMib?: number
  /** Resident; a release leaves 100. Absent = as before. */
  readonly rssMib?: number
  /** Since the step before. */
  readonly afterMs?: number
}

/** What each step does, in order. */
function run(steps: readonly Step[]): string[] {
  const clock = new FakeClock()
  let step: Step = { connections: 0 }
  let acts = ''
  let rss = (steps[0]?.rssMib ?? 200) * MIB
  const lines: string[] = []
  const release = new MemoryRelease({
    clock,
    log: { info: (line) => lines.push(line) },
    connections: () => step.connections,
    memory: () => ({ rss, heapUsed: (step.heapMib ?? 12) * MIB }),
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
    if (step.rssMib !== undefined) rss = step.rssMib * MIB
    clock.pass(step.afterMs ?? 1000)
    release.check()
    return acts
  })
  return [...done, ...lines]
}

const LINE = 'memory: resident memory reduced from 200 to 100 MiB, TCP connections fell from'
const LINE_READ = 'memory: resident memory reduced from 200 to 100 MiB, after large data was read'
const read = (rssMib: number): Step => ({ connections: 0, rssMib })
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
    name: 'memory that grew by enough, and has stopped growing',
    steps: [read(136), read(150), read(200), read(200), read(100), read(163), read(163)],
    expected: ['', '', '', 'collect trim', '', '', '', LINE_READ],
  },
  {
    name: 'memory that grows by less from one check to the next',
    steps: [read(136), read(200.5), read(200)],
    expected: ['', '', 'collect trim', LINE_READ],
  },
  {
    name: 'memory that grew by too little, and that which is needed',
    steps: [read(100), read(163), read(163), read(150), read(150)],
    expected: ['', '', '', '', ''],
  },
  {
    name: 'memory beside a large heap',
    steps: [read(100), { ...read(190), heapMib: 33 }, { ...read(190), heapMib: 33 }],
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

t.test('a start releases its memory once if the heap or the whole is large', async (t) => {
  const run = (heapMib: number, rssMib: number): readonly string[] => {
    const acts: string[] = []
    let rss = rssMib * MIB
    releaseAfterStart({
      log: { info: (line) => acts.push(line) },
      memory: () => ({ rss, heapTotal: heapMib * MIB }),
      collect: (done) => {
        acts.push('collect')
        done()
      },
      trim: () => {
        acts.push('trim')
        rss = 100 * MIB
      },
    })
    return acts
  }
  const line = 'memory: resident memory reduced from 150 to 100 MiB, after the start'
  t.strictSame(run(32, 150), ['collect', 'trim', line])
  t.strictSame(run(31, 150), [])
  t.strictSame(run(31, 160), ['collect', 'trim', line.replace('150', '160')], 'large zones')
})
