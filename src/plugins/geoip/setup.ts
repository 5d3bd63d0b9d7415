import { resolve } from 'node:path'
import { InputError, type Position } from '../../base/errors.ts'
import { didYouMean } from '../../base/nearest.ts'
import { EventLog } from '../../base/telemetry/event-log.ts'
import { oneProblem, type ProblemGroup } from '../../base/telemetry/problems.ts'
import type { Dispenser } from '../../corefile/dispenser.ts'
import { verifyEntries } from '../../geo/classes/verify.ts'
import { GEOIP_LABELS } from '../../geo/fields.ts'
import { GEO_COVERAGE, LOCATOR } from '../../geo/locator.ts'
import { Database, type DatabaseImage } from '../../geo/mmdb/database.ts'
import { bundledDatabasePath, loadFileSync } from '../../geo/mmdb/load.ts'
import { MmdbLocator, type MmdbLocatorOptions } from '../../geo/mmdb-locator.ts'
import { joinNets, type Net, scanNet } from '../../geo/net.ts'
import { type JobRunner, runJobInline, runJobInThread } from '../../geo/worker/run-job.ts'
import type { CheckHook, Description, DirectivePart } from '../../plugin/description.ts'
import type { Directive, SetupContext } from '../../plugin/directive.ts'
import { printAge, warnOfAge } from './age.ts'
import { ClientFromSubnet, hasSubnet } from './geoip.ts'
import { GeoipMetrics } from './metrics.ts'

/** Most database files of one block. */
const FILES_MAX = 8

interface GeoipOptions {
  /** As written, each with its position; empty = the bundled database. */
  readonly files: { readonly path: string; readonly position: Position }[]
  readonly nets: Net[]
  ednsSubnet: boolean
}

/** `geoip [DBFILE...] { edns-subnet | net CIDR VALUE... }`: the locations of the block's clients. */
export const geoip: Directive = geoipWith(runJobInThread)

/** The directive with the caller's way to read changed files. */
export function geoipWith(runJob: JobRunner): Directive {
  return { name: 'geoip', setup: (c) => setup(c, runJob) }
}

function setup(c: SetupContext, runJob: JobRunner): Description {
  const options: GeoipOptions = { files: [], nets: [], ednsSubnet: false }
  const check: CheckHook = ({ read }) => {
    return checkDatabases(c, options, { read, nowMs: c.clock.now() })
  }
  try {
    scanOptions(c.dispenser, options)
  } catch (error) {
    if (!(error instanceof InputError)) throw error
    // An invalid property does not hide an invalid file.
    return { check, fault: error }
  }
  return [{ check }, locate(c, options, runJob)]
}

/** Returns the part that opens the databases and offers the locations. */
function locate(c: SetupContext, options: GeoipOptions, runJob: JobRunner): DirectivePart {
  const files = options.files.map(({ path, position }) => {
    return { path: resolve(c.block.root, path), position }
  })
  const paths = files.length === 0 ? [bundledDatabasePath()] : files.map((file) => file.path)
  let run = runJob
  const metrics = new GeoipMetrics(c.metrics)
  const images = c.broadcast<readonly DatabaseImage[]>((value) => locator.follow(value))
  const parts: MmdbLocatorOptions = {
    timers: c.timers,
    runJob: (job) => run(job),
    resources: c.resources,
    paths,
    nets: options.nets,
    onReload: (path, fault) => {
      if (fault === undefined) {
        c.log.info(`Reloaded ${path}`, 'geoip-reloaded')
        const actor = { kind: 'database', name: path } as const
        c.resources.find(EventLog, '')?.add({ actor, text: 'a new version is used' })
        if (locator.images.length > 0) images.publish(locator.images)
        return
      }
      metrics.noteFailure(path, fault)
      c.log.error(`Keeping ${printOld(path, fault)}`, 'geoip-reload-failed')
    },
    onLoad: (path, builtSeconds) => {
      const warning = warnOfAge(path, builtSeconds, c.clock.now())
      if (warning !== '') c.log.warning(warning, 'geoip-warning')
    },
  }
  let locator = new MmdbLocator(parts)
  const { shared, metadata } = c.block
  shared.provide(LOCATOR, locator)
  shared.provide(GEO_COVERAGE, () => locator.coverage())
  metadata.locatesSubnet = options.ednsSubnet
  provideMetadata(c, () => locator, options.ednsSubnet)
  return {
    // Without it the client is the peer, as the server set it: nothing to do per query.
    handler: options.ednsSubnet ? (next) => new ClientFromSubnet(next) : undefined,
    // Queries are still answered with the last valid database.
    problems: () => locator.faults.map(({ path, fault }) => problemOfFile(path, fault)),
    status: () => ({ databases: locator.files.map(statusOf) }),
    start: async () => {
      const readsEntries = c.block.metadata.readsAny(GEOIP_LABELS)
      await openOrFault(locator, readsEntries, files)
      if (readsEntries) images.publish(locator.images)
      metrics.start(() => locator.files)
    },
    offline: async ({ database, readsEntries }) => {
      run = runJobInline
      if (database !== undefined) {
        if (paths.length > 1) throw tooManyToReplace(files)
        locator = new MmdbLocator({ ...parts, paths: [database] })
        shared.provide(LOCATOR, locator)
      }
      await openOrFault(locator, readsEntries, database === undefined ? files : [])
    },
    stop: () => {
      metrics.stop()
      locator.close()
    },
  }
}

function statusOf({ path, builtSeconds, fault }: MmdbLocator['files'][number]) {
  const built = builtSeconds === 0 ? '' : new Date(builtSeconds * 1000).toISOString()
  return { file: path, built, fault: fault?.message ?? '' }
}

/** Opens a locator. Rejects with an InputError at the line that names the invalid file. */
async function openOrFault(
  locator: MmdbLocator,
  readsEntries: boolean,
  files: GeoipOptions['files'],
): Promise<void> {
  try {
    await locator.open({ readsEntries })
  } catch (error) {
    if (!(error instanceof InputError)) throw error
    const file = files.find((file) => error.message.startsWith(file.path)) ?? files[0]
    throw openFault(file?.position, error)
  }
}

function tooManyToReplace(files: GeoipOptions['files']): InputError {
  const message = `geoip names ${files.length} databases; only the database of a block with one can be replaced`
  return new InputError(files[0]?.position, message)
}

function printOld(path: string, fault: Error): string {
  return `the old version of ${path}: ${fault.message}`
}

/** Blocks with one file share its fault. */
function problemOfFile(path: string, fault: Error): ProblemGroup {
  const reason = `keeping ${printOld(path, fault)}`
  return oneProblem('geo-database', path, { place: path, object: path, reason })
}

function scanOptions(d: Dispenser, options: GeoipOptions): void {
  let occurrences = 0
  while (d.next()) {
    if (occurrences++ > 0) throw d.error('configuring multiple databases is not supported')
    for (const path of d.remainingArgs()) {
      if (options.files.length === FILES_MAX) throw d.error(`more than ${FILES_MAX} databases`)
      options.files.push({ path, position: d.position() })
    }
    d.eachProperty(() => scanProperty(d, options))
  }
}

function scanProperty(d: Dispenser, options: GeoipOptions): void {
  const property = d.value()
  const args = d.remainingArgs()
  if (property === 'edns-subnet') {
    if (args.length > 0) throw d.argError()
    options.ednsSubnet = true
  } else if (property === 'net') {
    if (args.length < 2) throw d.argError()
    addNet(d, options.nets, args as [string, ...string[]])
  } else {
    throw d.error(`unknown property "${property}"${didYouMean(property, ['edns-subnet', 'net'])}`)
  }
}

function addNet(
  d: Dispenser,
  nets: Net[],
  args: readonly [cidr: string, ...values: string[]],
): void {
  const net = scanNet(...args)
  if (typeof net === 'string') throw d.error(net)
  const index = nets.findIndex((other) => isSamePrefix(other, net))
  const joined = index === -1 ? net : joinNets(nets[index]!, net)
  if (typeof joined === 'string') throw d.error(`net ${args[0]} ${joined}`)
  nets.splice(index === -1 ? nets.length : index, 1, joined)
}

function isSamePrefix(a: Net, b: Net): boolean {
  return (
    a.cidr.family === b.cidr.family &&
    a.cidr.bits === b.cidr.bits &&
    Buffer.compare(a.cidr.bytes, b.cidr.bytes) === 0
  )
}

/**
 * Provides metadata. `view` reads metadata before the chain runs, so the client is selected here as
 * well. The selection is reverted, because another block without `edns-subnet` may serve the query.
 */
function provideMetadata(c: SetupContext, locator: () => MmdbLocator, ednsSubnet: boolean): void {
  for (const label of GEOIP_LABELS) {
    c.block.metadata.providers.set(label, ({ query }) =>
      ednsSubnet && hasSubnet(query)
        ? locator().field(query.ecsAddress, query.ecsFamily, label)
        : locator().field(query.clientAddress, query.clientFamily, label),
    )
  }
}

/** Of `check`. */
interface Reading {
  /** Prints what was read. */
  readonly read: (what: string) => void
  readonly nowMs: number
}

function printRead(path: string, database: Database, { read, nowMs }: Reading): void {
  read(`${path}: ${database.type}${printAge(database.builtSeconds, nowMs)}`)
}

function checkDatabases(c: SetupContext, options: GeoipOptions, reading: Reading): InputError[] {
  if (options.files.length === 0) readBundled(reading)
  return options.files.flatMap(({ path, position }) =>
    checkFile(resolve(c.block.root, path), position, reading),
  )
}

/** Every entry of the bundled database was verified by our tests. */
function readBundled(reading: Reading): void {
  const path = bundledDatabasePath()
  printRead(path, new Database(loadFileSync(path).image), reading)
}

function checkFile(path: string, position: Position, reading: Reading): InputError[] {
  try {
    const database = new Database(loadFileSync(path).image)
    verifyEntries(database)
    printRead(path, database, reading)
    return []
  } catch (error) {
    if (!(error instanceof InputError)) throw error
    return [openFault(position, error)]
  }
}

function openFault(position: Position | undefined, cause: InputError): InputError {
  const at = position === undefined ? '' : `${position.file}:${position.line} - `
  const message = `${at}Error during parsing: failed to open database file: ${cause.message}`
  return new InputError(position, message, cause)
}
