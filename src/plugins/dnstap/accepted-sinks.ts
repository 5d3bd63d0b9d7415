import type { Socket } from 'node:net'
import type { TlsOptions } from 'node:tls'
import type { Clock } from '../../base/clock.ts'
import type { ResourceRegistry } from '../../base/resource-registry.ts'
import type { Logger } from '../../base/telemetry/log.ts'
import type { Timers } from '../../base/timers.ts'
import type { LineSettings } from './line-settings.ts'
import { TapSink } from './sink.ts'
import { SinkListener } from './sink-listener.ts'

interface AcceptedParts {
  readonly log: Logger
  readonly timers: Timers
  readonly clock: Clock
  readonly resources: ResourceRegistry
  readonly seed: number
  readonly sent: (messages: number) => void
  readonly lost: (messages: number) => void
}

/** Sends messages to all sinks that are connected to an endpoint. Each has a queue of its own. */
export class AcceptedSinks {
  readonly #settings: LineSettings
  readonly #parts: AcceptedParts
  readonly #tls: TlsOptions | undefined
  readonly #sinks = new Set<TapSink>()
  #detach = (): void => {}
  #release = (): void => {}

  constructor(settings: LineSettings, parts: AcceptedParts, tls: TlsOptions | undefined) {
    this.#settings = settings
    this.#parts = parts
    this.#tls = tls
  }

  start(): void {
    const { endpoint, name } = this.#settings
    const { resources } = this.#parts
    // A TLS server of Node.js accepts new certificates later, but not a new `requestCert`.
    const key = JSON.stringify([endpoint, this.#tls?.requestCert])
    const { item, release } = resources.acquire(SinkListener, key, () => {
      return new SinkListener(endpoint, name, this.#parts)
    })
    this.#release = release
    this.#detach = item.attach((socket) => this.#accept(socket), this.#tls)
  }

  receive(octets: Uint8Array): void {
    for (const sink of this.#sinks) if (sink.isOpen) sink.receive(octets)
  }

  /** Ends the connections. Resolves once the sinks have read all messages, or after about a second. */
  async stop(): Promise<void> {
    this.#detach()
    await Promise.all([...this.#sinks].map((sink) => sink.stop()))
    this.#release()
  }

  #accept(socket: Socket): void {
    const { remoteAddress, remotePort } = socket
    const from = remoteAddress === undefined ? '' : ` from ${remoteAddress}:${remotePort}`
    const settings = { ...this.#settings, name: `${this.#settings.name}${from}` }
    const sink = new TapSink(settings, {
      ...this.#parts,
      open: () => ({ socket, event: '' }),
      onGone: () => this.#sinks.delete(sink),
    })
    this.#sinks.add(sink)
    sink.start()
  }
}
