import type { Clock } from '../base/clock.ts'
import { InputError } from '../base/errors.ts'
import type { Random } from '../base/random.ts'
import type { CookieJar } from '../dns/edns/cookie.ts'
import { MESSAGE_OCTETS_MAX } from '../dns/message/header.ts'
import type { Logger } from '../telemetry/log.ts'
import type { QueryHandler } from '../transport/exchange.ts'
import type { ReusePortBinder } from '../transport/handover/reuse-port-binder.ts'
import { listenTcp, type TcpListener } from '../transport/tcp.ts'
import type { TcpCounters } from '../transport/tcp-counters.ts'
import { REPLY_OCTETS_MAX, type UdpListener } from '../transport/udp/udp.ts'
import type { ServerCounts } from './counters.ts'
import { ExchangePool } from './exchange-pool.ts'
import type { ListenPlan } from './listen-plan.ts'
import { Server } from './server.ts'
import type { DnsListener } from './supervisor.ts'

/** What the servers of a process have in common, across reloads too. */
interface DnsListenerParts {
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly counters: ServerCounts
  readonly cookies: CookieJar
  /** As `listenDgram`, for the host and port of a plan. */
  readonly listenUdp: (plan: ListenPlan, handler: QueryHandler) => Promise<UdpListener>
  /** Counters of all TCP listeners together. */
  readonly tcpCounters?: TcpCounters
  /** As `TcpOptions.reusePortBinder`; called when a socket is opened. */
  readonly reusePortBinder?: () => ReusePortBinder | undefined
}

/** Attempts to find a port that is free for both UDP and TCP, if any port will do. */
const FREE_PORT_ATTEMPTS = 10

/**
 * Opens UDP and TCP sockets for a plan. Rejects with an InputError that names the key that asked
 * for them.
 */
export async function openDnsListener(
  plan: ListenPlan,
  parts: DnsListenerParts,
): Promise<DnsListener> {
  const [udp, tcp] = await openBoth(plan, parts)
  return {
    port: udp.port,
    use: (next) => {
      udp.setHandler(createHandler(next, parts, REPLY_OCTETS_MAX))
      tcp.setHandler(createHandler(next, parts, MESSAGE_OCTETS_MAX))
      tcp.setLimits(tcpLimits(next))
    },
    close: async () => {
      await Promise.all([udp.close(), tcp.close()])
    },
  }
}

/** Gives each socket its own bound on queries in flight, so that a flood over UDP leaves room for TCP. */
function createHandler(
  plan: ListenPlan,
  parts: DnsListenerParts,
  replyOctets: number,
): ExchangePool {
  const tcpIdleMs = plan.timeouts.idleMs
  const server = new Server({ ...parts, address: plan.address, blocks: plan.blocks, tcpIdleMs })
  return new ExchangePool(server, replyOctets, plan.waitingMax)
}

async function openBoth(
  plan: ListenPlan,
  parts: DnsListenerParts,
): Promise<[UdpListener, TcpListener]> {
  const { listenUdp, tcpCounters, reusePortBinder } = parts
  for (let attempt = 1; ; attempt++) {
    const udp = await listenUdp(plan, createHandler(plan, parts, REPLY_OCTETS_MAX)).catch(
      (error) => {
        throw listenFault('udp', plan, error)
      },
    )
    try {
      const handler = createHandler(plan, parts, MESSAGE_OCTETS_MAX)
      const options = { host: plan.host, port: udp.port, handler, limits: tcpLimits(plan) }
      const shared = { counters: tcpCounters, reusePortBinder: reusePortBinder?.() }
      return [udp, await listenTcp({ ...options, ...shared })]
    } catch (error) {
      await udp.close()
      if (plan.port !== 0 || attempt === FREE_PORT_ATTEMPTS) throw listenFault('tcp', plan, error)
    }
  }
}

function tcpLimits({ timeouts }: ListenPlan) {
  const { readMs, writeMs, idleMs, maxTcpQueries } = timeouts
  return { readMs, writeMs, idleMs, queriesMax: maxTcpQueries }
}

const REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'address already in use',
  EACCES: 'permission denied: ports below 1024 take root or CAP_NET_BIND_SERVICE',
  EADDRNOTAVAIL: 'cannot assign requested address: no interface of this machine has it',
}

/** Returns one line: the socket that failed, the reason, and the key that asked for it. */
function listenFault(network: 'udp' | 'tcp', plan: ListenPlan, cause: unknown): InputError {
  if (cause instanceof InputError) return cause
  const code = (cause as NodeJS.ErrnoException).code ?? ''
  const reason = REASONS[code] ?? (cause instanceof Error ? cause.message : String(cause))
  const where = plan.address.slice(plan.address.indexOf('://') + 3)
  const message = `listen ${network} ${where}: ${reason} (asked for by ${plan.asked.key})`
  return new InputError(plan.asked.position, message, cause)
}
