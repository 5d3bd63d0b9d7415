import { type ChildProcess, spawn } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import { run } from './peer.ts'
import { until } from './until.ts'

export const root = resolve(dirname(fileURLToPath(import.meta.url)), '../..')
const MAIN = join(root, 'dist/main.js')
/** Ample: a machine on which everybody tests at once takes long. */
const START_MS_MAX = 60_000

/** Ports that were given: the system may offer one again before it is used. */
const given = new Set<number>()

/** A port of 127.0.0.1 that is free for UDP and for TCP, so far as one can know before using it; another each time. */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < 20; attempt++) {
    const tcp = createServer().listen(0, '127.0.0.1')
    await once(tcp, 'listening')
    const address = tcp.address()
    const port = typeof address === 'object' && address !== null ? address.port : 0
    const udp = createSocket('udp4')
    const free = await new Promise<boolean>((done) => {
      udp.once('error', () => done(false))
      udp.bind(port, '127.0.0.1', () => done(true))
    })
    udp.close()
    await new Promise((done) => tcp.close(done))
    if (!free || given.has(port)) continue
    given.add(port)
    return port
  }
  throw new Error('no free port in 20 attempts')
}

/** A running `sextant serve`, a process of its own, gone when the test ends. */
export interface RunningServer {
  readonly port: number
  /** Its working directory: relative paths of the Corefile start here. */
  readonly directory: string
  readonly process: ChildProcess
  /** Everything it printed so far, both streams. */
  output(): string
  /** Resolves to the exit code; null where a signal ended it. */
  exited(): Promise<number | null>
}

export interface ServerOptions {
  /** `{PORT}` stands for the port; listens on what it says. */
  readonly corefile: string
  /** Files to lay beside the Corefile: path to content. */
  readonly files?: Readonly<Record<string, string | Uint8Array>>
  readonly args?: readonly string[]
  /** Beside what the test's process has. */
  readonly env?: Readonly<Record<string, string>>
  /** Run in the directory and on the port of this one, with its Corefile. */
  readonly beside?: Pick<RunningServer, 'port' | 'directory'>
  /** A command that starts what follows it, in its own place. */
  readonly wrapper?: readonly string[]
  /** False: don't wait for the start-up lines (a start that must fail). */
  readonly mustStart?: boolean
}

/** Writes files, path to content, and the directories that they are in. */
export function layFiles(directory: string, files: NonNullable<ServerOptions['files']>): void {
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(directory, path)), { recursive: true })
    writeFileSync(join(directory, path), content)
  }
}

/** Starts the built server on 127.0.0.1 and waits until it has printed its start-up lines. */
export async function startServer(t: Test, options: ServerOptions): Promise<RunningServer> {
  if (!existsSync(MAIN)) throw new Error('dist/main.js is missing: run npm run build')
  const port = options.beside?.port ?? (await freePort())
  const directory = options.beside?.directory ?? t.testdir({})
  const corefile = options.corefile.replaceAll('{PORT}', String(port))
  layFiles(directory, { ...options.files, Corefile: corefile })
  const serve = [process.execPath, MAIN, 'serve', '-conf', 'Corefile', ...(options.args ?? [])]
  const [program = '', ...args] = [...(options.wrapper ?? []), ...serve]
  const env = { ...process.env, ...options.env }
  const child = spawn(program, args, {
    cwd: directory,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let printed = ''
  child.stdout.on('data', (chunk) => (printed += String(chunk)))
  child.stderr.on('data', (chunk) => (printed += String(chunk)))
  const exit = once(child, 'exit').then(([code]) => (typeof code === 'number' ? code : null))
  t.teardown(async () => {
    child.kill('SIGKILL')
    await exit
  })
  const server = { port, directory, process: child, output: () => printed, exited: () => exit }
  if (options.mustStart !== false) {
    const started = () => /^Sextant-/m.test(printed) || child.exitCode !== null
    await until(started, 'the start-up lines', START_MS_MAX)
    if (child.exitCode !== null) throw new Error(`server did not start:\n${printed}`)
  }
  return server
}

/** Runs a command of the built program to its end, in `directory`. */
export function runSextant(
  directory: string,
  args: readonly string[],
  timeoutMs?: number,
): ReturnType<typeof run> {
  return run(
    'sh',
    ['-c', 'cd "$0" && exec "$@"', directory, process.execPath, MAIN, ...args],
    timeoutMs,
  )
}
