import { Backoff } from '../../base/backoff.ts'
import { Random } from '../../base/random.ts'
import type { Logger } from '../../base/telemetry/log.ts'
import type { Timers } from '../../base/timers.ts'
import * as entries from './entry.ts'
import { FrameEncoder, type FrameTexts, framesOf } from './frames.ts'
import * as memory from './memory.ts'
import { type OpenedSocket, SinkConnection } from './sink-connection.ts'

// Bound in this module: V8 folds its constants, but looks up and checks an import at every use.
const { OCTETS } = entries
const { entryOctets, entryWords, FRAMES_FULL_OCTETS, frameOctets } = memory

export interface SinkSettings extends FrameTexts {
  /** For log lines. */
  readonly name: string
  /** Most octets that are passed to the system and that the sink has not read. */
  readonly writeOctetsMax: number
  /** Most messages that wait for that, */
  readonly queueMessagesMax: number
  /** and their octets. */
  readonly queueOctetsMax: number
}

interface SinkParts {
  /** Opens a connection, or returns the one that the sink opened. */
  readonly open: () => OpenedSocket
  /** Called at the end of a connection that the sink opened; undefined = another one is opened. */
  readonly onGone?: (() => void) | undefined
  readonly log: Logger
  readonly timers: Timers
  /** Seed of the waits between attempts. */
  readonly seed: number
  readonly sent: (messages: number) => void
  readonly lost: (messages: number) => void
}

/** Frames of several messages. */
interface Chunk {
  readonly octets: Uint8Array
  /** The memory of `octets`, if it is used again. */
  readonly spare: Buffer | undefined
  readonly messages: number
}

/** Room of a chunk: more than `receive` appends at once. */
const CHUNK_OCTETS = 2 ** 19
/** Memory for so many chunks is used again and again; others get memory of their own. */
const SPARES = 2
/** Losses are logged at most once in this time. */
const REPORT_MS = 10_000

/** Sends messages to one sink. A sink that is away, slow or closed costs messages, never time of a query. */
export class TapSink {
  readonly #settings: SinkSettings
  readonly #parts: SinkParts
  readonly #encoder: FrameEncoder
  readonly #backoff: Backoff
  readonly #queue: Chunk[] = []
  #queuedMessages = 0
  #queuedOctets = 0
  /** Memory of the open chunk, and its end. */
  #chunk: Buffer = Buffer.allocUnsafeSlow(CHUNK_OCTETS)
  #end = 0
  #chunkMessages = 0
  readonly #spares: Buffer[] = Array.from({ length: SPARES }, () =>
    Buffer.allocUnsafeSlow(CHUNK_OCTETS),
  )
  #flushing: NodeJS.Immediate | undefined
  #connection: SinkConnection | undefined
  #cancelAttempt = (): void => {}
  #stopReports = (): void => {}
  /** Since the last report. */
  #lost = 0
  /** The reason of the failure that was logged last; '' = the sink was connected since. */
  #fault = ''
  #wasOpen = false
  #isStopping = false
  #stopped = (): void => {}

  constructor(settings: SinkSettings, parts: SinkParts) {
    this.#settings = settings
    this.#parts = parts
    this.#encoder = new FrameEncoder(settings)
    this.#backoff = new Backoff(new Random(parts.seed))
  }

  /** The sink accepts messages now. */
  get isOpen(): boolean {
    return this.#connection?.isOpen === true
  }

  start(): void {
    this.#stopReports = this.#parts.timers.every(REPORT_MS, () => this.#report())
    this.#connect()
  }

  /** Resolves once the sink has read what waits, or after about a second. */
  async stop(): Promise<void> {
    this.#isStopping = true
    clearImmediate(this.#flushing)
    this.#closeChunk()
    this.#cancelAttempt()
    const connection = this.#connection
    if (connection !== undefined) {
      const stopped = new Promise<void>((resolve) => {
        this.#stopped = resolve
      })
      if (connection.isOpen) {
        // The last time: more than usual may wait.
        while (this.#writeOne(connection));
      }
      connection.finish()
      await stopped
    }
    this.#lose(this.#queuedMessages)
    this.#queue.length = 0
    this.#queuedMessages = 0
    this.#stopReports()
    this.#report()
  }

  /** Encodes entries. They are sent at the end of the turn, so that each system call sends many. */
  receive(octets: Uint8Array): void {
    entryOctets.set(octets)
    const end = octets.length >> 2
    let to = 0
    let messages = 0
    for (let at = 0; at < end; at += entryWords[at + OCTETS]! >> 2) {
      const frames = framesOf(at)
      if (!this.#hasRoom(messages + frames, to)) {
        this.#append(to, messages)
        to = 0
        messages = 0
        // What the connection accepts does not wait.
        this.#flush()
        if (!this.#hasRoom(frames, 0)) {
          this.#lose(frames)
          continue
        }
      }
      to = this.#encoder.encode(to, at)
      messages += frames
      if (to < FRAMES_FULL_OCTETS) continue
      this.#append(to, messages)
      to = 0
      messages = 0
    }
    this.#append(to, messages)
    this.#flushing ??= setImmediate(() => {
      this.#flushing = undefined
      this.#flush()
    })
  }

  /** Whether so many messages, and one more entry, may wait. */
  #hasRoom(messages: number, octets: number): boolean {
    const { queueMessagesMax, queueOctetsMax } = this.#settings
    return (
      !this.#isStopping &&
      this.#queuedMessages + this.#chunkMessages + messages <= queueMessagesMax &&
      this.#queuedOctets + this.#end + octets < queueOctetsMax
    )
  }

  /** Adds the first `octets` octets of `frameOctets` to the open chunk. */
  #append(octets: number, messages: number): void {
    if (this.#end + octets > CHUNK_OCTETS) this.#closeChunk()
    frameOctets.copy(this.#chunk, this.#end, 0, octets)
    this.#end += octets
    this.#chunkMessages += messages
  }

  #closeChunk(): void {
    if (this.#chunkMessages === 0) return
    const messages = this.#chunkMessages
    const filled = this.#chunk.subarray(0, this.#end)
    const next = this.#spares.pop()
    if (next === undefined) {
      this.#queue.push({ octets: Buffer.from(filled), spare: undefined, messages })
    } else {
      this.#queue.push({ octets: filled, spare: this.#chunk, messages })
      this.#chunk = next
    }
    this.#queuedMessages += messages
    this.#queuedOctets += filled.length
    this.#end = 0
    this.#chunkMessages = 0
  }

  /** Passes what waits to the connection, as far as that has room. */
  #flush(): void {
    this.#closeChunk()
    const connection = this.#connection
    if (connection === undefined || !connection.isOpen) return
    while (connection.waitingOctets < this.#settings.writeOctetsMax) {
      if (!this.#writeOne(connection)) return
    }
  }

  #writeOne(connection: SinkConnection): boolean {
    const chunk = this.#queue.shift()
    if (chunk === undefined) return false
    this.#queuedMessages -= chunk.messages
    this.#queuedOctets -= chunk.octets.length
    connection.write(chunk.octets, (isSent) => {
      if (chunk.spare !== undefined) this.#spares.push(chunk.spare)
      if (isSent) this.#parts.sent(chunk.messages)
      else this.#lose(chunk.messages)
      this.#flush()
    })
    return true
  }

  #lose(messages: number): void {
    if (messages === 0) return
    this.#lost += messages
    this.#parts.lost(messages)
  }

  #report(): void {
    if (this.#lost === 0) return
    const { name } = this.#settings
    this.#parts.log.warning(`${name}: lost ${this.#lost} messages`, 'dnstap-lost')
    this.#lost = 0
  }

  #connect(): void {
    const { open, timers } = this.#parts
    this.#connection = new SinkConnection(open(), timers, {
      onOpen: () => this.#onOpen(),
      onEnd: (reason) => this.#onEnd(reason),
    })
  }

  #onOpen(): void {
    this.#backoff.reset()
    this.#wasOpen = true
    this.#fault = ''
    this.#parts.log.info(`connected to ${this.#settings.name}`, 'dnstap-connected')
    this.#flush()
  }

  #onEnd(reason: string): void {
    this.#connection = undefined
    this.#stopped()
    if (this.#isStopping) return
    const { log, timers, onGone } = this.#parts
    if (onGone !== undefined) {
      // Any client could fill the log with connections that never were open.
      if (this.#wasOpen) {
        log.info(`connection to ${this.#settings.name} ended: ${reason}`, 'dnstap-disconnected')
      }
      void this.stop()
      onGone()
      return
    }
    if (reason !== this.#fault) {
      const { name } = this.#settings
      log.warning(`no connection to ${name}, trying again: ${reason}`, 'dnstap-disconnected')
    }
    this.#fault = reason
    this.#cancelAttempt = timers.after(this.#backoff.next(), () => this.#connect())
  }
}
