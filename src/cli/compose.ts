import { randomInt } from 'node:crypto'
import { systemClock } from '../base/clock.ts'
import { InputError } from '../base/errors.ts'
import { describeMemory } from '../base/memory-limit.ts'
import { Random } from '../base/random.ts'
import { type LineBuffer, printLine } from '../base/telemetry/lines.ts'
import { createLogger, type Logger, type LogSink } from '../base/telemetry/log.ts'
import { MetricsRegistry } from '../base/telemetry/metrics.ts'
import { systemTimers } from '../base/timers.ts'
import { CookieJar } from '../dns/edns/cookie.ts'
import { CookieSecrets } from '../dns/edns/cookie-secrets.ts'
import { DIRECTIVE_NAMES, loadDirectives } from '../plugins/order.ts'
import { declaredNames } from '../plugins/plugin/declared.ts'
import { ServerCounts, ServerTotals } from '../server/counters.ts'
import { type DnsDriver, openDnsListener } from '../server/dns-listener.ts'
import type { ListenPlan } from '../server/listen-plan.ts'
import type { HttpRoute } from '../server/setup.ts'
import type { DataChange, DnsListener, SupervisorParts } from '../server/supervisor.ts'
import type { ServedScheme } from '../transport/driver.ts'
import { createTcpCounters } from '../transport/tcp-counters.ts'
import { tcpDriver } from '../transport/tcp-driver.ts'
import { followCookieSecrets, rotateCookieSecrets } from './cookie-secrets.ts'
import { releaseMemoryAfterFloods } from './memory-release.ts'
import { UdpService } from './udp-service.ts'

/** The transports of each scheme. */
type DnsDrivers = Readonly<Record<ServedScheme, readonly DnsDriver[]>>

interface ComposeOptions {
  /** Another process, which is about to end, serves the addresses. */
  readonly takesOver?: boolean
  /** File with the secrets of cookies; absent = a random one that changes. */
  readonly cookieSecrets?: string | undefined
  /** UDP queries that waited longer are dropped; 0 = none is. */
  readonly maxQueryAgeMs?: number
}

/** Builds the process: this module connects parts that know each other only by interface. */
export function composeParts(
  dnsPort: number,
  lines: LineBuffer,
  { takesOver = false, cookieSecrets: file, maxQueryAgeMs = 0 }: ComposeOptions = {},
): SupervisorParts {
  const sink: LogSink = (line) => printLine(lines, line)
  const log = createLogger('', sink, () => false)
  const counters = new ServerCounts()
  const totals = new ServerTotals(counters)
  const secrets = new CookieSecrets()
  if (file === undefined) rotateCookieSecrets(secrets, systemTimers)
  else followCookieSecrets(secrets, file, { timers: systemTimers, log })
  const cookieSecrets = secrets.memory
  const tcpCounters = createTcpCounters()
  totals.includeLosses(() => ({ lines: lines.dropped }))
  const parts = { dnsPort, lines, cookieSecrets, counts: counters, totals, log }
  const udp = new UdpService({ ...parts, takesOver, maxQueryAgeMs })
  const drivers: DnsDrivers = {
    dns: [udp, tcpDriver(tcpCounters, () => udp.reusePortBinder)],
  }
  includeLosses(totals, drivers)
  const shared = {
    clock: systemClock,
    random: new Random(randomInt(2 ** 32)),
    cookies: new CookieJar(secrets),
    counters,
    log,
  }
  let announced = false
  const openDns = async (plan: ListenPlan): Promise<DnsListener> => {
    const listener = await openDnsListener(plan, { ...shared, drivers: drivers[plan.scheme] })
    // Only once a socket is open: a start that fails prints only its reason.
    if (!announced) {
      log.info(`udp: ${udp.description}`, 'udp-opened')
      log.info(`memory: ${describeMemory()}`, 'memory-limit')
      releaseMemoryAfterFloods(tcpCounters, systemClock, log)
    }
    announced = true
    return listener
  }
  return {
    loadDirectives,
    directiveNames: DIRECTIVE_NAMES,
    declaredNames,
    dnsPort,
    env: process.env,
    clock: systemClock,
    timers: systemTimers,
    random: Math.random,
    metrics: new MetricsRegistry(),
    serverCounters: totals,
    sink,
    lines,
    openDns,
    // Few servers explain answers, and it has many modules.
    openExplainer: async (instance) => {
      const { openAnswerExplainer } = await import('../explain/answer-explainer.ts')
      return openAnswerExplainer(instance)
    },
    dataThreads: {
      prepare: async (instance, channel) => {
        udp.choose()
        return (await udp.plane?.prepare(instance, channel)) ?? NO_CHANGE
      },
      close: async () => udp.plane?.close(),
    },
    ...httpOpeners(udp, log),
  }
}

/** `status` prints the losses in this order. */
function includeLosses(totals: ServerTotals, drivers: DnsDrivers): void {
  for (const { losses } of Object.values(drivers).flat().toReversed())
    if (losses !== undefined) totals.includeLosses(losses)
}

/** Not every Corefile needs HTTP, and it has many modules. */
function httpOpeners(
  udp: UdpService,
  log: Logger,
): Pick<SupervisorParts, 'openHttp' | 'openAdmin'> {
  return {
    openHttp: async (address, routes) => {
      const onError = (path: string, error: unknown): void => {
        log.error(
          `HTTP ${address}${path}: ${error instanceof Error ? error.stack : error}`,
          'http-request-failed',
        )
      }
      const { openHttp } = await import('../api/http.ts')
      try {
        return await openHttp({ address, routes, onError, reusePortBinder: udp.reusePortBinder })
      } catch (error) {
        throw httpFault(address, routes[0], error)
      }
    },
    openAdmin: async (_, site) => {
      const { openAdmin } = await import('../api/admin/open-admin.ts')
      const { address, position } = site
      try {
        return await openAdmin(site, udp.reusePortBinder)
      } catch (error) {
        if (error instanceof InputError) throw new InputError(position, error.message, error)
        throw httpFault(address, { directive: 'admin', position }, error)
      }
    },
  }
}

/** If this thread serves UDP too, there is no other thread to change. */
const NO_CHANGE: DataChange = { commit: async () => {}, abandon: () => {} }

/**
 * Returns an error that names the HTTP address that failed, the reason, and the directive that
 * asked for it.
 */
function httpFault(
  address: string,
  asked: Pick<HttpRoute, 'directive' | 'position'> | undefined,
  cause: unknown,
): InputError {
  const inUse = (cause as NodeJS.ErrnoException).code === 'EADDRINUSE'
  const message = cause instanceof Error ? cause.message : String(cause)
  const reason = inUse ? 'address already in use' : message
  const text = `listen tcp ${address}: ${reason} (asked for by ${asked?.directive ?? 'an unknown directive'})`
  return new InputError(asked?.position, text, cause)
}
