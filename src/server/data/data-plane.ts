import { randomInt } from 'node:crypto'
import { LineBudget } from '../../base/telemetry/line-budget.ts'
import type { LineBuffer } from '../../base/telemetry/lines.ts'
import type { Logger } from '../../base/telemetry/log.ts'
import type { Timers } from '../../base/timers.ts'
import { namedDirectives } from '../../corefile/parser.ts'
import type { Losses } from '../../plugin/server-counters.ts'
import type { PacketDriver } from '../../transport/driver.ts'
import { openHost } from '../../transport/driver.ts'
import type { QueryHandler } from '../../transport/exchange.ts'
import type { Libc } from '../../transport/udp/batch/libc.ts'
import type { UdpListener } from '../../transport/udp/udp.ts'
import { ServerCount, ServerCounts, type ServerTotals } from '../counters.ts'
import type { Instance } from '../instance.ts'
import type { ListenPlan } from '../listen-plan.ts'
import type { DataChange, DataThreads } from '../supervisor.ts'
import type { ControlChannel } from '../thread-channel.ts'
import type { BypassThreads, PacketBypass } from './bypass.ts'
import { BYPASSES } from './bypasses.ts'
import { DataListener } from './data-listener.ts'
import { CHECK_MS } from './hang-watchdog.ts'
import type { DataSocket, FromDataThread, ToDataThread } from './messages.ts'
import { addLosses, type PacketLosses } from './packet-losses.ts'
import { type StartThread, ThreadHandle } from './thread-handle.ts'
import { isOfGeneration, LINES_TO_CONTROL, toControlOf } from './to-control-tag.ts'

export interface DataPlaneParts {
  readonly libc: Libc
  readonly start: StartThread
  /** Number of sockets and threads if the Corefile does not set it. */
  readonly socketsDefault: number
  readonly dnsPort: number
  /** As in `DataThreadInit`. */
  readonly groupsReplies: boolean
  /** As in `DataThreadInit`. */
  readonly maxQueryAgeMs: number
  readonly cookieSecrets: SharedArrayBuffer
  readonly totals: ServerTotals
  /** Counts events that happen outside the threads. */
  readonly counts: ServerCounts
  readonly lines: LineBuffer
  readonly log: Logger
  readonly timers: Timers
  /** Another process, which is about to end, serves the addresses. */
  readonly takesOver: boolean
}

/**
 * Longest wait of a line in a thread's ring, and shortest time between two fetches. Each fetch
 * takes as long as printing a hundred lines or more, because the data has left the CPU caches. The
 * ring has room for several such periods.
 */
const FETCH_MS = 10

/** Shortest time between two restarts of a thread that ended by itself. */
const REVIVE_MS = 1000

/** Panics of data threads that are logged per period. The counter counts all of them. */
const PANIC_LINES_MAX = 10
const PANIC_PERIOD_MS = 60_000

/** An instance that threads may still hold data of. */
interface Wired {
  readonly instance: Instance
  readonly channel: ControlChannel
}

/** One thread and the messages sent to it. */
interface Member {
  handle: ThreadHandle
  startedMs: number
  /** Set while each fetch returns something. */
  fetching: NodeJS.Timeout | undefined
}

/** Starts the data threads of a process, and keeps them in the state that the control thread wants. */
export class DataPlane implements DataThreads, PacketDriver<ListenPlan> {
  readonly kind = 'packets'
  readonly name = 'udp'
  readonly #parts: DataPlaneParts
  readonly #members: Member[] = []
  readonly #listeners = new Map<string, DataListener>()
  readonly #wired = new Map<number, Wired>()
  /** Generation of the instance prepared last. */
  #generation = 0
  /** Generation of the instance that serves; 0 = none. */
  #serving = 0
  #isClosed = false
  readonly #stopChecking: () => void
  /** Lines and texts that were dropped because a ring was full. */
  #droppedLines = 0
  readonly #panicLines = new LineBudget(PANIC_LINES_MAX, PANIC_PERIOD_MS)
  /** Those that an instance has asked for, keyed by directive. */
  readonly #bypasses = new Map<string, PacketBypass>()
  #bypassRequests = 0
  /** Losses of closed listeners. */
  readonly #past: PacketLosses = { overloaded: 0, unbuffered: 0, unsent: 0, late: 0 }

  constructor(parts: DataPlaneParts) {
    this.#parts = parts
    parts.totals.includeLosses(() => this.#losses())
    this.#stopChecking = parts.timers.every(CHECK_MS, () => {
      for (const { handle } of this.#members) handle.look()
    })
  }

  /**
   * See `PacketDriver`. The instance that was prepared last serves the address at once: datagrams that
   * arrive while no thread reads a socket fill its buffer and are lost.
   */
  async open(plan: ListenPlan, handler: QueryHandler): Promise<UdpListener> {
    const { libc, takesOver } = this.#parts
    const { address, port } = plan
    return openHost(plan.host, async (host) => {
      const listener = new DataListener(libc, {
        address,
        host,
        port,
        handler,
        takesOver,
        detach: (fds) => this.#detach(fds),
        onClosing: () => {
          for (const bypass of this.#bypasses.values()) bypass.retire(address)
        },
        onClosed: () => {
          addLosses(this.#past, listener.losses)
          if (this.#listeners.get(address) === listener) this.#listeners.delete(address)
        },
      })
      this.#listeners.set(address, listener)
      this.#grow(plan)
      this.#serveAt(listener)
      return listener
    })
  }

  async prepare(instance: Instance, channel: ControlChannel): Promise<DataChange> {
    await this.#openBypasses(namedDirectives(instance.blocks))
    const generation = ++this.#generation
    this.#wired.set(generation, { instance, channel: channel })
    const needed = Math.max(1, ...instance.plans.map((plan) => this.#socketsOf(plan)))
    while (this.#members.length < needed) {
      const index = this.#members.length
      const handle = this.#start(index)
      this.#members.push({ handle, startedMs: performance.now(), fetching: undefined })
    }
    // A thread that ended gets every instance when its replacement starts.
    const alive = this.#members.filter(({ handle }) => handle.isAlive)
    const prepared = alive.map(({ handle }) => this.#prepareOne(handle, generation))
    channel.onPublish = (index, value) => {
      for (const { handle } of this.#members) {
        handle.post({ kind: 'publish', generation, index, value })
      }
    }
    const abandon = (): void => {
      channel.onPublish = () => {}
      this.#wired.delete(generation)
      for (const { handle } of this.#members) handle.post({ kind: 'abandon', generation })
    }
    try {
      await Promise.all(prepared)
    } catch (error) {
      abandon()
      throw error
    }
    return { commit: () => this.#commit(generation), abandon }
  }

  async close(): Promise<void> {
    for (const bypass of this.#bypasses.values()) await bypass.close()
    this.#isClosed = true
    await Promise.all(this.#members.map(({ handle }) => handle.stop()))
    this.#stopChecking()
    for (const member of this.#members) this.#fetch(member)
    for (const { fetching } of this.#members) clearInterval(fetching)
  }

  /** Makes the threads end when the process ends, because the process waits for them. */
  halt(): void {
    this.#isClosed = true
    for (const { handle } of this.#members) handle.halt()
  }

  #socketsOf(plan: ListenPlan): number {
    return plan.sockets === 0 ? this.#parts.socketsDefault : plan.sockets
  }

  async #openBypasses(directives: ReadonlySet<string>): Promise<void> {
    const { log, timers } = this.#parts
    for (const [name, load] of Object.entries(BYPASSES)) {
      if (!directives.has(name) || this.#bypasses.has(name)) continue
      try {
        const { open } = await load()
        this.#bypasses.set(name, await open({ threads: this.#threadsFor(name), log, timers }))
      } catch (error) {
        log.warning(`${name}: all packets go to the UDP sockets: ${error}`, 'bypass-failed')
      }
    }
  }

  #threadsFor(of: string): BypassThreads {
    return {
      serve: (thread, generation, body) => {
        const id = ++this.#bypassRequests
        const message: ToDataThread = { kind: 'bypass', id, generation, of, body }
        return this.#members[thread]!.handle.ask(`bypassed ${id}`, message)
      },
      detach: async (thread, fds) => {
        const { handle } = this.#members[thread]!
        await handle.ask(`detached ${fds.join()}`, { kind: 'detach', fds })
      },
    }
  }

  /** Opens the missing sockets of the plan's address. If that fails, the existing ones serve it. */
  #grow(plan: ListenPlan): void {
    try {
      this.#listeners.get(plan.address)?.grow(this.#socketsOf(plan))
    } catch (error) {
      this.#parts.log.error(`Fewer UDP sockets than requested: ${error}`, 'udp-sockets-fewer')
    }
  }

  #serveAt(listener: DataListener): void {
    const generation = this.#generation
    this.#members.forEach(({ handle }, index) => {
      const socket = listener.socketOf(index)
      if (socket !== undefined) handle.post({ kind: 'serve', generation, sockets: [socket] })
    })
  }

  #start(index: number): ThreadHandle {
    const { libc, start, cookieSecrets, groupsReplies, maxQueryAgeMs } = this.#parts
    const handle = new ThreadHandle(
      libc,
      start,
      { cookieSecrets, groupsReplies, maxQueryAgeMs, seed: randomInt(2 ** 32) },
      {
        onMessage: (message) => this.#take(index, handle, message),
        onDeath: (error) => this.#revive(index, error),
      },
    )
    return handle
  }

  async #prepareOne(handle: ThreadHandle, generation: number): Promise<void> {
    const { instance, channel } = this.#wired.get(generation)!
    const { path, loadedDigest } = instance.corefile
    const fault = await handle.ask(`prepared ${generation}`, {
      kind: 'prepare',
      generation,
      blocks: instance.blocks,
      corefile: { path, loadedDigest },
      dnsPort: this.#parts.dnsPort,
      values: channel.values(),
    })
    if (fault !== '') throw new Error(`data thread: ${fault}`)
  }

  async #commit(generation: number): Promise<void> {
    const old = this.#serving
    this.#serving = generation
    for (const plan of this.#wired.get(generation)!.instance.plans) this.#grow(plan)
    // As above if a thread has ended.
    await Promise.allSettled(this.#members.map((_, index) => this.#commitOne(index, generation)))
    // The old instance sends nothing after this: its counts and lines are complete.
    for (const member of this.#members) this.#fetch(member)
    const wired = this.#wired.get(old)
    if (wired !== undefined) wired.channel.onPublish = () => {}
    this.#wired.delete(old)
    const { instance } = this.#wired.get(generation)!
    const shrunk = instance.plans.map((plan) => {
      return this.#listeners.get(plan.address)?.shrink(this.#socketsOf(plan))
    })
    // Before threads lose sockets that packets of a bypass belong to.
    this.#setSites(instance.plans)
    await Promise.all(shrunk)
  }

  async #commitOne(index: number, generation: number): Promise<void> {
    const { handle } = this.#members[index]!
    await handle.ask(`committed ${generation}`, this.#commitMessage(generation, index))
  }

  /** In the background: until then the UDP sockets get the packets. */
  #setSites(plans: readonly ListenPlan[]): void {
    const sites = plans.flatMap((plan) => {
      const listener = this.#listeners.get(plan.address)
      return listener === undefined ? [] : [{ plan, listener }]
    })
    for (const bypass of this.#bypasses.values()) void bypass.setSites(this.#serving, sites)
  }

  #commitMessage(generation: number, index: number): ToDataThread {
    const sockets: DataSocket[] = []
    for (const listener of this.#listeners.values()) {
      const socket = listener.socketOf(index)
      if (socket !== undefined) sockets.push(socket)
    }
    return { kind: 'commit', generation, sockets }
  }

  async #detach(fds: readonly number[]): Promise<void> {
    const key = `detached ${fds.join()}`
    const asked = this.#members.map(({ handle }) => handle.ask(key, { kind: 'detach', fds }))
    // A thread that has ended has nothing to finish.
    await Promise.allSettled(asked)
  }

  #take(index: number, handle: ThreadHandle, message: FromDataThread): void {
    switch (message.kind) {
      case 'ready':
        handle.counts = new ServerCounts(message.serverCounts)
        this.#parts.totals.include(handle.counts)
        return
      case 'address':
        handle.counts?.dropped.set(message.address, message.counts)
        return
      case 'wakeup':
        this.#hear(this.#members[index]!)
        return
      case 'counters': {
        const { generation, labels, counters } = message
        const channel = this.#wired.get(generation)?.channel
        channel?.includeCounters(message.index, labels, counters)
        return
      }
      case 'query':
        handle.takePending()
        for (const listener of this.#listeners.values()) {
          if (listener.has(message.fd)) listener.answer(message.fd, message.unit)
        }
        return
      case 'fault':
        handle.takePending()
        this.#report(message.stack)
        return
      default:
    }
  }

  /** A block with `debug` ends the process on a panic, as in the control thread. */
  #report(stack: string): void {
    const instance = this.#wired.get(this.#serving)?.instance
    const debug = instance?.plans.some((plan) => plan.blocks.some((block) => block.debug))
    if (debug) throw new Error(`in a data thread: ${stack}`)
    if (!this.#panicLines.take(performance.now())) return
    this.#parts.log.error(`Recovered from panic in data thread: ${stack}`, 'panic')
  }

  #hear(member: Member): void {
    member.fetching ??= setInterval(() => this.#fetchAgain(member), FETCH_MS)
  }

  /**
   * Polls while each fetch returns something, so that the thread need not send a wakeup: messages
   * cost both sides.
   */
  #fetchAgain(member: Member): void {
    if (member.handle.ring.drain(this.#visit)) return
    clearInterval(member.fetching)
    member.fetching = undefined
    this.#fetch(member)
  }

  /** Fetches what the ring holds. The next entry after that sends a wakeup. */
  #fetch({ handle }: Member): void {
    const { ring } = handle
    ring.waitForWake()
    ring.drain(this.#visit)
    this.#droppedLines += ring.takeDropped()
  }

  readonly #visit = (tag: number, octets: Buffer): void => {
    const toControl = toControlOf(tag)
    if (toControl === LINES_TO_CONTROL) this.#parts.lines.write(octets)
    else {
      for (const [generation, { channel }] of this.#wired) {
        if (isOfGeneration(tag, generation)) channel.receive(toControl, octets)
      }
    }
  }

  #losses(): Losses {
    for (const { handle } of this.#members) this.#droppedLines += handle.ring.takeDropped()
    const sum = { ...this.#past }
    for (const { losses } of this.#bypasses.values()) addLosses(sum, losses)
    for (const listener of this.#listeners.values()) addLosses(sum, listener.losses)
    return { ...sum, lines: this.#droppedLines }
  }

  /** Starts a new thread. Its sockets stay open and buffer the datagrams that arrive meanwhile. */
  #revive(index: number, error: Error): void {
    if (this.#isClosed) return
    this.#parts.log.error(
      `Data thread ${index} ended, starting another: ${error.stack ?? error}`,
      'data-thread-ended',
    )
    this.#parts.counts.add(ServerCount.Panics)
    const member = this.#members[index]!
    if (member.handle.counts !== undefined) this.#parts.totals.end(member.handle.counts)
    const againMs = member.startedMs + REVIVE_MS
    const timer = setTimeout(() => this.#restart(index), Math.max(0, againMs - performance.now()))
    timer.unref()
  }

  #restart(index: number): void {
    if (this.#isClosed) return
    const member = this.#members[index]!
    // Fetches the last output of the old thread.
    this.#fetch(member)
    const handle = this.#start(index)
    member.handle = handle
    member.startedMs = performance.now()
    this.#bringUp(index, handle).catch((error) => {
      // If the thread ended because of this, its end is logged elsewhere and a new thread starts.
      if (handle.isAlive)
        this.#parts.log.error(`Data thread ${index}: ${error}`, 'data-thread-failed')
    })
  }

  /** Sends every instance to a new thread, including one that is about to serve. */
  async #bringUp(index: number, handle: ThreadHandle): Promise<void> {
    const prepared = [...this.#wired.keys()].map((one) => this.#prepareOne(handle, one))
    const serving = this.#serving
    if (serving !== 0) prepared.push(this.#commitOne(index, serving))
    await Promise.all(prepared)
    for (const bypass of this.#bypasses.values()) await bypass.revive(index)
  }
}
