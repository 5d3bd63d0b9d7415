// Long: starts a server some dozen times.
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { systemClock } from '../../../src/base/clock.ts'
import { systemTimers } from '../../../src/base/timers.ts'
import { scanName } from '../../../src/dns/name/name.ts'
import { KeyDirectory } from '../../../src/signing/keys/key-directory.ts'
import { requestRoll, scanRollState } from '../../../src/signing/rolls/roll-state.ts'
import { temporaryDirectory } from '../../support/temporary-directory.ts'

const ZONE = scanName('example.org.')!
const SERVER = fileURLToPath(new URL('killed-server.ts', import.meta.url))
const HOOKS = new URL('../../support/test-process.mjs', import.meta.url)

/** Writes from one kill to the next: a prime, so that each kind of write is hit. */
const STEP = 13

/** Lets a server run until that hour, and kills it at one write after the other. Returns how often it was killed. */
function run(directory: string, hour: number, firstWrite: number): number {
  let kills = 0
  for (let write = firstWrite; ; write += STEP) {
    const args = [`--import=${HOOKS}`, SERVER, directory, String(hour), String(write)]
    const { status, signal, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' })
    if (status === 0) return kills
    if (signal !== 'SIGKILL') throw new Error(stderr)
    kills++
  }
}

t.test('a server that is killed at any write loses no roll, and does none twice', async (t) => {
  for (const firstWrite of [1 + Math.floor(Math.random() * STEP)]) {
    const directory = temporaryDirectory(t)
    const keys = join(directory, 'keys')
    const store = new KeyDirectory({ path: keys, clock: systemClock, timers: systemTimers })
    let kills = run(directory, 48, firstWrite)
    const [first] = (await store.load()).keys
    await store.editState(ZONE, (text) => requestRoll(text, { kind: 'roll', role: 'csk' }))
    kills += run(directory, 134, firstWrite)
    t.ok(kills >= 5, `${kills} kills`)

    const { keys: stored, faults } = await store.load()
    t.strictSame(faults, [])
    t.equal(stored.length, 1)
    const [a, b] = [first!.id, stored[0]!.id]
    t.not(a, b)
    const removed = readdirSync(join(keys, 'removed')).filter((file) => file.endsWith('.key'))
    t.strictSame(removed, [`${a}.key`], 'two keys were made in all')
    const lines = readFileSync(join(directory, 'journal'), 'utf8').trim().split('\n')
    // A server that was killed while it made a key holds up the others for a minute.
    const versions = lines.filter((line, i) => line !== lines[i - 1] && line !== '||')
    const both = [a, b].sort().join()
    t.strictSame(versions, [
      `${a}|${a}|`,
      `${a}|${a}|${a}`,
      `${both}|${a}|${a}`,
      `${both}|${b}|${both}`,
      `${both}|${b}|${b}`,
      `${b}|${b}|${b}`,
    ])
    const state = scanRollState((await store.readState(ZONE))!)
    t.strictSame([state.keys.length, state.requests, state.claim], [1, [], undefined])
  }
})
