import type { Clock } from '../base/clock.ts'
import { AbsentDirectiveWarning, InputError, InputErrors, type Position } from '../base/errors.ts'
import type { ResourceRegistry } from '../base/resource-registry.ts'
import { SharedValues } from '../base/shared-values.ts'
import type { Timers } from '../base/timers.ts'
import { Dispenser } from '../corefile/dispenser.ts'
import { scanKey } from '../corefile/key.ts'
import { nameUnset, type ServerBlock } from '../corefile/parser.ts'
import type { Token } from '../corefile/token.ts'
import type { AdminSite } from '../plugin/admin.ts'
import type { AnswerExplainer } from '../plugin/answer-explainer.ts'
import type { CheckHook, HttpReply, OfflineLoad } from '../plugin/description.ts'
import type {
  BlockConfig,
  BlockKey,
  CorefileView,
  Directive,
  ReadinessCheck,
  ServerCounters,
  SetupContext,
} from '../plugin/directive.ts'
import type { HandlerFactory } from '../plugin/handler.ts'
import { Metadata } from '../plugin/metadata.ts'
import type { LineWriter } from '../telemetry/lines.ts'
import { createLogger, type LogSink } from '../telemetry/log.ts'
import type { MetricsRegistry } from '../telemetry/metrics.ts'
import type { ProblemReport } from '../telemetry/problems.ts'
import type { StatusPart } from '../telemetry/status.ts'
import type { AnswerSource } from '../zone/lookup/answer-source.ts'
import { besideNotify, collectingSource, handingOver, linkChain } from './chain.ts'
import type { LoadedBlock } from './listen-plan.ts'
import type { ThreadChannel } from './thread-channel.ts'

/** What setups get from the process; the same for every instance. */
export interface SetupParts {
  /** The directives that the Corefile names, as far as they exist. */
  readonly directives: readonly Directive[]
  /** Every name that a Corefile may hold, in the order of the chain. */
  readonly directiveNames: readonly string[]
  /** Port of keys without a port. */
  readonly dnsPort: number
  readonly clock: Clock
  readonly timers: Timers
  /** See `SetupContext.random`. */
  readonly random: () => number
  readonly metrics: MetricsRegistry
  readonly serverCounters: ServerCounters
  /** Receives finished log lines. */
  readonly sink: LogSink
  /** The same output as `sink`, for lines that are not strings. */
  readonly lines: LineWriter
  readonly requestReload: (reason: string) => Promise<string>
  /** One per process. */
  readonly resources: ResourceRegistry
  /** One per instance. */
  readonly channel: ThreadChannel
  /** Values that exist before the setups. */
  readonly shared?: SharedValues
}

/** A function that a directive registered, and the directive that its faults are charged to. */
export interface Hook<Run> {
  readonly directive: string
  readonly position: Position
  readonly run: Run
}

export interface HttpRoute extends Hook<() => HttpReply | Promise<HttpReply>> {
  readonly address: string
  readonly path: string
}

/** Everything that the setups of one Corefile registered, in the order of the chain. */
export interface Registrations {
  readonly startup: Hook<() => void | Promise<void>>[]
  readonly serving: (() => void)[]
  readonly check: Hook<CheckHook>[]
  readonly offline: Hook<(load: OfflineLoad) => void | Promise<void>>[]
  readonly shutdown: Hook<() => void | Promise<void>>[]
  readonly finalShutdown: Hook<() => void | Promise<void>>[]
  readonly readiness: ReadinessCheck[]
  readonly http: HttpRoute[]
  readonly admin: AdminSite[]
  readonly status: (() => StatusPart)[]
  readonly problems: ProblemReport[]
  readonly linked: Hook<() => void>[]
  /** See `SetupContext`. */
  readonly shared: SharedValues
  /** Set by the instance; undefined = it explains nothing. */
  openExplainer: (() => Promise<AnswerExplainer>) | undefined
  /** Settings that work, but probably not as intended. */
  readonly warnings: InputError[]
}

/** A server block while its setups run. */
interface BlockDraft {
  readonly source: ServerBlock
  readonly config: BlockConfig
  readonly keyPositions: readonly Position[]
  readonly links: { readonly factory: HandlerFactory; readonly seesNotify: boolean }[]
  /** True if a handler answers queries. */
  answers: boolean
}

const BUFSIZE_OCTETS_DEFAULT = 1232
/** CoreDNS's read, write and idle timeouts. */
const READ_MS_DEFAULT = 3000
const WRITE_MS_DEFAULT = 5000
const IDLE_MS_DEFAULT = 10_000

/** The names of the directives to load before `setupBlocks`. */
export function namedDirectives(blocks: readonly ServerBlock[]): ReadonlySet<string> {
  return new Set(blocks.flatMap(({ directives }) => [...directives.keys()]))
}

/**
 * Runs the setups of all blocks: directives in chain order, and blocks in order within each. Has no
 * side effects. Records a failing key or directive and continues, so `errors` holds every fault.
 */
export function setupBlocks(
  sources: readonly ServerBlock[],
  corefile: CorefileView,
  parts: SetupParts,
): { blocks: LoadedBlock[]; registrations: Registrations; errors: InputError[] } {
  const errors: InputError[] = []
  const drafts = sources.map((source) => draftBlock(source, parts.dnsPort, errors))
  const registrations: Registrations = {
    startup: [],
    serving: [],
    check: [],
    offline: [],
    shutdown: [],
    finalShutdown: [],
    readiness: [],
    http: [],
    admin: [],
    status: [],
    problems: [],
    linked: [],
    shared: parts.shared ?? new SharedValues(),
    openExplainer: undefined,
    warnings: corefile.unset.map(({ variable, position }) => {
      return new InputError(position, `${variable} is not set; it is replaced by an empty text`)
    }),
  }
  const directives = new Map(parts.directives.map((directive) => [directive.name, directive]))
  for (const name of parts.directiveNames) {
    for (const draft of drafts) {
      const tokens = draft.source.directives.get(name)
      if (tokens === undefined) continue
      const context = createContext(name, tokens, draft, { ...parts, registrations, corefile })
      draft.config.directives.push(name)
      collect(errors, () => setupDirective(name, directives.get(name), context))
    }
  }
  if (errors.length === 0) for (const hook of registrations.linked) hook.run()
  for (const draft of drafts) warnIfUnanswered(draft, registrations.warnings)
  const blocks = drafts.map(({ config, keyPositions, links }) => {
    const sources: AnswerSource[] = []
    const factories = links.map(({ factory, seesNotify }) => {
      const isBeside = config.takesNotify && !seesNotify
      return collectingSource(isBeside ? besideNotify(factory) : factory, sources)
    })
    return { config, keyPositions, chain: linkChain(factories), sources }
  })
  return { blocks, registrations, errors: errors.map((one) => nameUnset(one, corefile.unset)) }
}

function warnIfUnanswered({ answers, keyPositions, source }: BlockDraft, warnings: InputError[]) {
  const [position] = keyPositions
  if (answers || position === undefined) return
  const keys = source.keys.map(({ text }) => text).join(' ')
  const message = `no directive of server block ${keys} answers queries: add one, such as file or whoami`
  warnings.push(new AbsentDirectiveWarning(position, message))
}

function draftBlock(source: ServerBlock, dnsPort: number, errors: InputError[]): BlockDraft {
  const keys: BlockKey[] = []
  const keyPositions: Position[] = []
  for (const token of source.keys) {
    collect(errors, () => {
      for (const key of scanKey(token, dnsPort)) {
        keys.push(key)
        keyPositions.push({ file: token.file, line: token.line })
      }
    })
  }
  const config: BlockConfig = {
    keys,
    listenHosts: [],
    root: '.',
    debug: false,
    sockets: 0,
    bufsizeOctets: BUFSIZE_OCTETS_DEFAULT,
    timeouts: {
      readMs: READ_MS_DEFAULT,
      writeMs: WRITE_MS_DEFAULT,
      idleMs: IDLE_MS_DEFAULT,
      maxTcpQueries: -1,
    },
    filters: [],
    viewName: '',
    metadata: new Metadata(),
    shared: new SharedValues(),
    directives: [],
    takesNotify: false,
  }
  return { source, config, keyPositions, links: [], answers: false }
}

/** Runs `step`. Adds invalid input to `errors`; rethrows anything else, which is a bug. */
function collect(errors: InputError[], step: () => void): void {
  try {
    step()
  } catch (error) {
    if (!(error instanceof InputError)) throw error
    errors.push(...error.all())
  }
}

function setupDirective(
  name: string,
  directive: Directive | undefined,
  context: SetupContext,
): void {
  if (directive === undefined) {
    context.dispenser.next()
    throw context.dispenser.error(`plugin "${name}" is not supported by this version of Sextant`)
  }
  try {
    directive.setup(context)
  } catch (error) {
    if (!(error instanceof InputError)) throw error
    const [first, ...others] = error.all().map((one) => chargeTo(name, one))
    throw new InputErrors(first!, others)
  }
}

/** Returns the same error with CoreDNS's prefix `plugin/NAME: `, unless the error has it already. */
export function chargeTo(directive: string, error: InputError): InputError {
  const prefix = `plugin/${directive}: `
  if (error.message.startsWith(prefix)) return error
  return new InputError(error.position, `${prefix}${error.message}`, error)
}

/** What the setups of one Corefile share. */
interface ContextParts extends SetupParts {
  readonly registrations: Registrations
  readonly corefile: CorefileView
}

/** Returns the context for the setup of one directive. `tokens`: its lines in the block. */
function createContext(
  name: string,
  tokens: readonly Token[],
  draft: BlockDraft,
  parts: ContextParts,
): SetupContext {
  const { registrations } = parts
  const first = tokens[0]!
  const position = { file: first.file, line: first.line }
  const hook = <Run>(run: Run): Hook<Run> => ({ directive: name, position, run })
  const { config } = draft
  return {
    dispenser: new Dispenser(tokens),
    block: config,
    log: createLogger(`plugin/${name}`, parts.sink, () => config.debug),
    lineWriter: parts.lines,
    clock: parts.clock,
    timers: parts.timers,
    random: parts.random,
    metrics: parts.metrics,
    serverCounters: parts.serverCounters,
    corefile: parts.corefile,
    readiness: registrations.readiness,
    addHandler: (factory, options) => {
      const handsOver = options?.waits === true && !parts.channel.canWait
      const link = handsOver ? handingOver(factory, options.answers === true) : factory
      draft.links.push({ factory: link, seesNotify: options?.seesNotify === true })
      if (options?.answers === true) draft.answers = true
    },
    warn: (message, at) => {
      registrations.warnings.push(chargeTo(name, new InputError(at, message)))
    },
    broadcast: (follow) => parts.channel.broadcast(follow),
    toControl: (receive) => parts.channel.toControl(receive),
    octetsToControl: (receive) => parts.channel.octetsToControl(receive),
    counters: () => parts.channel.counters(),
    onLinked: (run) => registrations.linked.push(hook(run)),
    onStartup: (run) => registrations.startup.push(hook(run)),
    onServing: (run) => registrations.serving.push(run),
    onCheck: (run) => registrations.check.push(hook(run)),
    onOffline: (run) => registrations.offline.push(hook(run)),
    onShutdown: (run) => registrations.shutdown.push(hook(run)),
    onFinalShutdown: (run) => registrations.finalShutdown.push(hook(run)),
    onReady: (check, note) => registrations.readiness.push({ name, check, note }),
    onStatus: (report) => registrations.status.push(report),
    statusReports: registrations.status,
    onProblems: (groups) => registrations.problems.push({ plugin: name, groups }),
    problemReports: registrations.problems,
    admin: (site) => registrations.admin.push(site),
    http: (address, path, run) => registrations.http.push({ address, path, ...hook(run) }),
    requestReload: parts.requestReload,
    openExplainer: async () => registrations.openExplainer?.(),
    resources: parts.resources,
    shared: registrations.shared,
  }
}
