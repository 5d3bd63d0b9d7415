import { MessageChannel, type MessagePort, type Worker } from 'node:worker_threads'
import { createRing, RingReader } from '../../base/ring.ts'
import type { Libc } from '../../transport/udp/batch/libc.ts'
import { Waker } from '../../transport/udp/batch/wake.ts'
import type { ServerCounts } from '../counters.ts'
import { HangWatchdog } from './hang-watchdog.ts'
import type { DataThreadInit, FromDataThread, ToDataThread } from './messages.ts'
import { processorMs } from './task-time.ts'

/** Room for log lines of some milliseconds at full speed. */
const RING_OCTETS = 2 ** 21

/** Starts a thread that runs a `DataThread` with these; `port` is transferred to it. */
export type StartThread = (init: DataThreadInit, port: MessagePort) => Worker

interface ThreadHandleHooks {
  onMessage(message: FromDataThread): void
  /** Called when the thread ends without a request to end. */
  onDeath(error: Error): void
}

/** The control thread's end of one data thread. */
export class ThreadHandle {
  readonly ring: RingReader
  /** Set once the thread runs. */
  counts: ServerCounts | undefined
  readonly #port: MessagePort
  readonly #waker: Waker
  readonly #worker: Worker
  readonly #pending: Int32Array
  readonly #hooks: ThreadHandleHooks
  /** Requests that wait for a reply, by `answerKey`. */
  readonly #awaited = new Map<
    string,
    { resolve(fault: string): void; reject(error: Error): void }
  >()
  readonly #watchdog = new HangWatchdog()
  /** File with the thread's processor time; set once the thread runs. */
  #taskFile = ''
  /** The fault that the thread will end with. */
  #fault: Error | undefined
  #death: Error | undefined
  #isStopping = false
  readonly #ended: Promise<void>

  constructor(
    libc: Libc,
    start: StartThread,
    secrets: Omit<DataThreadInit, 'wake' | 'ring' | 'pending'>,
    hooks: ThreadHandleHooks,
  ) {
    this.#hooks = hooks
    this.#waker = new Waker(libc)
    const memory = createRing(RING_OCTETS)
    this.ring = new RingReader(memory)
    this.#pending = new Int32Array(new SharedArrayBuffer(4))
    const { port1, port2 } = new MessageChannel()
    this.#port = port1
    const wake = { fd: this.#waker.fd, flag: this.#waker.flag }
    const init = { ...secrets, wake, ring: memory, pending: this.#pending }
    this.#worker = start(init, port2)
    port1.on('message', (message: FromDataThread) => this.#take(message))
    // A listener keeps the process alive, so unref the port. A caller that waits for a reply refs it.
    port1.unref()
    this.#worker.unref()
    this.#worker.on('error', (error) => {
      this.#fault = error instanceof Error ? error : new Error(String(error))
    })
    this.#ended = new Promise((resolve) => {
      this.#worker.on('exit', () => {
        this.#bury(this.#fault ?? new Error('the thread ended'))
        resolve()
      })
    })
  }

  /** False once the thread has ended: its replacement gets all later messages. */
  get isAlive(): boolean {
    return this.#death === undefined
  }

  /** Sends a message and wakes the thread. */
  post(message: ToDataThread): void {
    if (this.#death !== undefined) return
    this.#port.postMessage(message)
    this.#waker.call()
  }

  /**
   * Posts a message, and resolves with the thread's reply `key` (see `answerKey`): '' or a fault.
   * Rejects if the thread ends first.
   */
  ask(key: string, message: ToDataThread): Promise<string> {
    return new Promise((resolve, reject) => {
      if (this.#death !== undefined) {
        reject(this.#death)
        return
      }
      this.#awaited.set(key, { resolve, reject })
      this.#port.ref()
      this.post(message)
    })
  }

  /** Checks the thread; to be called every CHECK_MS. Ends a thread that hangs. */
  look(): void {
    if (this.#death !== undefined) return
    const reason = this.#watchdog.check(this.#waker.looks, () => processorMs(this.#taskFile))
    if (reason === '') return
    this.#fault = new Error(`it hung and was terminated: ${reason}`)
    void this.#worker.terminate()
  }

  /** Counts a received message that a query caused. */
  takePending(): void {
    Atomics.sub(this.#pending, 0, 1)
  }

  /** Ends the thread. Resolves once it has ended. */
  async stop(): Promise<void> {
    this.#worker.ref()
    this.halt()
    await this.#ended
  }

  /** Makes the thread end soon, because the process ends. */
  halt(): void {
    this.#isStopping = true
    this.post({ kind: 'stop' })
  }

  #take(message: FromDataThread): void {
    if (message.kind === 'ready') this.#taskFile = message.taskFile
    const key = answerKey(message)
    const awaited = key === '' ? undefined : this.#awaited.get(key)
    if (awaited !== undefined) {
      this.#awaited.delete(key)
      if (this.#awaited.size === 0) this.#port.unref()
      awaited.resolve('fault' in message ? message.fault : '')
    }
    this.#hooks.onMessage(message)
  }

  #bury(death: Error): void {
    this.#death = death
    this.#port.close()
    this.#waker.close()
    for (const { reject } of this.#awaited.values()) reject(death)
    this.#awaited.clear()
    if (!this.#isStopping) this.#hooks.onDeath(death)
  }
}

/** The key that distinguishes a thread's replies; '' = not a reply. */
function answerKey(message: FromDataThread): string {
  switch (message.kind) {
    case 'prepared':
    case 'committed':
      return `${message.kind} ${message.generation}`
    case 'bypassed':
      return `bypassed ${message.id}`
    case 'detached':
      return `detached ${message.fds.join()}`
    default:
      return ''
  }
}
