import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { Worker } from 'node:worker_threads'
import t from 'tap'
import {
  collectYoungAlone,
  keepHeapYoung,
  lowerHelperThreads,
} from '../../src/cli/process-settings.ts'

const FLAGS = ['--no-allocation-site-pretenuring', '--no-parallel-scavenge']

/** What a process says that does nothing but start with that flag; V8 only prints flags that it does not know. */
function startWith(flag: string): { status: number | null; stderr: string } {
  return spawnSync(process.execPath, [flag, '-e', ''], { encoding: 'utf8', env: {} })
}

t.test('the flags are ones that this V8 has, and may be set while it runs', (t) => {
  for (const flag of FLAGS) t.match(startWith(flag), { status: 0, stderr: '' }, flag)
  t.doesNotThrow(keepHeapYoung)
  t.doesNotThrow(collectYoungAlone)
  t.end()
})

t.test('a flag that V8 has dropped would be noticed', (t) => {
  t.notMatch(startWith('--no-allocation-site-nonsense'), { status: 0 })
  t.end()
})

/** The nice values of the threads of this process, by their ids. */
function niceValues(): Map<number, number> {
  const tasks = readdirSync('/proc/self/task')
  const niceOf = (task: string): number => {
    const fields = readFileSync(`/proc/self/task/${task}/stat`, 'latin1').split(') ')[1]!
    return Number(fields.split(' ')[16])
  }
  return new Map(tasks.map((task) => [Number(task), niceOf(task)]))
}

t.test(
  'helper threads yield; the main thread and those that it starts later do not',
  { skip: process.platform !== 'linux' && 'the priorities of threads are known on Linux' },
  async (t) => {
    const before = niceValues()
    lowerHelperThreads()
    const worker = new Worker('setInterval(() => {}, 1000)', { eval: true })
    t.teardown(() => worker.terminate())
    await new Promise((resolve) => worker.once('online', resolve))
    const after = niceValues()
    t.equal(after.get(process.pid), before.get(process.pid))
    const helpers = [...before.keys()].filter((id) => id !== process.pid && after.has(id))
    t.ok(helpers.length > 0)
    for (const id of helpers) t.equal(after.get(id), 10)
    const later = [...after.keys()].filter((id) => !before.has(id))
    t.ok(later.length > 0)
    for (const id of later) t.equal(after.get(id), before.get(process.pid))
  },
)
