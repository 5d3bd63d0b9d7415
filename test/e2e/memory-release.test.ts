import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import type { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { startServer } from '../support/server.ts'
import { until } from '../support/until.ts'
import { ATTACKS, type AttackPlan } from './tcp-attack.ts'

// Long: it loads and releases large zones.

const SCRIPT = fileURLToPath(new URL('./tcp-attack.ts', import.meta.url))
const HOOKS = new URL('../support/typescript-hooks.mjs', import.meta.url)
/** Loads TypeScript without tap, which would end a process after 30 s. */
const LOADER = `data:text/javascript,import{register}from"node:module";register("${HOOKS.href}")`
const ATTACK_MS_MAX = 300_000
const GROWTH_MS_MAX = 20_000
/** More than the flood that memory is released after has, with the files that are open anyway. */
const DESCRIPTORS = 600
/** Several of the looks that the server takes, one a second. */
const SEEN_MS = 5000
t.setTimeout(900_000)

const ZONE = [
  '$ORIGIN z.example.\n$TTL 300',
  '@ SOA ns hostmaster 1 3600 600 86400 300',
  '@ NS ns\nns A 192.0.2.53',
  `long TXT ${`"${'x'.repeat(200)}" `.repeat(5)}`,
  ...Array.from({ length: 30_000 }, (_, i) => `host-${i} A 192.0.2.1`),
].join('\n')
const COREFILE = `z.example:{PORT} {
    bind 127.0.0.1
    file zone
    transfer {
        to *
    }
}
`

/** Without the pages of files: how many of those are resident depends on what else the system reads. */
function readResidentMib(pid: number): number {
  return Number(/^RssAnon:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024
}

function startClients(plan: AttackPlan): ChildProcessByStdio<null, Readable, null> {
  const command = ['--import', LOADER, SCRIPT, JSON.stringify(plan)]
  return spawn(process.execPath, command, { stdio: ['ignore', 'pipe', 'inherit'] })
}

const skip = process.platform === 'linux' ? false : 'reads /proc'
t.test('memory returns to within 30 % after a flood over TCP', { skip }, async (t) => {
  const server = await startServer(t, { corefile: COREFILE, files: { zone: ZONE } })
  const resident = () => readResidentMib(server.process.pid!)
  const from = Array.from({ length: 30 }, (_, i) => `127.${i + 1}.0.1`)
  // The code that answers over TCP is compiled, and its buffers exist, before any flood.
  await once(startClients({ port: server.port, kinds: [], from, each: 20 }), 'close')
  const before = resident()
  const attack = startClients({ port: server.port, kinds: ATTACKS, from, each: 74 })
  t.teardown(() => attack.kill('SIGKILL'))
  let output = ''
  attack.stdout.on('data', (chunk) => (output += String(chunk)))
  await until(() => output.includes('ready'), 'the attack', ATTACK_MS_MAX)
  const descriptors = () => readdirSync(`/proc/${server.process.pid}/fd`).length
  let fewMs = performance.now()
  const isFlood = (): boolean => {
    if (descriptors() < DESCRIPTORS) fewMs = performance.now()
    return performance.now() - fewMs > SEEN_MS
  }
  await until(isFlood, `${DESCRIPTORS} descriptors for ${SEEN_MS} ms`, ATTACK_MS_MAX)
  // How much V8 lets the heap grow is its own affair: a flood that costs little is no failure.
  const endMs = performance.now() + GROWTH_MS_MAX
  await until(() => resident() > 1.6 * before || performance.now() > endMs, 'growth')
  const most = resident()
  const ended = once(attack, 'close')
  attack.kill('SIGKILL')
  await ended
  await server.prints(/memory: resident memory reduced from/).catch((error: Error) => {
    throw new Error(`${descriptors()} descriptors are open: ${error.message}`)
  })
  const figures = () =>
    `MiB before, in and after the flood: ${[before, most, resident()].map(Math.round).join(', ')}`
  await until(() => resident() <= 1.3 * before, 'memory as before').catch((error: Error) => {
    throw new Error(`${error.message}; ${figures()}; the server printed:\n${server.output()}`)
  })
  t.comment(figures())
})
