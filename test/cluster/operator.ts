import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { getText } from '../support/get-text.ts'
import { freePort, root } from '../support/server.ts'
import { until } from '../support/until.ts'

const MAIN = join(root, 'dist/main.js')
/** Ample, for a machine on which other tests run too. */
const START_MS_MAX = 120_000

const REST_MS_MAX = 120_000

export interface OperatorOptions {
  readonly kubeconfig: string
  readonly args?: readonly string[]
  /** False: don't wait until it has read the cluster. */
  readonly mustStart?: boolean
}

/** A running `sextant operator`, a process of its own, gone when the test ends. */
export class RunningOperator {
  readonly #metrics: number
  readonly #probes: number
  readonly #child
  readonly #exit: Promise<number | null>
  #printed = ''

  private constructor(metrics: number, probes: number, args: readonly string[]) {
    this.#metrics = metrics
    this.#probes = probes
    const addresses = [
      `--metrics-bind-address=127.0.0.1:${metrics}`,
      `--health-probe-bind-address=127.0.0.1:${probes}`,
    ]
    this.#child = spawn(process.execPath, [MAIN, 'operator', ...addresses, ...args], {
      // A flag would be refused where no controller reads it.
      env: { ...process.env, NAMESERVER_ALLOW: '127.0.0.0/8' },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const take = (chunk: Buffer): void => {
      this.#printed += String(chunk)
    }
    this.#child.stdout.on('data', take)
    this.#child.stderr.on('data', take)
    this.#exit = once(this.#child, 'close').then(([code]) =>
      typeof code === 'number' ? code : null,
    )
  }

  static async start(t: Test, options: OperatorOptions): Promise<RunningOperator> {
    if (!existsSync(MAIN)) throw new Error('dist/main.js is missing: run npm run build')
    const args = [`--kubeconfig=${options.kubeconfig}`, ...(options.args ?? [])]
    const operator = new RunningOperator(await freePort(), await freePort(), args)
    t.teardown(() => operator.kill())
    if (options.mustStart === false) return operator
    const isReady = async () => operator.isOver || (await operator.ready()).status === 200
    await until(isReady, 'the operator', START_MS_MAX).catch((error: Error) => {
      throw new Error(`${error.message}:\n${operator.output}`)
    })
    if (operator.isOver) throw new Error(`the operator did not start:\n${operator.output}`)
    return operator
  }

  get output(): string {
    return this.#printed
  }

  get metricsAddress(): string {
    return `127.0.0.1:${this.#metrics}`
  }

  /** Waits until it has printed that: what it wrote to the API may be seen before what it says of it. */
  async prints(want: RegExp): Promise<void> {
    await until(() => want.test(this.#printed), `the operator to print ${want}`).catch(
      (error: Error) => {
        throw new Error(`${error.message}:\n${this.#printed}`)
      },
    )
  }

  /** True if its process has ended. */
  get isOver(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null
  }

  /** The ready page; status 0 = no server listens. */
  async ready(): Promise<{ readonly status: number; readonly text: string }> {
    try {
      return await getText(`http://127.0.0.1:${this.#probes}/readyz`)
    } catch {
      return { status: 0, text: '' }
    }
  }

  /** The value of a series: its name with all of its labels. */
  async metric(series: string): Promise<number | undefined> {
    const { text } = await getText(`http://127.0.0.1:${this.#metrics}/metrics`)
    const start = series.endsWith('}') ? series.slice(0, -1) : series
    const starts = (one: string): boolean =>
      one.startsWith(start) && /^[ },]/.test(one.slice(start.length))
    const line = text.split('\n').find(starts)
    return line === undefined ? undefined : Number(line.slice(line.lastIndexOf(' ') + 1))
  }

  /**
   * Waits until it has nothing to do and writes nothing. It must have begun with the last that is to be done: what it has yet
   * to hear of it knows nothing of. `versions`: of all that it may write to.
   */
  async rests(versions: () => Promise<readonly string[]>): Promise<void> {
    const isAtRest = async () => {
      const before = (await versions()).join()
      const series = ['depth', 'running'].map((name) => `sextant_operator_queue_${name}`)
      const counts = await Promise.all(series.map((name) => this.metric(name)))
      return counts.every((count) => count === 0) && (await versions()).join() === before
    }
    await until(isAtRest, 'the operator to rest', REST_MS_MAX).catch((error: Error) => {
      throw new Error(`${error.message}:\n${this.#printed}`)
    })
  }

  /** Ends it as Kubernetes does; resolves to the exit code. */
  async stop(): Promise<number | null> {
    this.#child.kill('SIGTERM')
    return this.#exit
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.#exit
  }
}
