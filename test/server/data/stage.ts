import { Worker } from 'node:worker_threads'
import type { Test } from 'tap'
import { type Clock, systemClock } from '../../../src/base/clock.ts'
import { Random } from '../../../src/base/random.ts'
import { printLine } from '../../../src/base/telemetry/lines.ts'
import { createLogger } from '../../../src/base/telemetry/log.ts'
import { MetricsRegistry } from '../../../src/base/telemetry/metrics.ts'
import { systemTimers } from '../../../src/base/timers.ts'
import { CookieJar } from '../../../src/dns/edns/cookie.ts'
import { CookieSecrets } from '../../../src/dns/edns/cookie-secrets.ts'
import { ServerCounts, ServerTotals } from '../../../src/server/counters.ts'
import { DataPlane } from '../../../src/server/data/data-plane.ts'
import { openDnsListener } from '../../../src/server/dns-listener.ts'
import type { HttpRoute } from '../../../src/server/setup.ts'
import { Supervisor } from '../../../src/server/supervisor.ts'
import { tcpDriver } from '../../../src/transport/tcp-driver.ts'
import { loadLibc } from '../../../src/transport/udp/batch/libc.ts'
import { dgramDriver } from '../../../src/transport/udp/dgram.ts'
import { lineBufferTo } from '../../support/line-buffer.ts'
import { freePort } from '../../support/server.ts'
import { WITH_LATER } from './later.ts'

/** A server in this process, with the directive `later`. */
export interface Stage {
  readonly port: number
  readonly lines: readonly string[]
  readonly totals: ServerTotals
  metrics(): Promise<string>
  stop(): Promise<void>
}

/** Serves `corefile` ({PORT}: where) over data threads (`batch`) or over node:dgram. `clock`: of directives. */
export async function serve(
  t: Test,
  udp: 'batch' | 'dgram',
  corefile: string,
  port?: number,
  clock: Clock = systemClock,
): Promise<Stage> {
  const dnsPort = port ?? (await freePort())
  const lines: string[] = []
  const buffer = lineBufferTo(lines)
  const sink = (line: string): void => printLine(buffer, line)
  const log = createLogger('', sink, () => false)
  const counters = new ServerCounts()
  const totals = new ServerTotals(counters)
  const cookieSecrets = CookieSecrets.of(new Uint8Array(16))
  const plane = new DataPlane({
    libc: loadLibc(),
    start: (init, messages) =>
      new Worker(new URL('./later-thread.ts', import.meta.url), {
        workerData: { init, port: messages },
        transferList: [messages],
      }),
    groupsReplies: true,
    maxQueryAgeMs: 200,
    socketsDefault: 2,
    dnsPort,
    cookieSecrets: cookieSecrets.memory,
    totals,
    counts: counters,
    lines: buffer,
    log,
    timers: systemTimers,
    takesOver: false,
  })
  const shared = {
    clock: systemClock,
    random: new Random(1),
    cookies: new CookieJar(cookieSecrets),
    counters,
    log,
    drivers: [udp === 'batch' ? plane : dgramDriver(), tcpDriver()],
  }
  let routes: readonly HttpRoute[] = []
  const supervisor = new Supervisor(
    { kind: 'text', name: 'Corefile', text: corefile.replaceAll('{PORT}', String(dnsPort)) },
    {
      ...WITH_LATER,
      dnsPort,
      env: {},
      clock,
      timers: systemTimers,
      random: Math.random,
      metrics: new MetricsRegistry(),
      serverCounters: totals,
      sink,
      lines: buffer,
      openDns: (plan) => openDnsListener(plan, shared),
      openHttp: async (_, opened) => {
        routes = opened
        return { use: () => {}, close: async () => {} }
      },
      openAdmin: () => Promise.reject(new Error('no admin API here')),
      dataThreads: udp === 'batch' ? plane : undefined,
    },
  )
  const stop = async (): Promise<void> => {
    await supervisor.stop()
  }
  t.teardown(stop)
  await supervisor.start()
  const metrics = async (): Promise<string> => {
    return (await routes[0]!.reply(new URLSearchParams(), '')).body
  }
  return { port: dnsPort, lines, totals, metrics, stop }
}
