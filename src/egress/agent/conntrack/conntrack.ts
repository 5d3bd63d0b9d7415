import { type ChildProcess, spawn } from 'node:child_process'
import { Backoff } from '../../../base/backoff.ts'
import type { Random } from '../../../base/random.ts'
import type { Logger } from '../../../base/telemetry/log.ts'
import type { Timers } from '../../../base/timers.ts'
import type { Connections, CutResult, Flow, OnFlow } from '../connections.ts'
import { BoundedLines } from './bounded-lines.ts'
import { scanFlow } from './scan-flow.ts'

const LINE_LENGTH_MAX = 4096
/** Of the messages of a process. */
const MESSAGE_LENGTH_MAX = 4096
/** A dump of a million entries takes some seconds. */
const DUMP_MS_MAX = 60_000
/** Room for the events of a burst, in octets. */
const EVENT_BUFFER_OCTETS = 2 * 1024 * 1024
const FAMILIES = ['ipv4', 'ipv6'] as const

interface ConntrackOptions {
  /** The program and its first arguments; `['conntrack']` unless it runs in another namespace. */
  readonly command: readonly string[]
  readonly timers: Timers
  readonly random: Random
  readonly log: Logger
}

/** Numbers since the start. */
interface ConntrackCounts {
  /** Lines without addresses, or longer than any line of conntrack. */
  unknownLines: number
  /** Starts of the process that reports events. */
  watches: number
}

interface Result {
  /** '' = it succeeded. */
  readonly fault: string
  /** Its messages. */
  readonly messages: string
}

/** The connection tracking table of the kernel, by conntrack(8). */
export class Conntrack implements Connections {
  readonly #options: ConntrackOptions
  readonly #backoff: Backoff
  /** Processes that run. */
  readonly #running = new Set<ChildProcess>()
  #isClosed = false
  #eventFault = ''
  #cancelWatch: () => void = () => {}
  readonly counts: ConntrackCounts = { unknownLines: 0, watches: 0 }

  constructor(options: ConntrackOptions) {
    this.#options = options
    this.#backoff = new Backoff(options.random)
  }

  async dump(onFlow: OnFlow): Promise<string> {
    for (const family of FAMILIES) {
      let lines = 0
      const { fault, messages } = await this.#run(['-L', '-f', family], (line) => {
        lines++
        this.#report(line, onFlow)
      })
      if (fault !== '') return fault
      const shown = /(\d+) flow entries have been shown/.exec(messages)?.[1]
      if (shown !== undefined && Number(shown) !== lines) {
        return `conntrack wrote ${lines} of ${shown} entries`
      }
    }
    return ''
  }

  watch(onFlow: OnFlow): void {
    if (this.#isClosed) return
    this.counts.watches++
    const { timers, log } = this.#options
    const args = ['-E', '-e', 'NEW', '-b', String(EVENT_BUFFER_OCTETS)]
    const onLine = (line: string): void => {
      if (this.#eventFault !== '')
        log.info('events of connections are reported again', 'connection-events-recovered')
      this.#eventFault = ''
      this.#backoff.reset()
      this.#report(line, onFlow)
    }
    void this.#run(args, onLine, Number.POSITIVE_INFINITY).then(({ fault }) => {
      if (this.#isClosed) return
      const reason = fault === '' ? 'conntrack ended' : fault
      if (this.#eventFault === '')
        log.warning(`no events of connections: ${reason}`, 'connection-events-missing')
      this.#eventFault = reason
      this.#cancelWatch = timers.after(this.#backoff.next(), () => this.watch(onFlow))
    })
  }

  async cut({ source, destination, protocol, port, target, targetPort }: Flow): Promise<CutResult> {
    const family = source.includes(':') ? 'ipv6' : 'ipv4'
    const args = ['-D', '-f', family, '-s', source, '-d', destination, '-r', target]
    args.push('-p', String(protocol))
    if (port > 0) args.push('--dport', String(port), '--reply-port-src', String(targetPort))
    const { fault, messages } = await this.#run(args, () => {})
    const count = Number(/(\d+) flow entries/.exec(messages)?.[1] ?? 0)
    // It also fails if there are none.
    return { count, fault: messages.includes(' 0 flow entries') ? '' : fault }
  }

  close(): void {
    this.#isClosed = true
    this.#cancelWatch()
    for (const child of this.#running) child.kill()
  }

  #report(line: string, onFlow: OnFlow): void {
    const flow = scanFlow(line)
    if (flow === undefined) this.counts.unknownLines++
    else onFlow(flow)
  }

  /** Runs the program to its end. */
  #run(
    args: readonly string[],
    onLine: (line: string) => void,
    limitMs = DUMP_MS_MAX,
  ): Promise<Result> {
    const { command, timers } = this.#options
    const [program = '', ...first] = command
    return new Promise((resolve) => {
      const splitter = new BoundedLines(LINE_LENGTH_MAX, onLine)
      let messages = ''
      let reason = this.#isClosed ? 'closed' : ''
      if (reason !== '') return resolve({ fault: reason, messages })
      const child = spawn(program, [...first, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
      this.#running.add(child)
      const cancel = Number.isFinite(limitMs)
        ? timers.after(limitMs, () => {
            reason = `conntrack did not end within ${limitMs / 1000} s`
            child.kill('SIGKILL')
          })
        : () => {}
      child.stdout.setEncoding('utf8').on('data', (text: string) => splitter.add(text))
      child.stderr.setEncoding('utf8').on('data', (text: string) => {
        messages = (messages + text).slice(-MESSAGE_LENGTH_MAX)
      })
      child.on('error', (error) => {
        reason = error.message
      })
      child.on('close', (code, signal) => {
        cancel()
        this.#running.delete(child)
        this.counts.unknownLines += splitter.dropped
        const isWhole = splitter.isWhole && splitter.dropped === 0
        if (code === 0 && reason === '' && !isWhole) reason = 'conntrack wrote an incomplete line'
        if (code !== 0 && reason === '') reason = endOf(code, signal, messages)
        resolve({ fault: reason, messages })
      })
    })
  }
}

function endOf(code: number | null, signal: string | null, messages: string): string {
  const [first = ''] = messages.trim().split('\n').slice(-1)
  const how = `conntrack ended with ${signal ?? `exit code ${code}`}`
  return first === '' ? how : `${how}: ${first}`
}
