import type { Clock } from '../base/clock.ts'
import { InputError } from '../base/errors.ts'
import type { Random } from '../base/random.ts'
import type { Logger } from '../base/telemetry/log.ts'
import type { CookieJar } from '../dns/edns/cookie.ts'
import { MESSAGE_OCTETS_MAX } from '../dns/message/header.ts'
import type { PacketDriver, StreamDriver } from '../transport/driver.ts'
import type { Listener } from '../transport/exchange.ts'
import { REPLY_OCTETS_MAX } from '../transport/udp/udp.ts'
import type { ServerCounts } from './counters.ts'
import { ExchangePool } from './exchange-pool.ts'
import type { ListenPlan } from './listen-plan.ts'
import { Server } from './server.ts'
import type { DnsListener } from './supervisor.ts'

/** A transport of plans. */
export type DnsDriver = PacketDriver<ListenPlan> | StreamDriver<ListenPlan>

/** What the servers of a process have in common, across reloads too. */
interface DnsListenerParts {
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly counters: ServerCounts
  readonly cookies: CookieJar
  /** Those of the plan's scheme, at least one. If any port will do, the first one chooses it. */
  readonly drivers: readonly DnsDriver[]
}

/** Attempts to find a port that is free for every transport, if any port will do. */
const FREE_PORT_ATTEMPTS = 10

/** One transport of an address. */
interface OpenTransport {
  readonly listener: Listener
  use(next: ListenPlan): void
}

/**
 * Opens a plan's address with each driver, on the same port. Rejects with an InputError that names the
 * key that asked for it.
 */
export async function openDnsListener(
  plan: ListenPlan,
  parts: DnsListenerParts,
): Promise<DnsListener> {
  const opened = await openAll(plan, parts)
  return {
    port: opened[0]!.listener.port,
    use: (next) => {
      for (const transport of opened) transport.use(next)
    },
    close: () => closeAll(opened),
  }
}

async function openAll(plan: ListenPlan, parts: DnsListenerParts): Promise<OpenTransport[]> {
  for (let attempt = 1; ; attempt++) {
    const opened: OpenTransport[] = []
    const next = (): DnsDriver | undefined => parts.drivers[opened.length]
    try {
      for (let driver = next(); driver !== undefined; driver = next()) {
        const port = opened[0]?.listener.port ?? plan.port
        opened.push(await openTransport(driver, { ...plan, port }, parts))
      }
      return opened
    } catch (error) {
      await closeAll(opened)
      const isLast = opened.length === 0 || plan.port !== 0 || attempt === FREE_PORT_ATTEMPTS
      if (isLast) throw listenFault(next()!.name, plan, error)
    }
  }
}

async function closeAll(opened: readonly OpenTransport[]): Promise<void> {
  await Promise.all(opened.map(({ listener }) => listener.close()))
}

async function openTransport(
  driver: DnsDriver,
  plan: ListenPlan,
  parts: DnsListenerParts,
): Promise<OpenTransport> {
  const replyOctets = driver.kind === 'packets' ? REPLY_OCTETS_MAX : MESSAGE_OCTETS_MAX
  // Each has its own bound on queries in flight, so that a flood over one leaves room for the others.
  const handlerOf = ({ address, blocks, timeouts, waitingMax }: ListenPlan): ExchangePool => {
    const server = new Server({ ...parts, address, blocks, tcpIdleMs: timeouts.idleMs })
    return new ExchangePool(server, replyOctets, waitingMax)
  }
  if (driver.kind === 'packets') {
    const listener = await driver.open(plan, handlerOf(plan))
    return {
      listener,
      use: (next) => {
        listener.setHandler(handlerOf(next))
        listener.setPlace?.(next)
      },
    }
  }
  const listener = await driver.open(plan, handlerOf(plan))
  return {
    listener,
    use: (next) => {
      listener.setHandler(handlerOf(next))
      listener.setPlace(next)
    },
  }
}

const REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'address already in use',
  EACCES: 'permission denied: ports below 1024 take root or CAP_NET_BIND_SERVICE',
  EADDRNOTAVAIL: 'cannot assign requested address: no interface of this machine has it',
}

/** Returns one line: the socket that failed, the reason, and the key that asked for it. */
function listenFault(network: string, plan: ListenPlan, cause: unknown): InputError {
  if (cause instanceof InputError) return cause
  const code = (cause as NodeJS.ErrnoException).code ?? ''
  const reason = REASONS[code] ?? (cause instanceof Error ? cause.message : String(cause))
  const where = plan.address.slice(plan.address.indexOf('://') + 3)
  const message = `listen ${network} ${where}: ${reason} (asked for by ${plan.asked.key})`
  return new InputError(plan.asked.position, message, cause)
}
