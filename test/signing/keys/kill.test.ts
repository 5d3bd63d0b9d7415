import { spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { systemClock } from '../../../src/base/clock.ts'
import { systemTimers } from '../../../src/base/timers.ts'
import { FLAGS_KSK, FLAGS_ZSK } from '../../../src/dns/dnssec/dnskey.ts'
import { scanName } from '../../../src/dns/name/name.ts'
import { type FollowedKeys, numberOf } from '../../../src/signing/keys/follow-keys.ts'
import { KeyDirectory } from '../../../src/signing/keys/key-directory.ts'
import { printSharedKeys } from '../../../src/signing/shared/shared-keys.ts'
import { temporaryDirectory } from '../../support/temporary-directory.ts'

// Long: it starts and kills many processes.

const P256 = 13
const ZONE = scanName('k.')!

/** A process that kills itself at the call with that number among those that change files, before or after the call. */
const VICTIM = `
  import fs from 'node:fs'
  import { syncBuiltinESMExports } from 'node:module'
  const [path, work, step, isAfter, id] = process.argv.slice(1)
  const names = ['mkdirSync', 'openSync', 'writeFileSync', 'fsyncSync', 'linkSync', 'renameSync', 'rmSync', 'symlinkSync']
  let calls = 0
  for (const name of names) {
    const original = fs[name]
    fs[name] = (...args) => {
      const isStep = (name !== 'openSync' || args[1] === 'wx') && ++calls === Number(step)
      if (isStep && isAfter === '0') process.kill(process.pid, 'SIGKILL')
      if (isStep && name === 'writeFileSync') original(args[0], args[1].slice(0, 20))
      if (isStep && name === 'writeFileSync') process.kill(process.pid, 'SIGKILL')
      const result = original(...args)
      if (isStep) process.kill(process.pid, 'SIGKILL')
      return result
    }
  }
  syncBuiltinESMExports()
  const { KeyDirectory } = await import('./dist/signing/keys/key-directory.js')
  const { systemClock } = await import('./dist/base/clock.js')
  const { systemTimers } = await import('./dist/base/timers.js')
  const store = new KeyDirectory({ path, clock: systemClock, timers: systemTimers })
  const zone = new Uint8Array([1, 107, 0])
  if (work === 'create') await store.create(zone, 13, 257)
  if (work === 'retire') await store.retire(id)
  if (work === 'state') await store.editState(zone, () => 'after')
  if (work === 'follow') {
    const { scanSharedKeys } = await import('./dist/signing/shared/shared-keys.js')
    const follower = new KeyDirectory({ path, clock: systemClock, timers: systemTimers, follows: 'a' })
    await follower.follow(scanSharedKeys(zone, fs.readFileSync(id, 'utf8'), 'a'))
  }
`

/** Returns true if the process was killed, false if it came to its end. */
async function isKilled(...args: readonly string[]): Promise<boolean> {
  const argv = ['--input-type=module', '-e', VICTIM, ...args]
  const victim = spawn(process.execPath, argv, { stdio: ['ignore', 'ignore', 'inherit'] })
  const [code, signal] = await once(victim, 'exit')
  if (signal !== 'SIGKILL' && code !== 0) throw new Error(`the process ends with ${code}`)
  return signal === 'SIGKILL'
}

function openKeys(path: string): KeyDirectory {
  return new KeyDirectory({ path, clock: systemClock, timers: systemTimers })
}

for (const work of ['create', 'retire', 'state'] as const) {
  t.test(`a kill at each change of a file: ${work}`, async (t) => {
    let kills = 0
    for (let step = 1, isRunning = true; isRunning; step++) {
      for (const isAfter of ['0', '1']) {
        const path = temporaryDirectory(t)
        const store = openKeys(path)
        const zsk = await store.create(ZONE, P256, FLAGS_ZSK)
        await store.editState(ZONE, () => 'before')
        isRunning = await isKilled(path, work, String(step), isAfter, zsk.id)
        if (isRunning) kills++
        const what = `${work}, ${isAfter === '0' ? 'before' : 'after'} call ${step}`

        // What a server does after its start: nothing is lost, and it makes only what is missing.
        const restarted = openKeys(path)
        const found = await restarted.load()
        t.strictSame(found.faults, [], what)
        if (work === 'create') {
          const ksks = found.keys.filter(({ flags }) => flags === FLAGS_KSK)
          if (ksks.length === 0) await restarted.create(ZONE, P256, FLAGS_KSK)
        }
        if (work === 'retire') await restarted.retire(zsk.id)
        t.ok(
          ['before', ...(work === 'state' ? ['after'] : [])].includes(
            (await restarted.readState(ZONE))!,
          ),
          what,
        )
        await restarted.editState(ZONE, () => 'after')

        const { keys, faults } = await openKeys(path).load()
        t.strictSame(faults, [], what)
        const flags = { create: [FLAGS_ZSK, FLAGS_KSK], retire: [], state: [FLAGS_ZSK] }[work]
        t.strictSame(keys.map((key) => key.flags).sort(), flags, what)
        const files = fs.readdirSync(path, { recursive: true }).map(String)
        const kept = join(work === 'retire' ? 'removed' : '', `${zsk.id}.private`)
        t.ok(files.includes(kept), `${what}: the private key`)
        t.strictSame(
          files.filter((name) => /new|next|lock/.test(name)),
          [],
          what,
        )
        const privates = files.filter((name) => name.endsWith('.private'))
        t.equal(privates.length, work === 'create' ? 2 : 1, what)
      }
    }
    t.ok(kills >= 10, `${kills} processes were killed`)
  })
}

/** A state of rolls without keys. */
const STATE = [
  'sextant key rolls 1',
  ...['configured', 'wanted'].map((word) => `${word} csk ED25519`),
  'delegation signed',
  'cds 2026-01-01T00:00:00Z',
  ...['dnskey', 'signers', 'ds'].map((word) => `${word} 2026-01-01T00:00:00Z known 60 -`),
  '',
].join('\n')

t.test('a kill at each change of a file: keys of another server', async (t) => {
  const leader = openKeys(temporaryDirectory(t))
  const old = await leader.create(ZONE, P256, FLAGS_ZSK)
  await leader.create(ZONE, P256, FLAGS_KSK)
  const all = (await leader.load()).keys
  const before: FollowedKeys = { zone: ZONE, state: STATE, keys: [old], removed: new Set() }
  const after: FollowedKeys = {
    ...{ zone: ZONE, state: `${STATE}# newer\n` },
    keys: all.filter(({ id }) => id !== old.id),
    removed: new Set([numberOf(old.id)]),
  }
  const sent = join(temporaryDirectory(t), 'sent')
  fs.writeFileSync(sent, printSharedKeys(after))
  let kills = 0
  for (let step = 1, isRunning = true; isRunning; step++) {
    for (const isAfter of ['0', '1']) {
      const path = temporaryDirectory(t)
      const follow = (keys: FollowedKeys): Promise<boolean> => {
        const parts = { path, clock: systemClock, timers: systemTimers, follows: 'a' }
        return new KeyDirectory(parts).follow(keys)
      }
      await follow(before)
      isRunning = await isKilled(path, 'follow', String(step), isAfter, sent)
      if (isRunning) kills++
      const what = `${isAfter === '0' ? 'before' : 'after'} call ${step}`
      const { keys, faults } = await openKeys(path).load()
      t.strictSame(faults, [], what)
      const state = (await openKeys(path).readState(ZONE))!
      const needed = state === STATE ? [old] : after.keys
      t.ok(
        needed.every(({ id }) => keys.some((key) => key.id === id && key.privateKey)),
        `${what}: the keys of the state`,
      )
      await follow(after)
      const found = await openKeys(path).load()
      t.strictSame(found.faults, [], what)
      t.strictSame(
        found.keys.map(({ id }) => id),
        after.keys.map(({ id }) => id),
        what,
      )
      t.ok(fs.existsSync(join(path, 'removed', `${old.id}.private`)), `${what}: nothing is deleted`)
    }
  }
  t.ok(kills >= 20, `${kills} processes were killed`)
})
