import { Worker } from 'node:worker_threads'
import type { Test } from 'tap'
import { systemClock } from '../../src/base/clock.ts'
import { Random } from '../../src/base/random.ts'
import type { LineBuffer } from '../../src/base/telemetry/lines.ts'
import { createLogger } from '../../src/base/telemetry/log.ts'
import { MetricsRegistry } from '../../src/base/telemetry/metrics.ts'
import { systemTimers, type Timers } from '../../src/base/timers.ts'
import { CookieJar } from '../../src/dns/edns/cookie.ts'
import { CookieSecrets } from '../../src/dns/edns/cookie-secrets.ts'
import type { Directive } from '../../src/plugin/directive.ts'
import type { CorefileSource } from '../../src/server/corefile-source.ts'
import { ServerCounts, ServerTotals } from '../../src/server/counters.ts'
import { DataPlane } from '../../src/server/data/data-plane.ts'
import type { StartThread } from '../../src/server/data/thread-handle.ts'
import { openDnsListener } from '../../src/server/dns-listener.ts'
import { Supervisor } from '../../src/server/supervisor.ts'
import { tcpDriver } from '../../src/transport/tcp-driver.ts'
import { loadLibc } from '../../src/transport/udp/batch/libc.ts'
import { lineBufferTo } from './line-buffer.ts'

export interface DataServerOptions {
  /** URL of a module that exports DIRECTIVES, and what it exports. */
  readonly module: URL
  readonly directives: readonly Directive[]
  readonly corefile: CorefileSource
  readonly threads: number
  /** Default: those of the process. */
  readonly timers?: Timers
  /** Where lines of queries go; default: with all others. */
  readonly queryLines?: LineBuffer
}

/** A server in this process whose UDP is served by data threads; it stops when the test ends. */
export class DataServer {
  readonly plane: DataPlane
  readonly supervisor: Supervisor
  readonly totals: ServerTotals
  readonly metrics = new MetricsRegistry()
  /** Every line that was logged, by any thread. */
  readonly lines: string[] = []
  /** Those that run, in the order of their start. */
  readonly workers: Worker[] = []

  constructor(t: Test, options: DataServerOptions) {
    const { module, directives, corefile, threads, timers = systemTimers } = options
    const sink = (line: string): void => {
      this.lines.push(line)
    }
    const [counts, log] = [new ServerCounts(), createLogger('', sink, () => false)]
    const lines = options.queryLines ?? lineBufferTo(this.lines)
    this.totals = new ServerTotals(counts)
    const start: StartThread = (init, port) => {
      const worker = new Worker(new URL('./data-worker.ts', import.meta.url), {
        workerData: { init, port, directives: module.href },
        transferList: [port],
      })
      this.workers.push(worker)
      return worker
    }
    const cookieSecrets = CookieSecrets.of(new Uint8Array(16))
    this.plane = new DataPlane({
      libc: loadLibc(),
      start,
      socketsDefault: threads,
      dnsPort: 53,
      cookieSecrets: cookieSecrets.memory,
      groupsReplies: true,
      maxQueryAgeMs: 200,
      totals: this.totals,
      counts,
      lines,
      log,
      timers,
      takesOver: false,
    })
    const cookies = new CookieJar(cookieSecrets)
    const shared = { clock: systemClock, random: new Random(1), log, counters: counts, cookies }
    this.supervisor = new Supervisor(corefile, {
      loadDirectives: async () => directives,
      directiveNames: directives.map(({ name }) => name),
      dnsPort: 53,
      env: {},
      clock: systemClock,
      timers: systemTimers,
      random: Math.random,
      metrics: this.metrics,
      serverCounters: this.totals,
      sink,
      lines,
      openDns: (plan) =>
        openDnsListener(plan, {
          ...shared,
          drivers: [this.plane, tcpDriver()],
        }),
      openHttp: () => Promise.reject(new Error('no HTTP here')),
      openAdmin: () => Promise.reject(new Error('no admin API here')),
      dataThreads: this.plane,
    })
    t.teardown(() => this.supervisor.stop())
  }

  /** Starts serving; returns the port. */
  async start(): Promise<number> {
    await this.supervisor.start()
    return this.supervisor.plans[0]!.port
  }
}
