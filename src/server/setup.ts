import type { Clock } from '../base/clock.ts'
import { AbsentDirectiveWarning, InputError, InputErrors, type Position } from '../base/errors.ts'
import type { ResourceRegistry } from '../base/resource-registry.ts'
import { SharedValues } from '../base/shared-values.ts'
import type { LineWriter } from '../base/telemetry/lines.ts'
import { createLogger, type LogSink } from '../base/telemetry/log.ts'
import type { MetricsRegistry } from '../base/telemetry/metrics.ts'
import type { ProblemReport } from '../base/telemetry/problems.ts'
import type { StatusPart } from '../base/telemetry/status.ts'
import type { Timers } from '../base/timers.ts'
import { Dispenser } from '../corefile/dispenser.ts'
import { type Key, scanKey } from '../corefile/key.ts'
import { nameUnset, type ServerBlock } from '../corefile/parser.ts'
import type { Token } from '../corefile/token.ts'
import type { AdminSite } from '../plugin/admin.ts'
import type { AnswerExplainer } from '../plugin/answer-explainer.ts'
import { type DirectivePart, type HttpEndpoint, partsOf } from '../plugin/description.ts'
import {
  type BlockConfig,
  type CorefileView,
  type Directive,
  type ReadinessCheck,
  readinessOf,
  type SetupContext,
} from '../plugin/directive.ts'
import type { HandlerFactory } from '../plugin/handler.ts'
import { Metadata } from '../plugin/metadata.ts'
import { SERVER_COUNTERS, type ServerCounters } from '../plugin/server-counters.ts'
import type { AnswerSource } from '../zone/lookup/answer-source.ts'
import { besideNotify, collectingSource, handingOver, linkChain } from './chain.ts'
import type { LoadedBlock } from './listen-plan.ts'
import type { ThreadChannel } from './thread-channel.ts'

/** What setups get from the process; the same for every instance. */
export interface SetupParts {
  /** The directives that the Corefile names, as far as they exist. */
  readonly directives: readonly Directive[]
  /** The names of all directives that have no `place`, in the order of the chain. */
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

/** The directive that faults are charged to. */
export interface DirectivePlace {
  readonly directive: string
  readonly position: Position
}

export interface RegisteredPart extends DirectivePlace {
  readonly part: DirectivePart
}

export interface HttpRoute extends DirectivePlace, HttpEndpoint {}

/** What the directives of one Corefile do, in the order of the chain. */
export interface Registrations {
  readonly parts: RegisteredPart[]
  readonly http: HttpRoute[]
  readonly admin: AdminSite[]
  readonly reports: {
    readonly readiness: ReadinessCheck[]
    readonly status: (() => StatusPart)[]
    readonly problems: ProblemReport[]
  }
  /** See `SetupContext`. */
  readonly shared: SharedValues
  /** Set by the instance; undefined = it explains nothing. */
  openExplainer: (() => Promise<AnswerExplainer>) | undefined
  /** See `SetupContext`. Set by the instance. */
  findOwnBlock: SetupContext['findOwnBlock']
  /** Settings that work, but probably not as intended. */
  readonly warnings: InputError[]
}

/** A server block while its setups run. */
interface BlockDraft {
  readonly source: ServerBlock
  readonly config: BlockConfig
  readonly keyPositions: readonly Position[]
  readonly links: {
    readonly factory: HandlerFactory
    readonly seesNotify: boolean
    readonly changesAnswers: boolean
  }[]
  /** True if a handler answers queries. */
  answers: boolean
  /** True if a handler takes class CH. */
  takesChaos: boolean
}

const BUFSIZE_OCTETS_DEFAULT = 1232
/** CoreDNS's read, write and idle timeouts. */
const READ_MS_DEFAULT = 3000
const WRITE_MS_DEFAULT = 5000
const IDLE_MS_DEFAULT = 10_000

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
    parts: [],
    http: [],
    admin: [],
    reports: { readiness: [], status: [], problems: [] },
    shared: parts.shared ?? new SharedValues(),
    openExplainer: undefined,
    findOwnBlock: async () => undefined,
    warnings: corefile.unset.map(({ variable, position }) => {
      return new InputError(position, `${variable} is not set; it is replaced by an empty text`)
    }),
  }
  registrations.shared.provide(SERVER_COUNTERS, parts.serverCounters)
  const blockZones = drafts.flatMap(({ config }) => config.keys.map(({ zone }) => zone))
  const directives = new Map(parts.directives.map((directive) => [directive.name, directive]))
  for (const name of chainOrder(parts)) {
    for (const draft of drafts) {
      const tokens = draft.source.directives.get(name)
      if (tokens === undefined) continue
      const all = { ...parts, registrations, corefile, blockZones }
      draft.config.directives.push(name)
      collect(errors, () => setupDirective(name, directives.get(name), tokens, draft, all))
    }
  }
  if (errors.length === 0) for (const { part } of registrations.parts) part.link?.()
  for (const draft of drafts) warnIfUnanswered(draft, registrations.warnings)
  const blocks = drafts.map(({ config, keyPositions, links, takesChaos }) => {
    const sources: AnswerSource[] = []
    const factories = links.map(({ factory, seesNotify }) => {
      const isBeside = config.takesNotify && !seesNotify
      return collectingSource(isBeside ? besideNotify(factory) : factory, sources)
    })
    return { config, keyPositions, chain: linkChain(factories), sources, takesChaos }
  })
  return { blocks, registrations, errors: errors.map((one) => nameUnset(one, corefile.unset)) }
}

/** All names in the order of the chain. Each new directive gets its place among those before it in the list. */
function chainOrder({ directiveNames, directives }: SetupParts): readonly string[] {
  const names = [...directiveNames]
  for (const { name, place } of directives) {
    const at = place === undefined ? -1 : names.indexOf(place.directive)
    if (at === -1 || names.includes(name)) continue
    names.splice(place!.isBefore ? at : at + 1, 0, name)
  }
  return names
}

function warnIfUnanswered({ answers, keyPositions, source }: BlockDraft, warnings: InputError[]) {
  const [position] = keyPositions
  if (answers || position === undefined) return
  const keys = source.keys.map(({ text }) => text).join(' ')
  const message = `no directive of server block ${keys} answers queries: add one, such as file or whoami`
  warnings.push(new AbsentDirectiveWarning(position, message))
}

function draftBlock(source: ServerBlock, dnsPort: number, errors: InputError[]): BlockDraft {
  const keys: Key[] = []
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
      queriesMax: -1,
    },
    waitingMax: 0,
    filters: [],
    viewName: '',
    metadata: new Metadata(),
    shared: new SharedValues(),
    directives: [],
    takesNotify: false,
  }
  return { source, config, keyPositions, links: [], answers: false, takesChaos: false }
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
  tokens: readonly Token[],
  draft: BlockDraft,
  all: ContextParts,
): void {
  const context = createContext(name, tokens, draft, all)
  if (directive === undefined) {
    context.dispenser.next()
    throw context.dispenser.error(`plugin "${name}" is not supported by this version of Sextant`)
  }
  try {
    const { file, line } = tokens[0]!
    const place = { directive: name, position: { file, line } }
    for (const part of partsOf(directive.setup(context))) {
      register({ ...place, part }, draft, all)
      if (part.fault !== undefined) throw part.fault
    }
  } catch (error) {
    if (!(error instanceof InputError)) throw error
    const [first, ...others] = error.all().map((one) => chargeTo(name, one))
    throw new InputErrors(first!, others)
  }
}

function register(placed: RegisteredPart, draft: BlockDraft, all: ContextParts): void {
  const { directive, position, part } = placed
  const { parts, http, admin, reports } = all.registrations
  parts.push(placed)
  if (part.handler !== undefined) {
    const handsOver = part.waits === true && !all.channel.canWait
    const factory = handsOver ? handingOver(part.handler, part.answers === true) : part.handler
    const { seesNotify = false, changesAnswers = false } = part
    draft.links.push({ factory, seesNotify, changesAnswers })
    if (part.answers === true) draft.answers = true
    if (part.takesChaos === true) draft.takesChaos = true
  }
  const first = draft.links.findIndex(({ changesAnswers }) => changesAnswers)
  if (part.handlerAboveChanges !== undefined && first !== -1) {
    const factory = part.handlerAboveChanges
    draft.links.splice(first, 0, { factory, seesNotify: false, changesAnswers: true })
  }
  const { status, problems: groups } = part
  const readiness = readinessOf(directive, part)
  if (readiness !== undefined) reports.readiness.push(readiness)
  if (status !== undefined) reports.status.push(status)
  if (groups !== undefined) reports.problems.push({ plugin: directive, groups })
  if (part.admin !== undefined) admin.push(part.admin)
  if (part.http !== undefined) http.push({ ...part.http, directive, position })
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
  readonly blockZones: readonly Uint8Array[]
}

/** Returns the context for the setup of one directive. `tokens`: its lines in the block. */
function createContext(
  name: string,
  tokens: readonly Token[],
  draft: BlockDraft,
  parts: ContextParts,
): SetupContext {
  const { registrations } = parts
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
    corefile: parts.corefile,
    blockZones: parts.blockZones,
    reports: registrations.reports,
    warn: (message, at) => {
      registrations.warnings.push(chargeTo(name, new InputError(at, message)))
    },
    broadcast: (follow) => parts.channel.broadcast(follow),
    toControl: (receive) => parts.channel.toControl(receive),
    octetsToControl: (receive) => parts.channel.octetsToControl(receive),
    counters: () => parts.channel.counters(),
    requestReload: parts.requestReload,
    openExplainer: async () => registrations.openExplainer?.(),
    findOwnBlock: (server, name) => registrations.findOwnBlock(server, name),
    resources: parts.resources,
    shared: registrations.shared,
  }
}
