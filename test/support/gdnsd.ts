import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { freePort } from './free-port.ts'
import { layFiles } from './server.ts'
import { temporaryDirectory } from './temporary-directory.ts'
import { until } from './until.ts'

export interface Gdnsd {
  /** Its configuration; `{PORT}` and `{DIR}` stand for its port and its directory. */
  readonly config: string
  /** Contents of the zone k.example.com. */
  readonly zone: string
  /** Lines of `admin_state`. */
  readonly states?: readonly string[]
}

/** Starts gdnsd for the zone k.example.com on loopback; returns its port. */
export async function startGdnsd(t: Test, { config, zone, states = [] }: Gdnsd): Promise<number> {
  const port = await freePort()
  const directory = temporaryDirectory(t)
  for (const folder of ['run', 'state', 'geoip']) mkdirSync(join(directory, folder))
  layFiles(directory, {
    config: config.replaceAll('{PORT}', String(port)).replaceAll('{DIR}', directory),
    'zones/k.example.com': zone,
    ...(states.length === 0 ? {} : { 'state/admin_state': states.join('\n') }),
  })
  const ready = [
    'DNS listeners started',
    ...(states.length === 0 ? [] : ['admin_state: load complete']),
  ]
  const child = spawn('gdnsd', ['-c', directory, 'start'], { stdio: ['ignore', 'pipe', 'pipe'] })
  let printed = ''
  child.stdout.on('data', (chunk) => (printed += String(chunk)))
  child.stderr.on('data', (chunk) => (printed += String(chunk)))
  const exit = once(child, 'exit')
  t.teardown(async () => {
    child.kill('SIGKILL')
    await exit
  })
  await until(() => {
    if (child.exitCode !== null) throw new Error(`gdnsd did not start:\n${printed}`)
    return ready.every((line) => printed.includes(line))
  }, 'gdnsd to be ready')
  return port
}
