import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { Random } from '../../../../src/base/random.ts'
import { SerialFile } from '../../../../src/publish/zone/serials/serial-file.ts'
import { SerialIndex } from '../../../../src/publish/zone/serials/serial-index.ts'
import { isSerialAfter } from '../../../../src/publish/zone/soa.ts'
import { FakeClock, FakeTimers } from '../../../support/setup.ts'
import { until } from '../../../support/until.ts'

// Long: it starts and kills many processes.

const KILLS = 12

/**
 * A process that changes a zone all the time, at 100 times the speed, and prints each serial once
 * the file covers it.
 */
const SERVER = `
  import { writeSync } from 'node:fs'
  import { SerialFile } from './dist/publish/zone/serials/serial-file.js'
  import { SerialIndex } from './dist/publish/zone/serials/serial-index.js'
  const [path, name] = process.argv.slice(1)
  // The file does not cover the serials from an error, if two processes write all the time, to the next success.
  let isCovered = true
  const log = { debug() {}, info: () => { isCovered = true }, warning() {}, error: () => { isCovered = false } }
  const clock = { now: () => 1e12, monotonic: () => performance.now() * 100 }
  const after = (ms, run) => { const timer = setTimeout(run, ms / 100); return () => clearTimeout(timer) }
  const index = new SerialIndex()
  const file = new SerialFile({ path, index, log, clock, timers: { after, every: after } })
  for (let i = 0; ; i++) {
    file.catchUp()
    const serial = index.serialFor({ zone: 'z.', place: 'p', digest: name + i }, 1e12)
    file.save(['z.'])
    if (isCovered) writeSync(1, serial + '\\n')
    await new Promise((resume) => setTimeout(resume, i % 50 === 0 ? 30 : 0))
  }
`

interface Life {
  readonly process: ChildProcess
  readonly serials: number[]
}

function start(path: string, name: string): Life {
  if (!existsSync('dist/publish/zone/serials/serial-file.js')) {
    throw new Error('dist is missing: run npm run build')
  }
  const args = ['--input-type=module', '-e', SERVER, path, name]
  const process_ = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  const serials: number[] = []
  let rest = ''
  process_.stdout!.on('data', (chunk: Buffer) => {
    const lines = (rest + chunk.toString('latin1')).split('\n')
    rest = lines.pop()!
    serials.push(...lines.map(Number))
  })
  return { process: process_, serials }
}

async function kill({ process, serials }: Life): Promise<readonly number[]> {
  process.kill('SIGKILL')
  await once(process, 'close')
  return serials
}

t.test('kill -9 at any time, also during a take-over: no serial goes back', async (t) => {
  const path = join(t.testdir({}), 'serials')
  const random = new Random(5)
  let last: number | undefined
  const highest = (serials: readonly number[]): void => {
    for (const serial of serials) {
      if (last === undefined || isSerialAfter(serial, last)) last = serial
    }
  }
  const lives = new Set<Life>()
  t.teardown(() => Promise.all([...lives].map(kill)))
  let old: Life | undefined
  for (let i = 0; i < KILLS; i++) {
    const served = last
    const young = start(path, `${i}.`)
    lives.add(young)
    await until(() => young.serials.length > random.below(300), 'serials')
    const first = young.serials[0]!
    if (served !== undefined && !isSerialAfter(first, served)) t.fail(`${first} after ${served}`)
    // Every other time, the previous process was still running.
    const dead = old === undefined ? young : old
    old = old === undefined && i % 2 === 0 ? young : undefined
    if (old !== undefined) continue
    for (const life of new Set([dead, young])) {
      const serials = await kill(life)
      lives.delete(life)
      const isRising = serials.every((s, i) => i === 0 || isSerialAfter(s, serials[i - 1]!))
      t.ok(isRising, `${serials.length} serials, in order`)
      highest(serials)
    }
  }
  const note = (line: string) => t.fail(line)
  const log = { debug: note, info: note, warning: note, error: note }
  const index = new SerialIndex()
  new SerialFile({ path, index, log, clock: new FakeClock(), timers: new FakeTimers() })
  const next = index.serialFor({ zone: 'z.', place: 'p', digest: 'next' }, 1000)
  t.ok(isSerialAfter(next, last!), `${next} after ${last}`)
})
