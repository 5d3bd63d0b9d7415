import { InputError } from '../base/errors.ts'
import { ResourceRegistry } from '../base/resource-registry.ts'
import { createLogger, type Logger } from '../base/telemetry/log.ts'
import type { ParseOptions } from '../corefile/parser.ts'
import type { AdminSite } from '../plugin/admin.ts'
import type { LoadDirectives } from '../plugin/directive.ts'
import { type CorefileSource, loadCorefile } from './corefile-source.ts'
import { Instance, type InstanceParts } from './instance.ts'
import type { ListenPlan } from './listen-plan.ts'
import { ListenerSet, type WantedListener } from './listener-set.ts'
import type { HttpRoute } from './setup.ts'
import { ControlChannel } from './thread-channel.ts'

/** An open DNS address, UDP and TCP. */
export interface DnsListener extends WantedListener<ListenPlan> {
  /** The actual port, if port 0 was requested. */
  readonly port: number
}

/** A step of the data threads from one instance to the next: commit or abandon it. */
export interface DataChange {
  /** Makes each thread serve the new instance between two batches. Resolves once all threads do. */
  commit(): Promise<void>
  abandon(): void
}

/** Threads that answer UDP queries in addition to this one. */
export interface DataThreads {
  /**
   * Sets `instance` up in every thread, beside the one that serves. Addresses opened from then on
   * are served by the new instance. If that fails, rejects and changes nothing.
   */
  prepare(instance: Instance, channel: ControlChannel): Promise<DataChange>
  /** Ends the threads. The caller has closed their sockets before. */
  close(): Promise<void>
}

/** What a supervisor gets from outside. */
export interface SupervisorParts
  extends Omit<InstanceParts, 'directives' | 'requestReload' | 'channel' | 'resources'> {
  readonly loadDirectives: LoadDirectives
  readonly declaredNames?: ParseOptions['declaredNames']
  readonly env: Readonly<Record<string, string | undefined>>
  /** Opens an address and serves `plan` there. Rejects if the address is not available. */
  readonly openDns: (plan: ListenPlan) => Promise<DnsListener>
  /** Opens an HTTP address and serves `routes` there. */
  readonly openHttp: (
    address: string,
    routes: readonly HttpRoute[],
  ) => Promise<WantedListener<readonly HttpRoute[]>>
  /** Opens the address of an admin API and serves the API there. */
  readonly openAdmin: (key: string, site: AdminSite) => Promise<WantedListener<AdminSite>>
  /** Undefined = this thread serves UDP too. */
  readonly dataThreads?: DataThreads | undefined
}

/** Result of a stop: 0, 4 = a shutdown hook failed, 3 = a socket did not close. */
type StopCode = 0 | 3 | 4

/**
 * Keeps one instance serving: starts it, replaces it on reload, stops it. Reloads wait for earlier
 * reloads and for the start.
 *
 *     start:  parse ─▶ directives loaded ─▶ setups ─┬▶ start-up hooks ─┬▶ DNS sockets, HTTP ─▶ serving
 *                                                   └▶ data threads ───┘
 *     reload: the same beside the old instance ─▶ swap ─▶ dropped sockets, old shutdown hooks
 *             └ any failure: the new one is shut down, the old one is not affected
 */
export class Supervisor {
  readonly #source: CorefileSource
  readonly #parts: SupervisorParts
  readonly #log: Logger
  readonly #dns: ListenerSet<ListenPlan, DnsListener>
  readonly #http: ListenerSet<readonly HttpRoute[], WantedListener<readonly HttpRoute[]>>
  readonly #admin: ListenerSet<AdminSite, WantedListener<AdminSite>>
  /** Outlives each instance: at a reload, the new one holds what the old one has open. */
  readonly #resources = new ResourceRegistry()
  #instance: Instance | undefined
  /** The current step; the next step waits for it. */
  #busy: Promise<unknown> = Promise.resolve()
  /** True once the first start has ended: until then the process has served no query. */
  #isFirstStartOver = false
  #stopping = false

  constructor(source: CorefileSource, parts: SupervisorParts) {
    this.#source = source
    this.#parts = parts
    this.#log = createLogger('', parts.sink, () => false)
    this.#dns = new ListenerSet((_, plan) => parts.openDns(plan))
    this.#http = new ListenerSet(parts.openHttp)
    this.#admin = new ListenerSet(parts.openAdmin)
  }

  /** The plans that are served now, with the actual port if port 0 was requested. */
  get plans(): readonly ListenPlan[] {
    return (this.#instance?.plans ?? []).map((plan) => {
      return { ...plan, port: this.#dns.get(plan.address)?.port ?? plan.port }
    })
  }

  /** Starts serving. On a fault, shuts everything down again and rejects with the first fault. */
  start(): Promise<void> {
    const started = this.#inTurn(() => this.#replace())
    return started.finally(() => {
      this.#isFirstStartOver = true
    })
  }

  /** Reads the Corefile again and applies it. On failure, logs the reason and resolves to false. */
  async reload(): Promise<boolean> {
    return (await this.tryToReload()) === ''
  }

  /** As `reload`, but resolves to the reason for a failure; '' = success. */
  tryToReload(): Promise<string> {
    return this.#inTurn(async () => {
      if (this.#stopping) return 'the server is ending'
      this.#log.info('Reloading', 'reload-started')
      try {
        await this.#replace()
      } catch (error) {
        const fault = describe(error)
        this.#log.error(`Restart failed: ${fault}`, 'reload-failed')
        return fault
      }
      this.#log.info('Reloading complete', 'reload-complete')
      return ''
    })
  }

  /**
   * Runs the final hooks while still serving, then closes every socket and runs the other hooks.
   * Does not wait for a start in progress to end: reading its input may take longer than the
   * service manager waits.
   */
  stop(): Promise<StopCode> {
    this.#stopping = true
    const stopped = this.#shutDown()
    return this.#isFirstStartOver ? stopped : Promise.resolve(0)
  }

  #shutDown(): Promise<StopCode> {
    return this.#inTurn(async () => {
      const instance = this.#instance
      if (instance === undefined) return 0
      this.#instance = undefined
      const faults = await instance.finalShutDown()
      const closed = await Promise.allSettled([
        this.#dns.close(),
        this.#http.close(),
        this.#admin.close(),
      ])
      await this.#parts.dataThreads?.close()
      faults.push(...(await instance.shutDown()))
      for (const fault of faults) this.#log.error(describe(fault), 'shutdown-hook-failed')
      const stuck = closed.filter((result) => result.status === 'rejected')
      for (const { reason } of stuck)
        this.#log.error(`Stopping: ${describe(reason)}`, 'stop-failed')
      if (stuck.length > 0) return 3
      return faults.length > 0 ? 4 : 0
    })
  }

  #inTurn<Result>(step: () => Promise<Result>): Promise<Result> {
    const result = this.#busy.then(step)
    this.#busy = result.catch(() => {})
    return result
  }

  async #replace(): Promise<void> {
    const channel = new ControlChannel()
    const next = await this.#setUp(channel)
    // Threads load their modules while the hooks read files and wait for programs and other servers.
    const threads = this.#parts.dataThreads?.prepare(next, channel)
    threads?.catch(() => {})
    try {
      await next.startUp()
      await this.#moveTo(next, await threads)
    } catch (error) {
      const prepared = await threads?.catch(() => undefined)
      prepared?.abandon()
      await next.shutDown()
      throw error
    }
  }

  async #setUp(channel: ControlChannel): Promise<Instance> {
    const parts = this.#parts
    const { blocks, view } = loadCorefile(this.#source, parts.dnsPort, {
      env: parts.env,
      directiveNames: parts.directiveNames,
      declaredNames: parts.declaredNames,
      warn: (message) => parts.sink(`[WARNING] ${message}`),
    })
    const requestReload = () => this.tryToReload()
    const { instance, errors } = Instance.create(blocks, view, {
      ...parts,
      directives: await parts.loadDirectives(blocks, view.path),
      requestReload,
      resources: this.#resources,
      channel: channel,
    })
    if (errors[0] !== undefined) throw errors[0]
    for (const warning of instance.warnings)
      this.#log.warning(describe(warning), 'configuration-warning')
    return instance
  }

  /** `data`: the threads, which serve a socket as soon as it is open. */
  async #moveTo(next: Instance, data: DataChange | undefined): Promise<void> {
    const plans = new Map(next.plans.map((plan) => [plan.address, plan]))
    const dns = await this.#dns.prepare(plans)
    const http = await this.#http.prepare(next.httpRoutes()).catch(async (error) => {
      await dns.abandon()
      throw error
    })
    const admin = await this.#admin.prepare(next.adminSites()).catch(async (error) => {
      await http.abandon()
      await dns.abandon()
      throw error
    })
    const old = this.#instance
    this.#instance = next
    // All swap before the first await: no query sees half of each instance.
    const closed = await Promise.allSettled([
      dns.commit(),
      http.commit(),
      admin.commit(),
      data?.commit(),
    ])
    for (const result of closed) {
      if (result.status === 'rejected')
        this.#log.error(`Stopping: ${describe(result.reason)}`, 'stop-failed')
    }
    next.serving()
    for (const fault of (await old?.shutDown()) ?? [])
      this.#log.error(describe(fault), 'shutdown-hook-failed')
  }
}

/** Returns the error as one line for people, with its position if it has one. */
export function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (!(error instanceof InputError) || error.position === undefined) return error.message
  // Messages of the parser contain their position, in CoreDNS's form.
  const { file, line } = error.position
  return error.message.includes(`${file}:${line} - `) ? error.message : error.print()
}
