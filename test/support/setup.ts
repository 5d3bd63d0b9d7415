import type { Broadcast } from '../../src/base/broadcast.ts'
import type { InputError, Position } from '../../src/base/errors.ts'
import { ResourceRegistry } from '../../src/base/resource-registry.ts'
import { SharedValues } from '../../src/base/shared-values.ts'
import { createLogger } from '../../src/base/telemetry/log.ts'
import { MetricsRegistry } from '../../src/base/telemetry/metrics.ts'
import type { OctetChannel } from '../../src/base/telemetry/octet-channel.ts'
import { collectProblems, type ProblemReport } from '../../src/base/telemetry/problems.ts'
import type { StatusPart } from '../../src/base/telemetry/status.ts'
import type { Timers } from '../../src/base/timers.ts'
import { Dispenser } from '../../src/corefile/dispenser.ts'
import { scanTokens } from '../../src/corefile/lexer.ts'
import { lowerName, printName, scanName } from '../../src/dns/name/name.ts'
import type { AdminSite } from '../../src/plugin/admin.ts'
import { CHAIN_END } from '../../src/plugin/chain-end.ts'
import type { CounterSlots } from '../../src/plugin/counter-slots.ts'
import {
  type CheckHook,
  type DirectivePart,
  type HttpEndpoint,
  type HttpReply,
  partsOf,
} from '../../src/plugin/description.ts'
import {
  type BlockConfig,
  type Directive,
  type ReadinessCheck,
  readinessOf,
  type SetupContext,
} from '../../src/plugin/directive.ts'
import type { Handler, HandlerFactory } from '../../src/plugin/handler.ts'
import { Metadata } from '../../src/plugin/metadata.ts'
import { SERVER_COUNTERS, type ServerCounters } from '../../src/plugin/server-counters.ts'
import {
  ControlChannel,
  DataChannel,
  type DataChannelHooks,
  type ThreadChannel,
} from '../../src/server/thread-channel.ts'
import { lineBufferTo } from './line-buffer.ts'

export interface SetUpOptions {
  /** Addresses of `bind`. */
  readonly listenHosts?: readonly string[]
  readonly above?: readonly string[]
  readonly channel?: ThreadChannel
  readonly timers?: Timers
  readonly random?: () => number
}

/** Those of this process: what comes after another shares them, as after a reload. */
export const processResources: ResourceRegistry = new ResourceRegistry()

/** One directive set up outside a server, with everything it registered. */
export class SetUp implements SetupContext {
  readonly dispenser: Dispenser
  readonly block: BlockConfig
  readonly metrics = new MetricsRegistry()
  readonly clock = new FakeClock()
  readonly timers: Timers
  readonly random: () => number
  /** Every line written, by loggers and by `lineWriter`. */
  readonly lines: string[] = []
  readonly lineWriter = lineBufferTo(this.lines)
  readonly log
  readonly serverCounters: ServerCounters = {
    threads: 1,
    ignored: 0,
    panics: 0,
    losses: {},
    dropped: new Map(),
  }
  readonly factories: HandlerFactory[] = []
  readonly checks: CheckHook[] = []
  /** What setups warned of, each behind its line. */
  readonly warnings: string[] = []
  readonly endpoints = new Map<string, HttpEndpoint['reply']>()
  readonly readiness: ReadinessCheck[] = []
  readonly statusReports: (() => StatusPart)[] = []
  readonly problemReports: ProblemReport[] = []
  readonly reports = {
    readiness: this.readiness,
    status: this.statusReports,
    problems: this.problemReports,
  }
  readonly adminSites: AdminSite[] = []
  readonly corefile = {
    path: 'Corefile',
    loadedDigest: 'one',
    unset: [],
    digest: () => this.digest,
  }
  /** What `corefile.digest()` says. */
  digest = 'one'
  /** What `requestReload` resolves to: why a reload fails, '' = it does not. */
  reloads = ''
  readonly reloadReasons: string[] = []
  readonly resources = processResources
  readonly openExplainer = async (): Promise<undefined> => undefined
  readonly blockZones = []
  readonly findOwnBlock = async (): Promise<undefined> => undefined
  readonly shared = new SharedValues()
  readonly channel: ThreadChannel
  #isLinked = false
  readonly #parts: readonly DirectivePart[]

  /** `above`: directives of the block that stand above this one in the chain. */
  constructor(
    directive: Directive,
    corefile: string,
    zones: readonly string[] = ['example.org.'],
    {
      above = [],
      channel = new ControlChannel(),
      timers = new FakeTimers(),
      random = () => 0,
      listenHosts = [],
    }: SetUpOptions = {},
  ) {
    this.timers = timers
    this.random = random
    this.channel = channel
    this.dispenser = new Dispenser(scanTokens(corefile, 'Corefile'))
    this.block = blockConfig(zones)
    this.block.listenHosts.push(...listenHosts)
    this.block.directives.push(...above, directive.name)
    this.log = createLogger(
      `plugin/${directive.name}`,
      (line) => this.lines.push(line),
      () => this.block.debug,
    )
    this.shared.provide(SERVER_COUNTERS, this.serverCounters)
    this.#parts = partsOf(directive.setup(this))
    for (const part of this.#parts) this.#register(part, directive.name)
  }

  #register(part: DirectivePart, plugin: string): void {
    const { handler, check, status, problems, admin, http, fault } = part
    const readiness = readinessOf(plugin, part)
    if (handler !== undefined) this.factories.push(handler)
    if (check !== undefined) this.checks.push(check)
    if (readiness !== undefined) this.readiness.push(readiness)
    if (status !== undefined) this.statusReports.push(status)
    if (problems !== undefined) this.problemReports.push({ plugin, groups: problems })
    if (admin !== undefined) this.adminSites.push(admin)
    if (http !== undefined) this.endpoints.set(http.address + http.path, http.reply)
    if (fault !== undefined) throw fault
  }

  warn(message: string, position: Position): void {
    this.warnings.push(`${position.line}: ${message}`)
  }

  broadcast<T>(follow: (value: T) => void): Broadcast<T> {
    return this.channel.broadcast(follow)
  }

  toControl(receive: (text: string) => void): (text: string) => void {
    return this.channel.toControl(receive)
  }

  octetsToControl(receive: (octets: Uint8Array) => void): OctetChannel | undefined {
    return this.channel.octetsToControl(receive)
  }

  counters(): CounterSlots {
    return this.channel.counters()
  }

  async requestReload(reason: string): Promise<string> {
    this.reloadReasons.push(reason)
    return this.reloads
  }

  /** What is wrong, as the ready page has it: the reasons, joined. */
  problemText(): string {
    return collectProblems(this.problemReports)
      .listed.map(({ reason }) => reason)
      .join('\n')
  }

  /** Runs the validations: `faults` and `warnings` as `sextant check` would print them; `read` gets what was read. */
  async check(
    read: (what: string) => void = () => {},
    isOffline = false,
  ): Promise<{ faults: string[]; warnings: string[] }> {
    const warnings: InputError[] = []
    const report = {
      warn: (warning: InputError) => void warnings.push(warning),
      read,
      foresee: () => {},
      isOffline,
    }
    const found = await Promise.all(this.checks.map((hook) => hook(report)))
    return { faults: found.flat().map(printFault), warnings: warnings.map(printFault) }
  }

  /** The directive's link above `next`. */
  handler(next: Handler = CHAIN_END): Handler {
    this.#link()
    return this.factories.reduceRight((below, factory) => factory(below), next)
  }

  #link(): void {
    if (this.#isLinked) return
    this.#isLinked = true
    for (const part of this.#parts) part.link?.()
  }

  async start(): Promise<void> {
    await this.startUp()
    for (const part of this.#parts) part.serving?.()
  }

  /** As `start`, but the sockets are not open yet. */
  async startUp(): Promise<void> {
    this.#link()
    for (const part of this.#parts) await part.start?.()
  }

  async stop(): Promise<void> {
    for (const part of this.#parts) await part.stop?.()
  }

  async exit(): Promise<void> {
    for (const { exit } of this.#parts) if (exit !== undefined) await exit()
    await this.stop()
  }

  /** `query`: what follows the `?` of the URL. `accept`: the header Accept. */
  async get(endpoint: string, { query = '', accept = '' } = {}): Promise<HttpReply> {
    const handler = this.endpoints.get(endpoint)
    if (handler === undefined) throw new Error(`nothing at ${endpoint}`)
    return handler(new URLSearchParams(query), accept)
  }

  /** The value that the metrics page shows for `series` (`name{a="b"}`); undefined if it isn't there. */
  async metric(series: string): Promise<number | undefined> {
    const lines = (await this.metrics.print()).split('\n')
    const line = lines.find((line) => line.startsWith(`${series} `))
    return line === undefined ? undefined : Number(line.slice(series.length + 1))
  }
}

/** A data thread whose output is dropped. */
export const NO_HOOKS: DataChannelHooks = {
  catchUp: () => {},
  send: () => {},
  octetsTo: () => ({ octets: Buffer.alloc(0), begin: () => -1, end: () => {} }),
  announce: () => {},
}

/**
 * The same directive as a data thread has it: nothing is started there, and what `control` publishes,
 * before and from now on, comes as a copy.
 */
export function followerOf(
  control: SetUp,
  directive: Directive,
  corefile: string,
  zones?: readonly string[],
): SetUp {
  const channel = new DataChannel(NO_HOOKS)
  const follower = new SetUp(directive, corefile, zones, { channel })
  const source = control.channel as ControlChannel
  const follow = (index: number, value: unknown): void => {
    channel.follow(index, structuredClone(value))
  }
  for (const [index, value] of source.values()) follow(index, value)
  source.onPublish = follow
  return follower
}

function printFault(error: InputError): string {
  return error.print()
}

/** The message of the error that setting up throws; '' if it passes. */
export function setupError(directive: Directive, corefile: string): string {
  try {
    new SetUp(directive, corefile)
    return ''
  } catch (error) {
    if (error instanceof Error && error.name === 'InputError') return error.message
    throw error
  }
}

export function blockConfig(zones: readonly string[]): BlockConfig {
  return {
    keys: zones.map((text) => {
      const zone = lowerName(scanName(text)!)
      return { scheme: 'dns', zone, zoneText: printName(zone), port: 53 }
    }),
    listenHosts: [],
    root: '.',
    debug: false,
    sockets: 0,
    bufsizeOctets: 1232,
    timeouts: { readMs: 3000, writeMs: 5000, idleMs: 10_000, queriesMax: -1 },
    waitingMax: 0,
    filters: [],
    viewName: '',
    metadata: new Metadata(),
    shared: new SharedValues(),
    directives: [],
    takesNotify: false,
  }
}

/** A clock that stands until it is moved. */
export class FakeClock {
  nowMs = 1_700_000_000_000
  monotonicMs = 1000

  now(): number {
    return this.nowMs
  }

  monotonic(): number {
    return this.monotonicMs
  }

  /** Time passes, by both. */
  pass(milliseconds: number): void {
    this.nowMs += milliseconds
    this.monotonicMs += milliseconds
  }
}

/** A clock of a machine that sleeps now and then. */
export class SleepyClock extends FakeClock {
  #sleptMs = 0

  uptime(): number {
    return this.monotonicMs + this.#sleptMs
  }

  sleep(milliseconds: number): void {
    this.nowMs += milliseconds
    this.#sleptMs += milliseconds
  }
}

/** Timers that run when the test advances them. */
export class FakeTimers implements Timers {
  #nowMs = 0
  readonly #pending = new Set<{ dueMs: number; intervalMs: number; run: () => void }>()

  every(intervalMs: number, run: () => void): () => void {
    return this.#add(intervalMs, intervalMs, run)
  }

  after(delayMs: number, run: () => void): () => void {
    return this.#add(delayMs, 0, run)
  }

  #add(delayMs: number, intervalMs: number, run: () => void): () => void {
    const timer = { dueMs: this.#nowMs + delayMs, intervalMs, run }
    this.#pending.add(timer)
    return () => this.#pending.delete(timer)
  }

  /** Timers that are waiting. */
  get count(): number {
    return this.#pending.size
  }

  /** Moves the time on and runs what falls due, in order; then lets promises settle. */
  async advance(milliseconds: number): Promise<void> {
    const endMs = this.#nowMs + milliseconds
    for (;;) {
      const due = [...this.#pending].filter((timer) => timer.dueMs <= endMs)
      const first = due.sort((a, b) => a.dueMs - b.dueMs)[0]
      if (first === undefined) break
      this.#nowMs = first.dueMs
      if (first.intervalMs === 0) this.#pending.delete(first)
      else first.dueMs += first.intervalMs
      first.run()
      await new Promise((settled) => setImmediate(settled))
    }
    this.#nowMs = endMs
  }
}
