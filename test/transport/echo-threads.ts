import { Worker } from 'node:worker_threads'
import { createLogger } from '../../src/base/telemetry/log.ts'
import { systemTimers } from '../../src/base/timers.ts'
import { CookieSecrets } from '../../src/dns/edns/cookie-secrets.ts'
import type { BypassSite } from '../../src/server/data/bypass.ts'
import { DataListener } from '../../src/server/data/data-listener.ts'
import type { FromDataThread } from '../../src/server/data/messages.ts'
import { ThreadHandle } from '../../src/server/data/thread-handle.ts'
import { XdpPlane } from '../../src/server/data/xdp/plane.ts'
import { openHost } from '../../src/transport/driver.ts'
import type { Listener } from '../../src/transport/exchange.ts'
import { loadLibc } from '../../src/transport/udp/batch/libc.ts'
import { loadXdpKernel } from '../../src/transport/udp/xdp/kernel.ts'
import type { XdpSettings } from '../../src/transport/udp/xdp/settings.ts'
import type { Echo } from './echo.ts'
import { xdpConfig } from './xdp-config.ts'

export interface EchoListenOptions {
  readonly host: string
  readonly port: number
  /** For what the threads hand over; they themselves answer with its mark. */
  readonly handler: Echo
  readonly drainMs?: number
}

const THREADS = 2

/** The batch transport with everything real but the DNS: listeners, sockets, wakers, loops, threads. */
export class EchoThreads {
  readonly #libc = loadLibc()
  readonly #handles: readonly ThreadHandle[]
  readonly #listeners = new Map<Listener, DataListener>()
  readonly #xdp: { readonly settings: XdpSettings; readonly plane: XdpPlane } | undefined
  #listened = 0
  #asked = 0
  /** What threads complained of, and warnings about the interface. */
  readonly faults: string[] = []

  /** `settings`: queries that arrive on this interface bypass the UDP sockets. */
  constructor(settings?: XdpSettings) {
    this.#handles = Array.from({ length: THREADS }, () => this.#start())
    this.#xdp = settings === undefined ? undefined : { settings, plane: this.#createPlane() }
  }

  async listen(options: EchoListenOptions): Promise<DataListener> {
    const address = `echo ${++this.#listened}`
    return openHost(options.host, async (host) => {
      const listener = new DataListener(this.#libc, {
        ...options,
        host,
        address,
        takesOver: false,
        detach: async (fds) => {
          const key = `detached ${fds.join()}`
          await Promise.all(this.#handles.map((handle) => handle.ask(key, { kind: 'detach', fds })))
        },
        onClosing: () => this.#xdp?.plane.retire(address),
        onClosed: () => this.#listeners.delete(listener),
      })
      this.#listeners.set(listener, listener)
      listener.grow(THREADS)
      for (const [index, handle] of this.#handles.entries()) {
        const sockets = [listener.socketOf(index)!]
        handle.post({ kind: 'serve', generation: options.handler.mark, sockets })
      }
      await this.#serveXdp(options.handler.mark)
      return listener
    })
  }

  /** Swaps the handler of both sides; resolves once all threads did. */
  async use(listener: Listener, echo: Echo): Promise<void> {
    listener.setHandler(echo)
    const generation = echo.mark
    const committed = this.#handles.map((handle, index) => {
      const sockets = [this.#listeners.get(listener)!.socketOf(index)!]
      return handle.ask(`committed ${generation}`, { kind: 'commit', generation, sockets })
    })
    await Promise.all(committed)
  }

  async stop(): Promise<void> {
    await this.#xdp?.plane.close()
    await Promise.all(this.#handles.map((handle) => handle.stop()))
  }

  #createPlane(): XdpPlane {
    const threads = {
      serve: (thread: number, generation: number, body: unknown) => {
        const id = ++this.#asked
        const message = { kind: 'bypass', id, generation, of: 'xdp', body } as const
        return this.#handles[thread]!.ask(`bypassed ${id}`, message)
      },
      detach: async (thread: number, fds: readonly number[]) => {
        await this.#handles[thread]!.ask(`detached ${fds.join()}`, { kind: 'detach', fds })
      },
    }
    const sink = (line: string): void => {
      if (!line.startsWith('[INFO]')) this.faults.push(line)
    }
    const log = createLogger('', sink, () => false)
    return new XdpPlane({ kernel: loadXdpKernel(), threads, log, timers: systemTimers })
  }

  async #serveXdp(generation: number): Promise<void> {
    if (this.#xdp === undefined) return
    const { settings, plane } = this.#xdp
    const sites = [...this.#listeners.values()].flatMap((listener): BypassSite[] => {
      const socket = listener.socketOf(0)
      return socket === undefined
        ? []
        : [{ plan: { address: socket.address, configs: [xdpConfig(settings)] }, listener }]
    })
    await plane.setSites(generation, sites)
  }

  #start(): ThreadHandle {
    const handle: ThreadHandle = new ThreadHandle(
      this.#libc,
      (init, port) =>
        new Worker(new URL('./echo-worker.ts', import.meta.url), {
          workerData: { init, port },
          transferList: [port],
        }),
      { cookieSecrets: new CookieSecrets().memory, groupsReplies: true, maxQueryAgeMs: 0, seed: 1 },
      {
        onMessage: (message) => this.#take(handle, message),
        onDeath: (error) => this.faults.push(String(error)),
      },
    )
    return handle
  }

  #take(handle: ThreadHandle, message: FromDataThread): void {
    if (message.kind === 'fault') this.faults.push(message.stack)
    if (message.kind !== 'query') return
    handle.takePending()
    for (const listener of this.#listeners.values()) {
      if (listener.has(message.fd)) listener.answer(message.fd, message.unit)
    }
  }
}
