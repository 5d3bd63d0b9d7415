import { setTimeout as delay } from 'node:timers/promises'
import { getSystemErrorName } from 'node:util'
import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads'
import type { Clock } from '../../base/clock.ts'
import { Random } from '../../base/random.ts'
import { ResourceRegistry } from '../../base/resource-registry.ts'
import { RingWriter } from '../../base/ring.ts'
import { printLine } from '../../base/telemetry/lines.ts'
import { createLogger, type LogSink } from '../../base/telemetry/log.ts'
import { NO_METRICS } from '../../base/telemetry/metrics.ts'
import { systemTimers } from '../../base/timers.ts'
import { namedDirectives } from '../../corefile/parser.ts'
import { CookieJar } from '../../dns/edns/cookie.ts'
import { CookieSecrets } from '../../dns/edns/cookie-secrets.ts'
import type { Directive, LoadDirectives } from '../../plugin/directive.ts'
import { proxyRulesOf } from '../../transport/proxy/rules.ts'
import { loadLibc } from '../../transport/udp/batch/libc.ts'
import { BatchLoop } from '../../transport/udp/batch/loop.ts'
import type { GroupingOptions } from '../../transport/udp/batch/outbox.ts'
import { BatchSocket } from '../../transport/udp/batch/socket.ts'
import { WakeReader } from '../../transport/udp/batch/wake.ts'
import { REPLY_OCTETS_MAX } from '../../transport/udp/udp.ts'
import { ServerCount, ServerCounts, ServerTotals } from '../counters.ts'
import { ExchangePool } from '../exchange-pool.ts'
import { Instance } from '../instance.ts'
import type { ListenPlan } from '../listen-plan.ts'
import { Server } from '../server.ts'
import { DataChannel } from '../thread-channel.ts'
import type { ServeBypass } from './bypass.ts'
import { BYPASSES } from './bypasses.ts'
import { BatchClock, FinishClock } from './clocks.ts'
import type { DataSocket, DataThreadInit, FromDataThread, ToDataThread } from './messages.ts'
import { RingGroups, RingLines, RingOctets } from './ring-lines.ts'
import { ownTaskFile } from './task-time.ts'
import { LINES_TO_CONTROL, toControlTag } from './to-control-tag.ts'

/** The parts of a data thread. The directives are those of the control thread. */
interface DataThreadParts {
  readonly loadDirectives: LoadDirectives
  readonly directiveNames: readonly string[]
  readonly clock: Clock
  /** Channel to and from the control thread. */
  readonly port: MessagePort
  readonly init: DataThreadInit
}

/** Queries and faults in flight to the control thread: more are dropped. */
const PENDING_MAX = 1024

/** Shortest time that sockets wait while modules are loaded. */
const LOAD_MS = 1

/** Longest text that a thread sends with `toControl`, in characters; longer ones are cut. */
const TEXT_LENGTH_MAX = 8192

type Prepare = ToDataThread & { readonly kind: 'prepare' }

/** An instance in a data thread. */
interface Prepared {
  readonly channel: DataChannel
  readonly plans: ReadonlyMap<string, ListenPlan>
  /** Keyed by address; made on first use. */
  readonly handlers: Map<string, ExchangePool>
}

/**
 * One thread that only answers UDP queries. The control thread sends it everything else:
 *
 *     prepare ─▶ directives loaded ─▶ setups over the same tokens ─▶ prepared      publish ─▶ broadcasts
 *     commit  ─▶ every socket has the new instance, between two batches ─▶ committed
 *
 * Only loading uses turns of the event loop; the thread serves its sockets in between.
 */
export class DataThread {
  readonly #parts: DataThreadParts
  readonly #loop: BatchLoop
  readonly #ring: RingWriter
  /** Lines and records that wait for the end of the batch. */
  readonly #groups: RingGroups
  readonly #lines: RingLines
  readonly #sink: LogSink = (line) => printLine(this.#lines, line)
  readonly #counts = new ServerCounts(undefined, (address, counts) => {
    this.#post({ kind: 'address', address, counts })
  })
  readonly #clock: BatchClock
  readonly #finishClock: FinishClock
  readonly #random: Random
  readonly #cookies: CookieJar
  readonly #instances = new Map<number, Prepared>()
  /** Messages that arrived during a query, or that wait until directives are loaded. */
  readonly #waiting: ToDataThread[] = []
  /** The directives of instances that are not prepared yet, by generation. */
  readonly #directives = new Map<number, readonly Directive[]>()
  /** Keyed by directive; loaded with it. */
  readonly #bypasses = new Map<string, ServeBypass>()
  #isOver = false
  #serving = 0
  /** The error that a message caused. */
  #failure: unknown

  constructor(parts: DataThreadParts) {
    const { init, port } = parts
    const libc = loadLibc()
    this.#parts = parts
    this.#ring = new RingWriter(init.ring)
    this.#groups = new RingGroups(this.#ring, () => this.#post({ kind: 'wakeup' }))
    this.#lines = new RingLines(this.#groups, LINES_TO_CONTROL)
    this.#clock = new BatchClock(parts.clock)
    this.#finishClock = new FinishClock(parts.clock)
    this.#random = new Random(init.seed)
    this.#cookies = new CookieJar(new CookieSecrets(init.cookieSecrets))
    this.#loop = new BatchLoop(libc, new WakeReader(libc, init.wake), {
      onWake: () => this.#takeMessages(),
      onBatch: () => {
        this.#clock.turn()
        this.#finishClock.turn()
      },
      onBatchEnd: () => this.#groups.flush(),
      onHandOver: (fd, unit) => this.#handOver(fd, unit),
      onFault: (error) => {
        this.#counts.add(ServerCount.Panics)
        this.#postPending({ kind: 'fault', stack: stackOf(error) })
      },
    })
    port.unref()
  }

  /**
   * Serves until the control thread ends it. Rejects if the thread can't do what a message asks: a
   * new thread is better than one that serves other data.
   */
  async run(): Promise<void> {
    const serverCounts = this.#counts.counts
    this.#post({ kind: 'ready', serverCounts, taskFile: ownTaskFile() })
    for (;;) {
      if (this.#failure !== undefined) throw this.#failure
      if (this.#isOver) return
      const blocked = this.#blocked()
      if (blocked === undefined) this.#loop.run()
      else await this.#loadFor(blocked)
    }
  }

  /** The message whose directives are being loaded; all others wait for it. */
  #blocked(): Prepare | undefined {
    const [first] = this.#waiting
    return first?.kind === 'prepare' && !this.#directives.has(first.generation) ? first : undefined
  }

  async #loadFor(prepare: Prepare): Promise<void> {
    const { generation } = prepare
    let isLoading = true
    const loaded = this.#load(prepare).finally(() => {
      isLoading = false
    })
    const taken = loaded.then(
      (directives) => this.#directives.set(generation, directives),
      (error) => {
        this.#waiting.shift()
        this.#post({ kind: 'prepared', generation, fault: stackOf(error) })
      },
    )
    while (isLoading) {
      this.#loop.serveOnce()
      await delay(LOAD_MS)
    }
    await taken
    this.#takeMessages()
  }

  async #load({ blocks, corefile }: Prepare): Promise<readonly Directive[]> {
    const names = namedDirectives(blocks)
    for (const [name, load] of Object.entries(BYPASSES)) {
      if (!names.has(name) || this.#bypasses.has(name)) continue
      this.#bypasses.set(name, await (await load()).loadServe())
    }
    return this.#parts.loadDirectives(blocks, corefile.path)
  }

  #post(message: FromDataThread): void {
    this.#parts.port.postMessage(message)
  }

  #takeMessages(): void {
    this.#receive()
    try {
      for (let [first] = this.#waiting; first !== undefined; [first] = this.#waiting) {
        if (this.#blocked() !== undefined) {
          this.#loop.stop()
          break
        }
        this.#waiting.shift()
        this.#take(first)
      }
    } catch (error) {
      this.#fail(error)
    }
    this.#groups.flush()
  }

  #fail(error: unknown): void {
    this.#failure ??= error
    this.#loop.stop()
  }

  /** Applies published values at once. All other messages wait until no query is being answered. */
  #receive(): void {
    for (;;) {
      const received = receiveMessageOnPort(this.#parts.port)
      if (received === undefined) return
      const message = received.message as ToDataThread
      if (message.kind === 'publish' && this.#instances.has(message.generation)) {
        this.#publish(message)
      } else this.#waiting.push(message)
    }
  }

  #publish({ generation, index, value }: ToDataThread & { kind: 'publish' }): void {
    try {
      this.#instances.get(generation)?.channel.follow(index, value)
    } catch (error) {
      this.#fail(error)
    }
  }

  #handOver(fd: number, unit: Uint8Array): void {
    if (!this.#postPending({ kind: 'query', fd, unit })) this.#counts.add(ServerCount.Overloaded)
  }

  /** Posts a message that a query caused. Returns false if too many are already in flight. */
  #postPending(message: FromDataThread): boolean {
    if (!this.#hasRoom()) return false
    Atomics.add(this.#parts.init.pending, 0, 1)
    this.#post(message)
    return true
  }

  #hasRoom(): boolean {
    return Atomics.load(this.#parts.init.pending, 0) < PENDING_MAX
  }

  #take(message: ToDataThread): void {
    switch (message.kind) {
      case 'prepare':
        this.#post({
          kind: 'prepared',
          generation: message.generation,
          fault: this.#tryToPrepare(message),
        })
        return
      case 'publish':
        this.#publish(message)
        return
      case 'commit':
        this.#commit(message.generation, message.sockets)
        this.#post({ kind: 'committed', generation: message.generation })
        return
      case 'serve':
        this.#serveAt(message.generation, message.sockets)
        return
      case 'bypass':
        this.#post({ kind: 'bypassed', id: message.id, fault: this.#serveBypass(message) })
        return
      case 'abandon':
        this.#instances.delete(message.generation)
        return
      case 'detach':
        for (const fd of message.fds) this.#loop.remove(fd)
        this.#post({ kind: 'detached', fds: message.fds })
        return
      default:
        this.#isOver = true
        this.#loop.stop()
    }
  }

  /** As `#prepare`, but always returns a reply for the control thread, which waits for it. */
  #tryToPrepare(message: Prepare): string {
    try {
      return this.#prepare(message)
    } catch (error) {
      return stackOf(error)
    }
  }

  /** Returns the reason for a failure; '' = done. */
  #prepare(message: Prepare): string {
    const { generation, blocks, corefile, dnsPort, values } = message
    const channel = new DataChannel({
      catchUp: () => this.#receive(),
      send: (toControl, text) => this.#send(toControlTag(generation, toControl), text),
      octetsTo: (toControl) => new RingOctets(this.#groups, toControlTag(generation, toControl)),
      announce: (index, labels, counters) => {
        this.#post({ kind: 'counters', generation, index, labels, counters })
      },
    })
    const { directiveNames } = this.#parts
    const directives = this.#directives.get(generation)!
    this.#directives.delete(generation)
    const view = { ...corefile, unset: [], digest: () => corefile.loadedDigest }
    const { instance, errors } = Instance.create(blocks, view, {
      directives,
      directiveNames,
      dnsPort,
      clock: this.#finishClock,
      timers: systemTimers,
      random: Math.random,
      metrics: NO_METRICS,
      serverCounters: new ServerTotals(this.#counts),
      sink: this.#sink,
      lines: this.#lines,
      requestReload: () => Promise.resolve('data threads reload nothing'),
      resources: new ResourceRegistry(),
      channel: channel,
    })
    if (errors[0] !== undefined) return errors[0].message
    for (const [index, value] of values) channel.follow(index, value)
    const plans = new Map(instance.plans.map((plan) => [plan.address, plan]))
    this.#instances.set(generation, { channel: channel, plans, handlers: new Map() })
    return ''
  }

  #commit(generation: number, sockets: readonly DataSocket[]): void {
    this.#serveAt(generation, sockets)
    if (this.#serving !== generation) this.#instances.delete(this.#serving)
    this.#serving = generation
  }

  /** Leaves sockets of an address that the instance does not have as they are. */
  #serveAt(generation: number, sockets: readonly DataSocket[]): void {
    const { plans, handlers } = this.#instances.get(generation)!
    for (const { address, fd, host, port, counts } of sockets) {
      const plan = plans.get(address)
      if (plan === undefined) continue
      const handler = handlers.get(address) ?? this.#serve(plan)
      handlers.set(address, handler)
      const rules = proxyRulesOf(plan)
      if (this.#loop.setHandler(fd, handler)) {
        this.#loop.socketOf(fd)?.setProxy?.(address, rules)
        continue
      }
      const grouping = this.#groupingAt(address)
      const { maxQueryAgeMs: maxAgeMs } = this.#parts.init
      const backlog = maxAgeMs === 0 ? undefined : { maxAgeMs }
      const socket = new BatchSocket(loadLibc(), { fd, host, port }, grouping, backlog)
      socket.setProxy(address, rules)
      this.#loop.add(socket, handler, counts)
    }
  }

  /** Returns the reason for a failure; '' = done. */
  #serveBypass({ generation, of, body }: ToDataThread & { kind: 'bypass' }): string {
    try {
      const handlers = this.#instances.get(generation)?.handlers ?? new Map()
      return this.#bypasses.get(of)?.(this.#loop, body, handlers) ?? `${of} is not loaded`
    } catch (error) {
      return stackOf(error)
    }
  }

  #groupingAt(address: string): GroupingOptions | undefined {
    if (!this.#parts.init.groupsReplies) return undefined
    const log = createLogger('', this.#sink, () => false)
    return {
      onRefused: (errno) => {
        const reason = getSystemErrorName(-errno)
        log.warning(
          `${address}: replies are sent one by one, because the system refuses groups (${reason})`,
          'udp-groups-refused',
        )
      },
    }
  }

  #serve(plan: ListenPlan): ExchangePool {
    const server = new Server({
      address: plan.address,
      blocks: plan.blocks,
      clock: this.#clock,
      random: this.#random,
      log: createLogger('', this.#sink, () => false),
      counters: this.#counts,
      cookies: this.#cookies,
      tcpIdleMs: plan.timeouts.idleMs,
      canHandOver: () => this.#hasRoom(),
    })
    return new ExchangePool(server, REPLY_OCTETS_MAX)
  }

  #send(tag: number, text: string): void {
    this.#groups.flush()
    const cut = text.length > TEXT_LENGTH_MAX ? text.slice(0, TEXT_LENGTH_MAX) : text
    const at = this.#ring.begin(cut.length * 3)
    if (at === -1) return
    if (this.#ring.end(tag, this.#ring.octets.write(cut, at))) this.#post({ kind: 'wakeup' })
  }
}

function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}
