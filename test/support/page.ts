import { type ChildProcess, spawn } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Test } from 'tap'
import { getText } from './get-text.ts'
import { run } from './peer.ts'
import { freePort, root, runSextant } from './server.ts'
import { until } from './until.ts'

/** A fenced block of a page: its language, the file that it names, if any, and its text. */
export interface Fence {
  readonly language: string
  readonly file: string
  readonly text: string
}

/** A command of a `console` block with the output that the page shows for it. */
export interface Step {
  readonly command: string
  readonly want: readonly string[]
}

const MAIN = join(root, 'dist/main.js')
/** Commands of `sextant` that run until a signal ends them. */
const LASTING = ['serve', 'operator']
/** Ports as pages write them; each run has free ones instead. */
const PORTS = ['1053', '1054', '9153', '9154', '8181', '8182', '8080']

/** The fenced blocks of a page, in its order. */
export function scanFences(page: string): Fence[] {
  const found = page.matchAll(/^```(\w+) ?(\S*)\n([\s\S]*?)^```$/gm)
  return [...found].map(([, language = '', file = '', text = '']) => ({ language, file, text }))
}

/** The commands of a `console` block. */
export function scanSteps(text: string): Step[] {
  return text
    .split(/^\$ /m)
    .slice(1)
    .map((part) => {
      const [command = '', ...want] = part.trimEnd().split('\n')
      return { command, want }
    })
}

/** True if the lines agree; `…` stands for anything within a line, and alone for any lines. */
export function agrees(want: readonly string[], got: readonly string[]): boolean {
  const [first, ...rest] = want
  if (first === undefined) return got.length === 0
  if (first === '…') {
    return Array.from({ length: got.length + 1 }, (_, i) => i).some((i) =>
      agrees(rest, got.slice(i)),
    )
  }
  const [line, ...others] = got
  return line !== undefined && lineAgrees(first, line) && agrees(rest, others)
}

function lineAgrees(want: string, got: string): boolean {
  const parts = want.split('…').map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  return new RegExp(`^${parts.join('.*')}$`).test(got)
}

/** Lines as they are compared: blanks made one, empty ones left out. */
export function lines(text: string): string[] {
  return text
    .split('\n')
    .map((line) => line.trim().replace(/\s+/g, ' '))
    .filter((line) => line !== '')
}

/** Lives through one page: files are laid, commands run, outputs compared, in the order of the page. */
export class PageRun {
  readonly #t: Test
  readonly #directory: string
  readonly #ports = new Map<string, string>()
  /** The servers that the page has started, by their arguments. */
  readonly #servers = new Map<string, { process: ChildProcess; output(): string }>()

  private constructor(t: Test, directory: string) {
    this.#t = t
    this.#directory = directory
    t.teardown(async () => {
      const children = [...this.#servers.values()].map(({ process }) => process)
      for (const child of children) child.kill('SIGKILL')
      // Until then they can write to the directory, which ends with the test.
      await until(() => children.every(hasEnded), 'the servers to end')
    })
  }

  /**
   * Runs the page at `path`, relative to the repository. `directory`: where its commands run, from
   * `temporaryDirectory`; `ports`: what stands for a port of the page, a free one where nothing is said.
   */
  static async run(
    t: Test,
    path: string,
    directory: string,
    ports: Readonly<Record<string, number>> = {},
  ): Promise<void> {
    const page = new PageRun(t, directory)
    for (const port of PORTS) page.#ports.set(port, String(ports[port] ?? (await freePort())))
    for (const fence of scanFences(readFileSync(join(root, path), 'utf8'))) await page.#take(fence)
  }

  /** Puts this run's ports into a text of the page. */
  fit(text: string): string {
    return text.replace(/(: ?|-p |\()(\d{4})\b/g, (all, before: string, port: string) => {
      const fitting = this.#ports.get(port)
      return fitting === undefined ? all : before + fitting
    })
  }

  async #take(fence: Fence): Promise<void> {
    if (fence.file !== '') {
      const path = join(this.#directory, fence.file)
      mkdirSync(dirname(path), { recursive: true })
      writeFileSync(path, this.fit(fence.text))
    } else if (fence.language === 'console') {
      for (const step of scanSteps(fence.text)) await this.#step(step)
    }
  }

  /** A step may have to wait for a watcher: it is repeated until it agrees, within a bound. */
  async #step({ command, want }: Step): Promise<void> {
    const wanted = lines(this.fit(want.join('\n')))
    let got: readonly string[] = []
    const attempt = async (): Promise<boolean> => {
      got = lines(await this.#output(this.fit(command)))
      return agrees(wanted, got)
    }
    await until(attempt, command).catch(() => {})
    this.#t.ok(agrees(wanted, got), command, { wanted, got })
  }

  async #output(command: string): Promise<string> {
    if (command === 'npm start') return this.#start(['serve', '-conf', 'Corefile.example'])
    const [program = '', ...args] = command.split(/\s+/)
    if (program === 'curl') return (await getText(args.at(-1) ?? '')).text
    if (program === 'sextant' && LASTING.includes(args[0] ?? '')) return this.#start(args)
    if (program === 'kill') return this.#kill(command)
    const { stdout, stderr } =
      program === 'sextant' ? await this.#sextant(args) : await this.#shell(command)
    return stdout + stderr
  }

  /** A command whose last words are `> FILE` writes its output to the file. */
  async #sextant(args: readonly string[]): ReturnType<typeof run> {
    const at = args.indexOf('>')
    const result = await runSextant(this.#directory, at < 0 ? args : args.slice(0, at))
    if (at < 0) return result
    writeFileSync(join(this.#directory, args[at + 1] ?? ''), result.stdout)
    return { ...result, stdout: '' }
  }

  #shell(command: string): ReturnType<typeof run> {
    return run('sh', ['-c', `cd "$0" && ${command}`, this.#directory])
  }

  /** Runs a `kill` and waits until a server has ended: the next step may start it again. */
  async #kill(command: string): Promise<string> {
    const running = [...this.#servers.values()].filter(({ process }) => !isStopped(process))
    const { stdout, stderr } = await this.#shell(command)
    await until(() => running.some(({ process }) => isStopped(process)), command)
    return stdout + stderr
  }

  /** Starts a server or an operator, or returns the output of the one that runs with these arguments. */
  async #start(args: readonly string[]): Promise<string> {
    const key = args.join(' ')
    const running = this.#servers.get(key)
    if (running !== undefined && !isStopped(running.process)) return running.output()
    const child = spawn(process.execPath, [MAIN, ...args], { cwd: this.#directory })
    let printed = ''
    child.stdout.on('data', (chunk) => (printed += String(chunk)))
    child.stderr.on('data', (chunk) => (printed += String(chunk)))
    this.#servers.set(key, { process: child, output: () => printed })
    const isUp = (): boolean => /^linux\/|Sextant-\S+ operator$/m.test(printed)
    await until(() => isUp() || hasEnded(child), 'the start-up lines')
    return printed
  }
}

function hasEnded({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null
}

/** True if the page has stopped the server; a server that failed has another exit code. */
function isStopped({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode === 0 || signalCode !== null
}
