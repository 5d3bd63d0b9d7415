import { createRequire, syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import { SILENT_LOG } from '../../../src/base/telemetry/log.ts'
import { NO_METRICS } from '../../../src/base/telemetry/metrics.ts'
import { systemTimers } from '../../../src/base/timers.ts'
import { scanName } from '../../../src/dns/name/name.ts'
import { KeyDirectory } from '../../../src/signing/keys/key-directory.ts'
import { KeyManager, type KeyManagerOptions } from '../../../src/signing/rolls/key-manager.ts'
import { DEFAULT_POLICY } from '../../../src/signing/rolls/policy.ts'
import { scanRollState } from '../../../src/signing/rolls/roll-state.ts'

/**
 * A server that rolls keys until an hour, with a parent that follows its CDS: for `roll-kill.test.ts`. It kills itself
 * at the write with that number; 0 = never. Arguments: directory, hour, number.
 */
const [directory = '', end = '', last = ''] = process.argv.slice(2)
/** The functions that the modules of `src` call, too. */
const fs = createRequire(import.meta.url)('node:fs') as typeof import('node:fs')
const ZONE = scanName('example.org.')!
const START_MS = 1_700_000_000_000
const HOUR_MS = 3_600_000
const WRITES = [
  'openSync',
  'writeFileSync',
  'writeSync',
  'fsyncSync',
  'renameSync',
  'linkSync',
  'symlinkSync',
  'mkdirSync',
  'rmSync',
] as const

const path = join(directory, 'hour')
const journal = join(directory, 'journal')
const read = (): number => (fs.existsSync(path) ? Number(fs.readFileSync(path, 'utf8')) : 0)
const { writeFileSync, renameSync, appendFileSync } = fs

let left = Number(last)
for (const name of WRITES) {
  const original = fs[name] as (...args: unknown[]) => unknown
  Object.assign(fs, {
    [name]: (...args: unknown[]): unknown => {
      if (--left === 0) process.kill(process.pid, 'SIGKILL')
      return original(...args)
    },
  })
}
syncBuiltinESMExports()

for (let hour = read(); hour < Number(end); hour++) {
  let cds: readonly Uint8Array[] = []
  const nowMs = START_MS + hour * HOUR_MS
  const clock = { now: () => nowMs, monotonic: () => performance.now() }
  const store = new KeyDirectory({ path: join(directory, 'keys'), clock, timers: systemTimers })
  const options: KeyManagerOptions = {
    store,
    clock,
    timers: systemTimers,
    log: SILENT_LOG,
    zones: [ZONE],
    policy: DEFAULT_POLICY,
    parents: [{ host: '192.0.2.1', port: 53 }],
    metrics: NO_METRICS,
    askParentDs: async () => ({ rdata: cds, ttlSeconds: 3600 }),
    notifyParent: async () => {},
  }
  const manager = new KeyManager(options)
  await manager.start()
  for (let round = 0; round < 3; round++) {
    const keys = manager.find(ZONE)
    cds = keys?.cds ?? []
    if (keys !== undefined) manager.notePublished(ZONE, keys, 3600)
    await manager.check()
  }
  manager.stop()
  const text = await store.readState(ZONE)
  if (text !== undefined) {
    const { dnskey, signers, ds } = scanRollState(text)
    appendFileSync(journal, `${dnskey.keys}|${signers.keys}|${ds.keys}\n`)
  }
  // One step: the hour is over, or not.
  writeFileSync(`${path}.next`, String(hour + 1))
  renameSync(`${path}.next`, path)
}
