import { systemClock } from '../base/clock.ts'
import { type InputError, InputErrors } from '../base/errors.ts'
import { ResourceRegistry } from '../base/resource-registry.ts'
import { SharedValues } from '../base/shared-values.ts'
import { printLine } from '../base/telemetry/lines.ts'
import type { LogSink } from '../base/telemetry/log.ts'
import { NO_METRICS } from '../base/telemetry/metrics.ts'
import { systemTimers } from '../base/timers.ts'
import type { ServerBlock } from '../corefile/parser.ts'
import type { ComparedBlock } from '../explain/served-names.ts'
import type { CorefileView } from '../plugin/directive.ts'
import { DIRECTIVE_NAMES, loadDirectives } from '../plugins/order.ts'
import { declaredNames } from '../plugins/plugin/declared.ts'
import { OFFLINE_PLACE, type OfflineBlock } from '../publish/offline/offline-block.ts'
import { OfflineRecords, type RecordsPlace } from '../publish/offline/offline-records.ts'
import { type CorefileSource, loadCorefile } from '../server/corefile-source.ts'
import { ServerTotals } from '../server/counters.ts'
import { Instance } from '../server/instance.ts'
import { ControlChannel } from '../server/thread-channel.ts'
import type { Output } from './output.ts'

/** What `loadOffline` reads. */
export interface OfflineRequest {
  readonly corefile: CorefileSource
  /** Port of server blocks without a port. */
  readonly dnsPort: number
  /** Read in place of the records that the Corefile names; undefined = those. */
  readonly records?: RecordsPlace | undefined
  /** A server whose records are mostly the same: what it has read is not parsed again. */
  readonly similar?: OfflineServer | undefined
  /** Path of a database to read in place of the one that `geoip` names; undefined = that one. */
  readonly database?: string | undefined
  /** See `OfflineLoad`; default true. */
  readonly readsEntries?: boolean
  /** See `OfflineLoad`; default false. */
  readonly answers?: boolean
}

/** A Corefile whose server blocks are loaded in this process, without listening. */
export interface OfflineServer {
  /** Its chains answer queries once the blocks' `serve` has resolved. */
  readonly instance: Instance
  readonly records: OfflineRecords
  /** The `kuadrant` directives, in the order of the Corefile. */
  readonly blocks: readonly OfflineBlock[]
  /** Releases what was opened. */
  close(): Promise<void>
}

/** Returns the blocks of a server with the records of another place. */
export function editRecords(
  { blocks, records }: OfflineServer,
  instead: RecordsPlace | undefined,
): ComparedBlock[] {
  const edited = new OfflineRecords(instead, records)
  return blocks.map(({ block, zones }) => ({ block, zones: zones.with(edited) }))
}

/** Sets up a Corefile in a process that serves nothing. `sink` receives its log lines. */
export async function composeInstance(
  blocks: readonly ServerBlock[],
  view: CorefileView,
  dnsPort: number,
  { lines, sink }: { readonly lines: Output['lines']; readonly sink: LogSink },
): Promise<{ instance: Instance; errors: readonly InputError[] }> {
  return Instance.create(blocks, view, {
    directives: await loadDirectives(blocks, view.path),
    directiveNames: DIRECTIVE_NAMES,
    dnsPort,
    clock: systemClock,
    timers: systemTimers,
    random: Math.random,
    metrics: NO_METRICS,
    serverCounters: new ServerTotals(),
    sink,
    lines,
    requestReload: () => Promise.resolve('nothing is served'),
    resources: new ResourceRegistry(),
    channel: new ControlChannel(),
  })
}

/**
 * Loads the server blocks of a Corefile with their databases. Records are read when a caller asks a
 * block for them. Listens nowhere, writes no file, and sends nothing. Throws InputError with every
 * fault of the Corefile, or with the first fault of a database. `lines` receives log lines.
 */
export async function loadOffline(
  request: OfflineRequest,
  { lines }: Pick<Output, 'lines'>,
): Promise<OfflineServer> {
  const { corefile, dnsPort, records: instead, similar, database } = request
  const { readsEntries = true, answers = false } = request
  const faults: InputError[] = []
  const { blocks: sources, view } = loadCorefile(corefile, dnsPort, {
    env: process.env,
    directiveNames: DIRECTIVE_NAMES,
    declaredNames,
    warn: () => {},
    onUnknown: (error) => faults.push(error),
  })
  const { instance, errors } = await composeInstance(sources, view, dnsPort, {
    lines,
    sink: (line) => printLine(lines, line),
  })
  const [first, ...others] = [...faults, ...errors]
  if (first !== undefined) throw new InputErrors(first, others)
  const blocks: OfflineBlock[] = []
  const records = new OfflineRecords(instead, similar?.records)
  const shared = new SharedValues()
  shared.provide(OFFLINE_PLACE, { records, blocks })
  const close = async (): Promise<void> => {
    await instance.shutDown()
  }
  try {
    await instance.loadOffline({
      database,
      readsEntries,
      answers,
      shared,
    })
  } catch (error) {
    await close()
    throw error
  }
  return { instance, records, blocks, close }
}
