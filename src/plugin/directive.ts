import type { Broadcast } from '../base/broadcast.ts'
import type { Clock } from '../base/clock.ts'
import type { Position } from '../base/errors.ts'
import type { ResourceRegistry } from '../base/resource-registry.ts'
import type { SharedValues } from '../base/shared-values.ts'
import type { LineWriter } from '../base/telemetry/lines.ts'
import type { Logger } from '../base/telemetry/log.ts'
import type { MetricsRegistry } from '../base/telemetry/metrics.ts'
import type { OctetChannel } from '../base/telemetry/octet-channel.ts'
import type { ProblemReport } from '../base/telemetry/problems.ts'
import type { StatusPart } from '../base/telemetry/status.ts'
import type { Timers } from '../base/timers.ts'
import type { Dispenser } from '../corefile/dispenser.ts'
import type { Key } from '../corefile/key.ts'
import type { ServerBlock, UnsetVariable } from '../corefile/parser.ts'
import type { HostPort } from '../dns/host-port.ts'
import type { AnswerExplainer } from './answer-explainer.ts'
import type { CounterSlots } from './counter-slots.ts'
import type { Description, DirectivePart } from './description.ts'
import type { Metadata } from './metadata.ts'
import type { Transaction } from './transaction.ts'

/** A place in the chain, directly above or below another directive. */
export interface ChainPlace {
  readonly isBefore: boolean
  readonly directive: string
}

/** A directive of the Corefile: `plugins/<name>/setup.ts` exports one. */
export interface Directive {
  readonly name: string
  /** Its place in the chain, if the program's list of names has none for it. */
  readonly place?: ChainPlace
  /**
   * Reads the directive's tokens and returns what it does. Runs once per server block that names the
   * directive (repeats are concatenated in `c.dispenser`), in the control thread, and again over the
   * same tokens in each data thread. There only `handler` and `link` count; the other members never
   * run. So it must have the same result in all threads. No side effects: code that opens, listens,
   * watches or loads goes into `start`, so that an invalid Corefile changes nothing. Import modules
   * that only such code needs there, because every thread loads what `setup` imports. Throws
   * InputError (`c.dispenser.error…`) on invalid input.
   */
  setup(c: SetupContext): Description
}

/**
 * Loads the directives that blocks name, in any order, and omits unknown ones. `corefile`: path of the Corefile of the
 * blocks; '' = it has none.
 */
export type LoadDirectives = (
  blocks: readonly ServerBlock[],
  corefile: string,
) => Promise<readonly Directive[]>

/** What directives of one server block share with each other and with the server. */
export interface BlockConfig {
  /** What only some of them know, by the keys of the folders that own the values. Complete once all setups ran. */
  readonly shared: SharedValues
  readonly keys: readonly Key[]
  /** Addresses from `bind`; empty = every address. */
  listenHosts: string[]
  /** Base directory of relative paths; set by `root`, default the working directory. */
  root: string
  /** Set by `debug`. */
  debug: boolean
  /** Sockets per address, each served by a data thread; set by `multisocket`, 0 = as many as CPUs. */
  sockets: number
  /** Most octets of a UDP reply, and the size we advertise; set by `bufsize`. */
  bufsizeOctets: number
  /** Set by `timeouts`, in milliseconds; queriesMax -1 = no limit. */
  timeouts: { readMs: number; writeMs: number; idleMs: number; queriesMax: number }
  /** Queries that directives of the block let wait, in addition to those that each address has room for. */
  waitingMax: number
  /** Set by `view`: the block serves a query only if every filter returns true. */
  readonly filters: ((tx: Transaction) => boolean)[]
  viewName: string
  readonly metadata: Metadata
  /** Set by `secondary`: the chain accepts NOTIFYs. */
  takesNotify: boolean
  /** Names of the directives present, in chain order; complete before `start` runs. */
  readonly directives: string[]
}

/** The Corefile that this instance came from. */
export interface CorefileView {
  /** '' if built in or read from standard input: then the file can't be watched. */
  readonly path: string
  /** Digest of the tokens that this instance runs, imported files and their line numbers included. */
  readonly loadedDigest: string
  /** Uses of environment variables that are not set. */
  readonly unset: readonly UnsetVariable[]
  /**
   * Reads and parses the current file and returns its digest. It differs from `loadedDigest` if a
   * reload would change something. Throws InputError if the file can't be read or parsed.
   */
  digest(): string
}

/** What the directives of the instance report; complete once setups ran. */
export interface Reports {
  readonly readiness: readonly ReadinessCheck[]
  readonly status: readonly (() => StatusPart)[]
  readonly problems: readonly ProblemReport[]
}

/** The readiness of one plugin of one block. */
export interface ReadinessCheck {
  readonly name: string
  readonly check: () => string
  readonly note?: (() => string) | undefined
}

/** Returns what a part says on the ready page and in the status; undefined = nothing. */
export function readinessOf(
  name: string,
  { ready, note }: DirectivePart,
): ReadinessCheck | undefined {
  if (ready === undefined && note === undefined) return undefined
  return { name, check: ready ?? (() => ''), note }
}

/** Everything a `setup` can reach. */
export interface SetupContext {
  /** The directive's tokens; its position is in every error. */
  readonly dispenser: Dispenser
  readonly block: BlockConfig
  readonly log: Logger
  /**
   * For lines that are written per query: the caller writes the whole line, without a string and a
   * `plugin/…` prefix.
   */
  readonly lineWriter: LineWriter
  readonly clock: Clock
  readonly timers: Timers
  /** Returns a number in [0, 1), as Math.random. For jitter. */
  readonly random: () => number
  readonly metrics: MetricsRegistry
  /**
   * Reports a part of the Corefile that works, but probably not as intended: a log line at each
   * start and reload, and a warning of `sextant check`.
   */
  warn(message: string, position: Position): void
  /**
   * Shares a value with the data threads: they call `follow` with what the control thread
   * publishes, the first time before any query. The control thread never calls it.
   */
  broadcast<T>(follow: (value: T) => void): Broadcast<T>
  /** Counters of a handler. Each thread has its own, and the control thread can read all of them. */
  counters(): CounterSlots
  /**
   * Sends texts to the control thread: `receive` gets there, soon and in order, each text that any
   * thread passes to the returned function. If too many are in flight, texts are dropped and
   * counted.
   */
  toControl(receive: (text: string) => void): (text: string) => void
  /**
   * As `toControl`, for octets that are written in place. `receive` gets several pieces at once, one
   * after the other, in memory that is valid during the call. Returns undefined on the control
   * thread, which needs no channel to itself.
   */
  octetsToControl(receive: (octets: Uint8Array) => void): OctetChannel | undefined
  readonly reports: Reports
  /**
   * Requests a reload of the Corefile (plugin `reload`). Resolves to the reason of a failure; '' =
   * success.
   */
  requestReload(reason: string): Promise<string>
  /**
   * Opens what explains the answers of this instance. Call it once it serves. Resolves to undefined
   * where nothing is served.
   */
  openExplainer(): Promise<AnswerExplainer | undefined>
  /**
   * Returns the server block of this server that gets queries for a name (lower-case wire form) at an address, whatever
   * the client; undefined = none, or it depends on the client. For `start` and `check`.
   */
  findOwnBlock(server: HostPort, name: Uint8Array): Promise<BlockConfig | undefined>
  readonly corefile: CorefileView
  /** The zones of all server blocks. */
  readonly blockZones: readonly Uint8Array[]
  /** Resources that blocks share, and both instances of a reload. Acquire in `start`, release in `stop`. */
  readonly resources: ResourceRegistry
  /** What the blocks of this Corefile share, in this thread. */
  readonly shared: SharedValues
}
