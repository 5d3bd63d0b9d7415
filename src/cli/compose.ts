import { randomBytes, randomInt } from 'node:crypto'
import { openHttp } from '../api/http.ts'
import { systemClock } from '../base/clock.ts'
import { InputError } from '../base/errors.ts'
import { Random } from '../base/random.ts'
import { CookieJar } from '../dns/edns/cookie.ts'
import { SIPHASH_KEY_OCTETS } from '../dns/edns/siphash.ts'
import { DIRECTIVE_NAMES, DIRECTIVES } from '../plugins/order.ts'
import { ServerCounts } from '../server/counters.ts'
import { openDnsListener } from '../server/dns-listener.ts'
import type { ListenPlan } from '../server/listen-plan.ts'
import type { HttpRoute } from '../server/setup.ts'
import type { DnsListener, SupervisorParts } from '../server/supervisor.ts'
import { createLogger, type LogSink } from '../telemetry/log.ts'
import { MetricsRegistry } from '../telemetry/metrics.ts'
import { type ChosenUdp, chooseUdp } from '../transport/udp/choose.ts'
import type { UdpOptions } from '../transport/udp/udp.ts'

/** Puts the process together: this is where every part meets those that it only knows by interface. */
export function composeParts(dnsPort: number, sink: LogSink): SupervisorParts {
  const log = createLogger('', sink, () => false)
  const counters = new ServerCounts()
  const shared = {
    clock: systemClock,
    random: new Random(randomInt(2 ** 32)),
    cookies: new CookieJar(randomBytes(SIPHASH_KEY_OCTETS)),
    counters,
    log,
    listenUdp: async (options: UdpOptions) => udp().listen(options),
  }
  // Chosen when the first socket is opened: commands that open none load nothing and print nothing.
  let chosen: ChosenUdp | undefined
  const udp = (): ChosenUdp => {
    chosen ??= chooseUdp(process.env.SEXTANT_UDP)
    return chosen
  }
  let announced = false
  const openDns = async (plan: ListenPlan): Promise<DnsListener> => {
    const listener = await openDnsListener(plan, shared)
    // Only once a socket is open: a start that fails says why, and no more.
    if (!announced && chosen !== undefined) log.info(`udp: ${chosen.description}`)
    announced = true
    return listener
  }
  return {
    directives: DIRECTIVES,
    directiveNames: DIRECTIVE_NAMES,
    dnsPort,
    env: process.env,
    clock: systemClock,
    metrics: new MetricsRegistry(),
    serverCounters: counters,
    sink,
    openDns,
    openHttp: async (address, routes) => {
      const onError = (path: string, error: unknown): void => {
        log.error(`HTTP ${address}${path}: ${error instanceof Error ? error.stack : error}`)
      }
      try {
        return await openHttp({ address, routes, onError })
      } catch (error) {
        throw httpFault(address, routes, error)
      }
    },
  }
}

/** Says which HTTP address can't be had, why, and which directive asked for it. */
function httpFault(address: string, routes: readonly HttpRoute[], cause: unknown): InputError {
  const inUse = (cause as NodeJS.ErrnoException).code === 'EADDRINUSE'
  const message = cause instanceof Error ? cause.message : String(cause)
  const reason = inUse ? 'address already in use' : message
  const asked = routes[0]
  const text = `listen tcp ${address}: ${reason} (asked for by ${asked?.directive ?? 'nobody'})`
  return new InputError('LISTEN', asked?.position, text, cause)
}
