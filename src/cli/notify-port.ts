import type { Logger } from '../base/telemetry/log.ts'
import { type HostPort, printHostPort } from '../dns/host-port.ts'
import { Query } from '../dns/message/query.ts'
import { NOTIFY_REPLY_OCTETS, type NotifyReceiver } from '../operator/notify/notify-receiver.ts'
import type { Exchange, Listener, QueryHandler } from '../transport/exchange.ts'
import { listenTcp } from '../transport/tcp.ts'
import type { TcpLimits } from '../transport/tcp-limits.ts'
import { listenDgram } from '../transport/udp/dgram.ts'

/** Most replies in flight. Each is made at once, and at most waits for its socket. */
const EXCHANGES_MAX = 64
/** Limits for TCP; NOTIFYs usually arrive over UDP. */
const TCP_LIMITS: Partial<TcpLimits> = {
  idleMs: 3000,
  queriesMax: 16,
  inFlightMax: 4,
  unsentOctetsMax: 4096,
  connectionsMax: 64,
  connectionsPerAddressMax: 8,
}
const CLOSE_MS = 500

/**
 * Opens the addresses for NOTIFYs, each over UDP and TCP. Rejects with the system's error if one is
 * not available.
 */
export async function openNotifyPort(
  addresses: readonly HostPort[],
  receiver: NotifyReceiver,
  log: Logger,
): Promise<readonly Listener[]> {
  const handler = new NotifyHandler(receiver)
  const listeners: Listener[] = []
  try {
    for (const { host, port } of addresses) {
      const tcp = await listenTcp({
        host,
        port,
        handler,
        limits: { ...TCP_LIMITS, drainMs: CLOSE_MS },
      })
      listeners.push(tcp)
      // If the port was 0, the system has chosen one for TCP.
      const udp = { host, port: tcp.port, handler, drainMs: CLOSE_MS }
      listeners.push(await listenDgram(udp))
      log.info(
        `operator: listening for NOTIFY on ${printHostPort({ host, port: tcp.port })}`,
        'notify-listening',
      )
    }
  } catch (error) {
    for (const listener of listeners) await listener.close()
    throw error
  }
  return listeners
}

/** Adapts NotifyReceiver to transports. */
class NotifyHandler implements QueryHandler {
  readonly #receiver: NotifyReceiver
  readonly #idle: Exchange[] = []
  #lent = 0

  constructor(receiver: NotifyReceiver) {
    this.#receiver = receiver
  }

  acquire(): Exchange | undefined {
    if (this.#lent >= EXCHANGES_MAX) return undefined
    this.#lent++
    return (
      this.#idle.pop() ?? {
        query: new Query(),
        reply: new Uint8Array(NOTIFY_REPLY_OCTETS),
        replyAt: -1,
      }
    )
  }

  serve({ query, reply }: Exchange): number {
    return this.#receiver.serve(query, reply)
  }

  release(exchange: Exchange): void {
    this.#lent--
    this.#idle.push(exchange)
  }
}
