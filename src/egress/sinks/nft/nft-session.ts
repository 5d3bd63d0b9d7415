import {
  type ChildProcessByStdio,
  type ExecFileException,
  execFile,
  spawn,
} from 'node:child_process'
import type { Readable, Writable } from 'node:stream'

/** A command without side effects, and the start of its output. It shows that what came before it has ended. */
const MARK = 'describe ipv4_addr'
const MARK_OUTPUT = 'datatype ipv4_addr ('
/** Text of an error that callers get. nft repeats the transaction, which may be long. */
const FAULT_LENGTH = 300
/** More than the elements that an agent may have. */
const OUTPUT_MAX = 256 * 1024 * 1024
/** nft reads and writes a history of its commands in this folder: in none, because it would grow without limit. */
const NO_HOME = '/dev/null'

interface NftSessionOptions {
  /** The program and its first arguments; `['nft']` unless a test needs another. */
  readonly command: readonly string[]
  /** Called when the process has ended, with the reason. No transaction succeeds after that. */
  readonly onEnd: (reason: string) => void
}

interface Job {
  readonly finish: (output: string) => void
  readonly fail: (reason: string) => void
}

/**
 * One long-lived process of nft(8). Each line that it gets is one transaction: all of it is in force,
 * or nothing. A transaction takes less than a millisecond, where a process of its own takes several.
 */
export class NftSession {
  readonly #process: ChildProcessByStdio<Writable, Readable, null>
  readonly #jobs: Job[] = []
  readonly #ended: Promise<void>
  #output = ''
  #fault = ''
  /** Commands that it has got. nft gets slower with each of them. */
  commands = 0

  constructor({ command, onEnd }: NftSessionOptions) {
    // One stream for output and errors, so that they stay in order.
    const args = ['-c', 'exec "$@" -i 2>&1', 'sh', ...command]
    const env = { ...process.env, HOME: NO_HOME }
    const child = spawn('sh', args, { stdio: ['pipe', 'pipe', 'inherit'], env })
    this.#process = child
    child.stdout.setEncoding('utf8')
    child.stdout.on('data', (text: string) => this.#read(text))
    // Writing to a process that has ended: `close` says why.
    child.stdin.on('error', () => {})
    const end = (reason: string): void => {
      if (this.#fault !== '') return
      this.#fault = reason
      for (const job of this.#jobs.splice(0)) job.fail(reason)
      onEnd(reason)
    }
    child.on('error', ({ message }) => end(message))
    this.#ended = new Promise((resolve) => {
      child.on('close', (code, signal) => {
        const left = firstLine(this.#output)
        const how = `nft ended with ${signal ?? `exit code ${code}`}`
        end(left === '' ? how : `${how}: ${left}`)
        resolve()
      })
    })
  }

  /**
   * Runs statements as one transaction. Resolves with '' once it is in force, otherwise with the reason why
   * nothing of it is. Each statement is one line of nft's language.
   */
  async commit(statements: readonly string[]): Promise<string> {
    if (statements.length === 0) return ''
    try {
      return faultOf(await this.#run(statements.join('; ')))
    } catch (error) {
      return error instanceof NftEndError ? error.message : String(error)
    }
  }

  /** Returns the output of a command such as `list set`. Throws an Error with nft's message. */
  async list(command: string): Promise<string> {
    const output = await this.#run(command)
    const fault = faultOf(output)
    if (fault !== '') throw new Error(fault)
    return output
  }

  /** Ends the process after the transactions that it has got. Resolves when it has ended. */
  close(): Promise<void> {
    this.#process.stdin.end()
    return this.#ended
  }

  /** Ends the process at once. */
  kill(): void {
    this.#process.kill('SIGKILL')
  }

  #run(line: string): Promise<string> {
    return new Promise((resolve, reject) => {
      if (this.#fault !== '') {
        reject(new NftEndError(this.#fault))
        return
      }
      this.commands++
      this.#jobs.push({ finish: resolve, fail: (reason) => reject(new NftEndError(reason)) })
      this.#process.stdin.write(`${line}\n${MARK}\n`)
    })
  }

  #read(text: string): void {
    this.#output += text
    for (;;) {
      const at = this.#output.indexOf(MARK_OUTPUT)
      const end = at < 0 ? -1 : this.#output.indexOf('\n', at)
      if (end < 0) return
      const output = this.#output.slice(0, at)
      this.#output = this.#output.slice(end + 1)
      this.#jobs.shift()?.finish(output)
    }
  }
}

interface NftRun {
  readonly command: readonly string[]
  readonly args: readonly string[]
  /** For its standard input. */
  readonly input: string
  /** It is ended after so long. */
  readonly timeoutMs: number
}

/**
 * Runs nft once. Its start takes some milliseconds, but it reads a long transaction many times faster than a
 * session. Returns its output, and what went wrong; '' = nothing.
 */
export function runNft({
  command,
  args,
  input,
  timeoutMs,
}: NftRun): Promise<{ readonly output: string; readonly fault: string }> {
  return new Promise((resolve) => {
    const [program = '', ...first] = command
    const options = { timeout: timeoutMs, killSignal: 'SIGKILL', maxBuffer: OUTPUT_MAX } as const
    const child = execFile(program, [...first, ...args], options, (error, stdout, stderr) => {
      resolve({ output: stdout, fault: error === null ? '' : faultOf(stderr) || reasonOf(error) })
    })
    child.stdin?.on('error', () => {})
    child.stdin?.end(input)
  })
}

class NftEndError extends Error {}

/** Returns the message of the first error in the output of nft, or '' if it has no error. */
function faultOf(output: string): string {
  const at = output.indexOf('Error: ')
  return at < 0 ? '' : firstLine(output.slice(at))
}

/** Why a process ended without a message of its own. */
function reasonOf({ killed, message }: ExecFileException): string {
  return killed === true ? 'nft took too long' : firstLine(message)
}

function firstLine(text: string): string {
  return text.trim().split('\n', 1)[0]!.slice(0, FAULT_LENGTH)
}
