import { InputError, type Position } from '../../base/errors.ts'
import { isLoopback } from '../../base/loopback.ts'
import { checkDirectoryOf } from '../../base/persist/state-file.ts'
import type { ResourceLease } from '../../base/resource-registry.ts'
import { lazyKey } from '../../base/shared-values.ts'
import { EndpointHistory } from '../../base/telemetry/endpoint-history.ts'
import { EndpointLists } from '../../base/telemetry/endpoint-lists.ts'
import { EventLog } from '../../base/telemetry/event-log.ts'
import { oneProblem, type ProblemGroup } from '../../base/telemetry/problems.ts'
import { DrainIndex } from '../../health/drain/drain-index.ts'
import { Shifts } from '../../health/shift/shifts.ts'
import type { AdminSite } from '../../plugin/admin.ts'
import type { AnswerExplainer } from '../../plugin/answer-explainer.ts'
import type { CheckHook, DirectivePart } from '../../plugin/description.ts'
import type { Directive, SetupContext } from '../../plugin/directive.ts'
import { RecordZoneIndex } from '../../publish/record-zone-index.ts'
import { CertificateFiles } from './certificate.ts'
import { Drains } from './drains.ts'
import { Endpoints } from './endpoints.ts'
import { EventFile } from './event-file.ts'
import { Explanations } from './explanations.ts'
import { Fleet } from './fleet.ts'
import { ServedNameLists } from './names.ts'
import { type AdminOptions, scanAdmin } from './options.ts'
import { ownViews } from './own-views.ts'
import { composeStatus, statusSource } from './server-status.ts'
import { OrderedShifts } from './shifts.ts'
import { TokenFiles } from './token.ts'
import { countTraffic, type TrafficPart } from './traffic/setup.ts'

/** The admin APIs of one Corefile. */
class AdminBlocks {
  /** Settings as text, by address. */
  readonly settings = new Map<string, string>()
  isAnnounced = false
  /** Undefined = no console is on. */
  traffic: TrafficPart | undefined
}

const ADMIN_BLOCKS = lazyKey('admin APIs', () => new AdminBlocks())

/** `admin [ADDRESS] { PROPERTY... }`: the HTTP API of the server. */
export const admin: Directive = {
  name: 'admin',
  setup(c) {
    const { dispenser } = c
    const { options, position } = scanAdmin(dispenser, c.block.root)
    const blocks = c.shared.acquire(ADMIN_BLOCKS)
    const settings = JSON.stringify(options)
    const { address } = options
    if ((blocks.settings.get(address) ?? settings) !== settings) {
      const message = `admin ${address} has other properties in another server block`
      throw new InputError(position, message)
    }
    blocks.settings.set(address, settings)
    const counting: DirectivePart[] = []
    if (options.console === true && blocks.traffic === undefined) {
      blocks.traffic = countTraffic(c)
      counting.push(blocks.traffic.part)
    }
    return [...counting, serve(c, options, blocks, position)]
  },
}

function serve(
  c: SetupContext,
  options: AdminOptions,
  blocks: AdminBlocks,
  position: Position,
): DirectivePart {
  const { address, hosts } = options
  const tokens = TokenFiles.open(options.tokens)
  const certificate = options.tls && new CertificateFiles(options.tls.cert, options.tls.key)
  const check = (): void => {
    tokens?.check()
    certificate?.read()
  }
  let held: Held | undefined
  const explanations = new Explanations(() => openExplainer(c), c.timers)
  const names = new ServedNameLists(() => held?.zones.item, c.clock)
  let loadedMs = c.clock.now()
  let isFirst = false
  const status = statusSource(c.clock, () => composeStatus(c, loadedMs))
  const drains = new Drains(() => held?.drains.item, c.clock)
  const traffic = () => blocks.traffic?.traffic
  const fleet = new Fleet(options.servers, address, ownViews({ status, drains, traffic }), c)
  const site: AdminSite = {
    ...{ address, position, tokens, certificate, hosts },
    readsOpenly: options.console === true && isLoopback(address),
    console: options.console === true,
    log: c.log,
    status,
    events: () => held?.events.item,
    drains,
    shifts: new OrderedShifts(() => c.resources.withPrefix(Shifts, ''), c.clock),
    fleet,
    names: (request) => names.list(request),
    traffic,
    health: new Endpoints(() => held, c.clock),
    ...answersOf(explanations),
  }
  const start = (): void => {
    check()
    isFirst = c.resources.find(EventLog, '') === undefined
    held = acquire(c, options)
  }
  const serving = (): void => {
    loadedMs = c.clock.now()
    const { events, file } = held!
    if (file !== undefined) file.item.octetsMax = options.events!.octetsMax
    if (site.console) c.log.info(`web console: ${consoleUrl(site)}`, 'admin-console-opened')
    if (blocks.isAnnounced) return
    blocks.isAnnounced = true
    const kind = isFirst ? 'start' : 'reload'
    events.item.add({ actor: { kind, name: c.corefile.path }, text: 'the Corefile is served' })
  }
  const stop = async (): Promise<void> => {
    explanations.close()
    fleet.close()
    if (held === undefined) return
    const { file } = held
    const written = file?.item.written()
    for (const lease of Object.values(held)) lease?.release()
    await written
  }
  const problems = () => problemsOf(address, tokens?.faults ?? [], held?.file?.item)
  const checkFiles = checkOf(options, position, [check, () => fleet.check()])
  return { admin: site, check: checkFiles, problems, start, serving, stop }
}

/** The address of the web console for browsers. */
function consoleUrl({ address, certificate, hosts }: AdminSite): string {
  const colon = address.lastIndexOf(':')
  const host = address.slice(0, colon) || (hosts[0] ?? 'localhost')
  return `${certificate === undefined ? 'http' : 'https'}://${host}${address.slice(colon)}/console/`
}

function answersOf(explanations: Explanations): Pick<AdminSite, 'explain' | 'whatIf' | 'map'> {
  return {
    explain: (question) => explanations.explain(question),
    whatIf: (order) => explanations.whatIf(order),
    map: (question) => explanations.map(question),
  }
}

/** What an admin API holds from its start to its stop. */
interface Held {
  readonly events: ResourceLease<EventLog>
  readonly drains: ResourceLease<DrainIndex>
  readonly zones: ResourceLease<RecordZoneIndex>
  readonly history: ResourceLease<EndpointHistory>
  readonly lists: ResourceLease<EndpointLists>
  readonly file: ResourceLease<EventFile> | undefined
}

function acquire(c: SetupContext, options: AdminOptions): Held {
  const { resources } = c
  const events = resources.acquire(EventLog, '', () => new EventLog(c.clock))
  return {
    events,
    drains: resources.acquire(DrainIndex, '', () => new DrainIndex()),
    zones: resources.acquire(RecordZoneIndex, '', () => new RecordZoneIndex()),
    history: resources.acquire(EndpointHistory, '', () => new EndpointHistory(c.clock)),
    lists: resources.acquire(EndpointLists, '', () => new EndpointLists()),
    file: openFile(c, options, events.item),
  }
}

/** `checks`: each throws InputError if a file of the directive can't be used. */
function checkOf(options: AdminOptions, position: Position, checks: (() => void)[]): CheckHook {
  return ({ isOffline, warn }) => {
    if (isOffline) return []
    const missing = options.events === undefined ? '' : checkDirectoryOf(options.events.path)
    if (missing !== '') warn(new InputError(position, `events: ${missing}`))
    try {
      for (const check of checks) check()
      return []
    } catch (error) {
      if (!(error instanceof InputError)) throw error
      return [new InputError(position, error.message, error)]
    }
  }
}

function problemsOf(
  address: string,
  faults: TokenFiles['faults'],
  file: EventFile | undefined,
): readonly ProblemGroup[] {
  const ofTokens = faults.map(({ path, reason }) => {
    const problem = { place: path, object: `admin ${address}`, reason }
    return oneProblem('admin-token', `${address} ${path}`, problem)
  })
  return [...ofTokens, ...(file?.problems ?? [])]
}

async function openExplainer(c: SetupContext): Promise<AnswerExplainer | undefined> {
  try {
    return await c.openExplainer()
  } catch (error) {
    // The question is not the reason.
    throw new Error(error instanceof Error ? error.message : String(error), { cause: error })
  }
}

function openFile(
  { resources, log }: SetupContext,
  { events: options }: AdminOptions,
  events: EventLog,
): ResourceLease<EventFile> | undefined {
  if (options === undefined) return undefined
  // A path has one writer, also during a reload that changes the size: two would write each event twice.
  return resources.acquire(EventFile, options.path, () => {
    return new EventFile({ ...options, events, log })
  })
}
