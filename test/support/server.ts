import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import { freePort } from './free-port.ts'
import { run } from './peer.ts'
import { temporaryDirectory } from './temporary-directory.ts'
import { until } from './until.ts'

export { freePort }

export const root = resolve(dirname(fileURLToPath(import.meta.url)), '../..')
export const MAIN = join(root, 'dist/main.js')
/** Ample, for a machine on which other tests run too. */
const START_MS_MAX = 120_000
/** The end of the output that explains a failure, in characters. */
const PRINTED_MAX = 4000

/** A process that is gone when the test ends. */
export interface RunningProgram {
  readonly process: ChildProcess
  /** Everything it printed so far, both streams. */
  output(): string
  /** Waits until it has printed that: lines are written at the end of a turn, so they may follow the answer that they are about. */
  prints(what: RegExp): Promise<void>
  /** Resolves to the exit code once all it printed is there; null where a signal ended it. */
  exited(): Promise<number | null>
}

/** A running `sextant serve`. */
export interface RunningServer extends RunningProgram {
  readonly port: number
  /** Its working directory: relative paths of the Corefile start here. */
  readonly directory: string
}

export interface ServerOptions {
  /** `{PORT}` stands for the port; listens on what it says. */
  readonly corefile: string
  /** Files to lay beside the Corefile: path to content. */
  readonly files?: Readonly<Record<string, string | Uint8Array>>
  /** The command that serves the Corefile; `serve` if absent. */
  readonly command?: 'serve' | 'node'
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

/** Replaces a file atomically: no reader finds it empty, or half of it. `directory`: not watched. */
export function putFile(directory: string, path: string, content: string | Uint8Array): void {
  writeFileSync(join(directory, '.new'), content)
  renameSync(join(directory, '.new'), join(directory, path))
}

/** Starts the built server on 127.0.0.1 and waits until it has printed its start-up lines. */
export async function startServer(t: Test, options: ServerOptions): Promise<RunningServer> {
  if (!existsSync(MAIN)) throw new Error('dist/main.js is missing: run npm run build')
  const port = options.beside?.port ?? (await freePort())
  const directory = options.beside?.directory ?? temporaryDirectory(t)
  const corefile = options.corefile.replaceAll('{PORT}', String(port))
  layFiles(directory, { ...options.files, Corefile: corefile })
  const { command = 'serve', wrapper = [] } = options
  const serve = [process.execPath, MAIN, command, '-conf', 'Corefile', ...(options.args ?? [])]
  const [program = '', ...args] = [...wrapper, ...serve]
  const env = { ...process.env, ...options.env }
  const started = startProgram(t, [program, ...args], { directory, env })
  if (options.mustStart !== false) await started.prints(/^Sextant-/m)
  return { ...started, port, directory }
}

/** Starts a program, which is gone when the test ends. */
export function startProgram(
  t: Test,
  [program, ...args]: readonly [string, ...string[]],
  { directory, env = process.env }: { directory?: string; env?: NodeJS.ProcessEnv } = {},
): RunningProgram {
  const child = spawn(program, args, {
    cwd: directory,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let printed = ''
  child.stdout.on('data', (chunk) => (printed += String(chunk)))
  child.stderr.on('data', (chunk) => (printed += String(chunk)))
  let isOver = false
  // Not 'exit': what it printed may come later than that.
  const exit = once(child, 'close').then(([code]) => {
    isOver = true
    return typeof code === 'number' ? code : null
  })
  t.teardown(async () => {
    child.kill('SIGKILL')
    await exit
  })
  const prints = async (what: RegExp): Promise<void> => {
    const isDone = () => what.test(printed) || isOver
    // What it printed instead explains a failure on a machine that cannot be looked at.
    await until(isDone, String(what), START_MS_MAX).catch((error: Error) => {
      throw new Error(`${error.message}; it printed:\n${printed.slice(-PRINTED_MAX)}`)
    })
    if (!what.test(printed)) throw new Error(`it ended without ${what}:\n${printed}`)
  }
  return { process: child, output: () => printed, prints, exited: () => exit }
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
