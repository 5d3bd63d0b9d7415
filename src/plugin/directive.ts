import type { Clock } from '../base/clock.ts'
import type { InputError, Position } from '../base/errors.ts'
import type { Dispenser } from '../corefile/dispenser.ts'
import type { UnsetVariable } from '../corefile/parser.ts'
import type { TsigKeyring } from '../dns/tsig/key.ts'
import type { Locator } from '../geo/locator.ts'
import type { LineWriter } from '../telemetry/lines.ts'
import type { Logger } from '../telemetry/log.ts'
import type { MetricsRegistry } from '../telemetry/metrics.ts'
import type { RecordWriter } from '../telemetry/records.ts'
import type { Broadcast } from './broadcast.ts'
import type { CounterSlots } from './counter-slots.ts'
import type { HandlerFactory } from './handler.ts'
import type { MetadataProvider } from './metadata.ts'
import type { ReplyLimiter } from './reply-limiter.ts'
import type { Transaction } from './transaction.ts'
import type { ZoneVersions } from './zone-versions.ts'

/** A directive of the Corefile: `plugins/<name>/setup.ts` exports one. */
export interface Directive {
  readonly name: string
  /**
   * Reads the directive's tokens and registers what it needs with `c`. Runs once per server block
   * that names the directive (repeats are concatenated in `c.dispenser`), in the control thread and
   * again, from the same tokens, in each data thread: there only handlers and `onLinked` count, the
   * other hooks never run. So it must come to the same in all of them. No side effects: whatever
   * opens, listens, watches or loads goes into `c.onStartup`, so that a bad Corefile leaves
   * everything as it was; and what is needed for that alone is imported there, since every thread loads
   * what `setup` imports. Throws InputError (`c.dispenser.error…`) on bad input.
   */
  setup(c: SetupContext): void
}

/** Loads the directives of these names, in any order; names that there is none of are left out. */
export type LoadDirectives = (names: ReadonlySet<string>) => Promise<readonly Directive[]>

/** One key of a server block, `[scheme://]zone[:port]`. */
export interface BlockKey {
  readonly scheme: 'dns' | 'tls' | 'quic' | 'grpc' | 'https' | 'https3'
  /** Lower-case wire form. */
  readonly zone: Uint8Array
  /** Presentation form, lower case, with the final dot. */
  readonly zoneText: string
  readonly port: number
}

/** What directives of one server block share with each other and with the server. */
export interface BlockConfig {
  readonly keys: readonly BlockKey[]
  /** Addresses from `bind`; empty = every address. */
  listenHosts: string[]
  /** Directory that relative paths start from; set by `root`, default the working directory. */
  root: string
  /** Set by `debug`. */
  debug: boolean
  /** Sockets per address, each served by a data thread; set by `multisocket`, 0 = as many as CPUs. */
  sockets: number
  /** Most octets of a UDP reply, and the size we advertise; set by `bufsize`. */
  bufsizeOctets: number
  /** Set by `timeouts`, in milliseconds; maxTcpQueries -1 = no limit. */
  timeouts: { readMs: number; writeMs: number; idleMs: number; maxTcpQueries: number }
  /** Set by `view`: the block serves a query only if every filter says true. */
  readonly filters: ((tx: Transaction) => boolean)[]
  /** Set by `rrl`. */
  limiter: ReplyLimiter | undefined
  viewName: string
  /** Set by `geoip`: where clients are. */
  locator: Locator | undefined
  /** Set by `geoip`: texts of the codes that some address matches. Takes seconds, for `sextant check`. */
  geoCodes: (() => ReadonlySet<string>) | undefined
  /** Set by `geoip` with `edns-subnet`: the metadata `geoip/…` is of the client subnet, if there is one. */
  locatesSubnet: boolean
  /** Set by `metadata`: labels are collected for this block. */
  metadataEnabled: boolean
  /** By label, e.g. `geoip/country/code`. Read through `findMetadata` once all setups ran. */
  readonly metadata: Map<string, MetadataProvider>
  /** Labels that directives of the block read, each noted in its setup: providers may keep what they need for these. */
  readonly metadataRead: Set<string>
  /** Filled by `tsig` when it starts: keys that requests are signed with, and that we may sign with. */
  readonly tsigKeys: TsigKeyring
  /** Where directives with zones of their own put the versions in force, for `transfer`. */
  readonly zoneVersions: ZoneVersions
  /** Set by `secondary`: the chain takes in NOTIFYs. */
  takesNotify: boolean
  /** Names of the directives present, in chain order; complete before `onStartup` runs. */
  readonly directives: string[]
}

/** What a validation of `sextant check` reports to, besides the faults that it returns. */
export interface CheckReport {
  /** Takes what is served otherwise than its author may think. */
  warn(warning: InputError): void
  /** Takes what was read, as one line: `zones/db.example.org: zone example.org., 12 records`. */
  read(what: string): void
  /** True: ask no other machine, and do not require what only the machine of the server has. */
  readonly isOffline: boolean
}

/** Returns every fault that would stop a start or refuse content. */
export type CheckHook = (
  report: CheckReport,
) => readonly InputError[] | Promise<readonly InputError[]>

/** Answer of an HTTP endpoint. */
export interface HttpReply {
  readonly status: number
  readonly contentType: string
  readonly body: string
}

/** The Corefile that this instance came from. */
export interface CorefileView {
  /** '' if built in or read from standard input: then there is nothing to watch. */
  readonly path: string
  /** Digest of the tokens that this instance runs, imported files and their line numbers included. */
  readonly loadedDigest: string
  /** Uses of environment variables that are not set. */
  readonly unset: readonly UnsetVariable[]
  /**
   * Reads and parses the file as it is now, and returns its digest: it differs from `loadedDigest`
   * where a reload would change something. Throws InputError if the file can't be read or parsed.
   */
  digest(): string
}

/** What one plugin of one block says of its readiness. */
export interface ReadinessCheck {
  readonly name: string
  readonly check: () => string
  readonly note?: (() => string) | undefined
}

/** What the server has to know of a link of a chain. */
export interface HandlerOptions {
  readonly waits?: boolean
  readonly seesNotify?: boolean
  readonly answers?: boolean
}

/** Everything a `setup` can reach. */
export interface SetupContext {
  /** The directive's tokens; its position is in every error. */
  readonly dispenser: Dispenser
  readonly block: BlockConfig
  readonly log: Logger
  /** For lines that are written per query, whole: no string, no `plugin/…` prefix. */
  readonly lineWriter: LineWriter
  readonly clock: Clock
  readonly metrics: MetricsRegistry
  /** Counters of the server itself: packets that never reached a chain. */
  readonly serverCounters: ServerCounters
  /**
   * Adds a link to the block's chain; order follows plugins/order.ts, not the Corefile. `waits`: its
   * `serve` may return a Promise, so that data threads hand the block's queries to the control thread.
   * `seesNotify`: where the block takes NOTIFYs they come by this link too; by others they pass.
   * `answers`: it answers queries from data of its own. A block without such a link is warned of.
   */
  addHandler(factory: HandlerFactory, options?: HandlerOptions): void
  /**
   * Reports a part of the Corefile that works, but hardly as its author meant: a line of the log at
   * each start and reload, and of `sextant check`.
   */
  warn(message: string, position: Position): void
  /**
   * Shares a value with the data threads: `follow` is called there with what the control thread
   * publishes, the first time before any query. It is never called on the control thread.
   */
  broadcast<T>(follow: (value: T) => void): Broadcast<T>
  /** Counters of a handler, which each thread has its own of, and the control thread can read. */
  counters(): CounterSlots
  /**
   * The way back: what is given to the returned function in any thread gets to `receive` on the
   * control thread, soon and in order, unless so much is under way that it is dropped and counted.
   */
  toControl(receive: (text: string) => void): (text: string) => void
  /**
   * The same for records of words, which come to `receive` some at once, one behind the other, in a memory that is theirs
   * during the call. Undefined on the control thread, which needs no way to itself.
   */
  entriesToControl(receive: (octets: Uint8Array) => void): RecordWriter | undefined
  /** In every thread, after the setups of all blocks: for what looks at what others registered. No I/O. */
  onLinked(hook: () => void): void
  /** After every setup of every block passed, before sockets open. A failure stops the start. */
  onStartup(hook: () => void | Promise<void>): void
  /** Once the sockets of DNS and HTTP are open and this instance answers on them. Must not throw. */
  onServing(hook: () => void): void
  /**
   * Validation for `sextant check`, run instead of `onStartup`: reads the files that the directive
   * names (manifests, zone files, databases) and returns every fault found, each with its position.
   * Opens no socket, starts no watch, keeps nothing. Never called by `serve`.
   */
  onCheck(hook: CheckHook): void
  /**
   * When the instance goes: after a reload swapped it out, at exit, or after its own start failed
   * (then perhaps before this directive's `onStartup` ran: cope).
   */
  onShutdown(hook: () => void | Promise<void>): void
  /** Only at exit, before `onShutdown`; `health`'s lameduck waits here. */
  onFinalShutdown(hook: () => void | Promise<void>): void
  /**
   * Registers a readiness check of this plugin: the reason it isn't ready, or '' if it is. `note`: what
   * the ready page shall say while it is, or ''.
   */
  onReady(check: () => string, note?: () => string): void
  /** All readiness checks of the instance, by plugin name; complete once setups ran. */
  readonly readiness: readonly ReadinessCheck[]
  /** Serves GET `path` on `address` (`:8080`, `127.0.0.1:8080`) from startup to shutdown. */
  http(address: string, path: string, handler: () => HttpReply | Promise<HttpReply>): void
  /** Asks for a reload of the Corefile (plugin `reload`); resolves to why it failed, '' if it did not. */
  requestReload(reason: string): Promise<string>
  readonly corefile: CorefileView
}

/** Counts of packets that ended before any chain, since the process started. */
export interface ServerCounters {
  readonly ignored: number
  readonly panics: number
  readonly losses: Losses
  /** By listen address, `dns://:53`. */
  readonly dropped: ReadonlyMap<string, DroppedCounters>
}

/** Queries that the server itself answered with an error. */
export interface DroppedCounters {
  readonly formErr: number
  readonly notImp: number
  readonly badVers: number
  readonly refused: number
  /** All of them: at `protocol * 2 + (family - 1)`. */
  readonly queries: Readonly<Float64Array>
}

/**
 * What the process dropped since it started, rather than let it wait for ever; what is left out is not
 * known on this machine.
 */
export interface Losses {
  /** UDP queries that came while too many waited for their answers. */
  readonly overloaded?: number
  /** UDP queries that found the kernel's buffer of their socket full. */
  readonly unbuffered?: number
  /** UDP replies that the kernel did not take. */
  readonly unsent?: number
  /** TCP connections over a limit. */
  readonly refusedConnections?: number
  /** TCP connections cut, since the peer did not send or read in time, */
  readonly timedOutConnections?: number
  /** or left too much unread, */
  readonly overrunConnections?: number
  /** or too many queries waited, */
  readonly overloadedConnections?: number
  /** or a message was shorter than a header. */
  readonly malformedConnections?: number
  /** Lines of the log, and other texts of data threads. */
  readonly lines?: number
}
