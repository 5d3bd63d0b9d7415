import { existsSync } from 'node:fs'
import { userInfo } from 'node:os'
import { resolve } from 'node:path'
import { systemClock } from '../base/clock.ts'
import { InputError, InputErrors } from '../base/errors.ts'
import { plural } from '../base/plural.ts'
import {
  type DrainReport,
  printDrainReport,
  type SelectedCount,
} from '../base/telemetry/drain-report.ts'
import { LineBuffer } from '../base/telemetry/lines.ts'
import { type EndpointDrain, isActive, reportDrain } from '../health/drain/drain.ts'
import { findDrains } from '../health/drain/drain-column.ts'
import { readDrainFile } from '../health/drain/drain-file.ts'
import { editDrainFile } from '../health/drain/edit-drain-file.ts'
import { type DrainSelector, scanDrainSelector } from '../health/drain/selector.ts'
import type { OfflineBlock } from '../publish/offline/offline-block.ts'
import { readReply } from './admin-client.ts'
import { chooseCorefile } from './corefile.ts'
import { printData } from './data-format.ts'
import { type DrainArgs, scanDrainArgs } from './drain-args.ts'
import { loadOffline } from './offline.ts'
import type { Output } from './output.ts'
import {
  addRunningDrain,
  endRunningDrains,
  listRunningDrains,
  notDrained,
} from './running-drains.ts'
import { DNS_PORT } from './serve-args.ts'
import { tableOf } from './table.ts'
import type { Line } from './tones.ts'

/** Log lines of the directives do not belong to the output of a command. */
const DISCARD: ConstructorParameters<typeof LineBuffer>[0] = {
  isBusy: () => false,
  write: (_, done) => done(),
}
const COREFILE_DEFAULT = 'Corefile'

/** The drain file of a command, and the blocks whose records it concerns. */
interface DrainPlace {
  readonly path: string
  /** Empty = the records are not known here. */
  readonly blocks: readonly OfflineBlock[]
}

/** What a selector selects in the manifests. */
interface Selected extends SelectedCount {
  /** False: no manifests were read. */
  readonly isChecked: boolean
  /** Why the manifests do not show everything; '' = they do. */
  readonly unread: string
}

/** `sextant drain SELECTOR...`: adds a drain. Resolves to the exit code. */
export function runDrain(argv: readonly string[], output: Output): Promise<number> {
  return reporting(output, async () => {
    const args = scanDrainArgs('drain', argv, systemClock.now())
    if (typeof args === 'string') return fail(args)
    const selector = scanDrainSelector(args.words)
    if (typeof selector === 'string') return fail(selector)
    const { admin, actor = currentUser() } = args
    if (admin === undefined) return addToFile(selector, { ...args, actor }, output)
    const drain = await addRunningDrain(admin, selector, { ...args, actor })
    printData(output, args.format, {
      data: () => drain,
      table: () => [printDrained(drain), `selected: ${printCount(drain)}`],
    })
  })
}

async function addToFile(
  selector: DrainSelector,
  args: DrainArgs & { readonly actor: string },
  output: Output,
): Promise<void> {
  const { reason, actor, untilMs } = args
  await withPlace(args, async (place) => {
    const selected = await countSelected(selector, place)
    checkSelected(selector, selected, args)
    const createdMs = systemClock.now()
    const drain = { selector, reason, actor, createdMs, untilMs }
    await editDrainFile(place.path, createdMs, (drains) => {
      const removed = drains.filter((other) => other.selector.text === selector.text)
      return { removed, added: [drain] }
    })
    const { endpoints, records, isChecked } = selected
    const report = reportDrain(drain)
    printData(output, args.format, {
      data: () => ({ ...report, ...(isChecked ? { endpoints, records } : {}) }),
      table: () => [printDrained(report), printSelected(selected)],
    })
  })
}

/** `sextant undrain SELECTOR...|ID`: ends the drains of a selector. Resolves to the exit code. */
export function runUndrain(argv: readonly string[], output: Output): Promise<number> {
  return reporting(output, async () => {
    const args = scanDrainArgs('undrain', argv, systemClock.now())
    if (typeof args === 'string') return fail(args)
    const { admin, words } = args
    if (words.length === 0)
      return fail('the selector or the id is missing; `sextant drains` lists them')
    const ended =
      admin === undefined ? await removeFromFile(args) : await endRunningDrains(admin, words)
    printData(output, args.format, {
      data: () => ended,
      table: () => ended.map((drain) => `undrained ${drain.id} ${printDrainReport(drain)}`),
    })
  })
}

async function removeFromFile(args: DrainArgs): Promise<readonly DrainReport[]> {
  let ended: readonly EndpointDrain[] = []
  await withPlace(args, async ({ path }) => {
    await editDrainFile(path, systemClock.now(), (drains) => {
      ended = findNamed(args.words, drains)
      return { removed: ended, added: [] }
    })
  })
  return ended.map(reportDrain)
}

/** `sextant drains`: lists the drains that are in force. Resolves to the exit code. */
export function runDrains(argv: readonly string[], output: Output): Promise<number> {
  return reporting(output, async () => {
    const args = scanDrainArgs('drains', argv, systemClock.now())
    if (typeof args === 'string') return fail(args)
    const { admin } = args
    const { drains, omitted } =
      admin === undefined
        ? { drains: await readFromFile(args), omitted: 0 }
        : await listRunningDrains(admin)
    readReply('drains', () => {
      const lines = (isWide: boolean): Line[] => table(drains, isWide)
      printData(output, args.format, { data: () => drains, table: lines })
    })
    if (omitted > 0) output.printError(`${omitted} more drains by annotations are not listed`)
  })
}

async function readFromFile(args: DrainArgs): Promise<readonly DrainReport[]> {
  let active: readonly EndpointDrain[] = []
  await withPlace(args, async ({ path }) => {
    const { drains, faults } = readDrainFile(path)
    const [first, ...others] = faults
    if (first !== undefined) throw new InputErrors(first, others)
    active = drains.map(({ drain }) => drain).filter((d) => isActive(d, systemClock.now()))
  })
  return active.map(reportDrain)
}

function fail(message: string): never {
  throw new InputError(undefined, message)
}

/** Prints each fault on a line. */
async function reporting(output: Output, work: () => Promise<void>): Promise<number> {
  try {
    await work()
    return 0
  } catch (error) {
    if (!(error instanceof InputError)) throw error
    for (const fault of error.all()) output.printError(fault.print())
    return 1
  }
}

/** Finds the drain file, and the blocks that use it if there is a Corefile. */
async function withPlace(
  { conf, file }: DrainArgs,
  work: (place: DrainPlace) => Promise<void>,
): Promise<void> {
  if (file !== undefined && conf === undefined && !existsSync(COREFILE_DEFAULT)) {
    return work({ path: resolve(file), blocks: [] })
  }
  const server = await loadOffline(
    { corefile: chooseCorefile(conf, DNS_PORT), dnsPort: DNS_PORT },
    { lines: new LineBuffer(DISCARD, setImmediate) },
  )
  try {
    const path = file === undefined ? onlyDrainFile(server.blocks) : resolve(file)
    const blocks = server.blocks.filter(({ zones }) => zones.drainFile?.path === path)
    await work({ path, blocks })
  } finally {
    await server.close()
  }
}

function onlyDrainFile(blocks: readonly OfflineBlock[]): string {
  const paths = new Set(blocks.flatMap(({ zones }) => zones.drainFile?.path ?? []))
  const [path, ...others] = paths
  if (path === undefined) {
    return fail(
      'the Corefile names no drain file; add `drain FILE` to kuadrant, or use --file FILE',
    )
  }
  if (others.length === 0) return path
  return fail(
    `the Corefile names several drain files; choose one with --file: ${[...paths].join(', ')}`,
  )
}

/** The user of the system, also behind sudo; '' = it has no name. */
function currentUser(): string {
  try {
    return process.env.SUDO_USER || userInfo().username
  } catch (error) {
    if (!(error instanceof Error)) throw error
    return ''
  }
}

async function countSelected(selector: DrainSelector, { blocks }: DrainPlace): Promise<Selected> {
  const drain = { selector, reason: '', actor: '', createdMs: undefined, untilMs: undefined }
  const counts = new Map<string, number>()
  let isChecked = false
  let unread = blocks.length === 0 ? 'no Corefile with this drain file was read' : ''
  for (const { zones } of blocks) {
    const { source, peering } = zones.options
    if (source.kind !== 'manifests') {
      unread = 'the records of a cluster are not read here'
      continue
    }
    if (peering.peers.length > 0) unread = 'the records of peers are not read here'
    isChecked = true
    for (const record of (await zones.read()).store.records()) {
      const { endpoints } = findDrains(record, [drain], () => zones.sitesOf(record))
      const count = endpoints.filter((targets) => targets.size > 0).length
      if (count > 0) counts.set(`${source.directory} ${record.key}`, count)
    }
  }
  const endpoints = [...counts.values()].reduce((sum, count) => sum + count, 0)
  return { endpoints, records: counts.size, isChecked, unread }
}

/** Throws InputError if the selector has no effect, as far as the manifests show. */
function checkSelected(
  { text }: DrainSelector,
  { endpoints, isChecked, unread }: Selected,
  { allowsEmpty }: DrainArgs,
): void {
  if (endpoints > 0 || allowsEmpty || !isChecked) return
  const why = unread === '' ? '' : ` (${unread})`
  fail(`${text} selects no endpoint of the manifests${why}; to drain it anyway, use --allow-empty`)
}

function printSelected({ endpoints, records, isChecked, unread }: Selected): string {
  if (!isChecked) return `the selector was not checked: ${unread}`
  const count = `selected in the manifests: ${printCount({ endpoints, records })}`
  return unread === '' ? count : `${count}; ${unread}`
}

function printCount({ endpoints, records }: SelectedCount): string {
  return `${plural(endpoints, 'endpoint')} of ${plural(records, 'record')}`
}

/** Throws InputError if no drain in force has that id or selector. */
function findNamed(
  words: readonly string[],
  all: readonly EndpointDrain[],
): readonly EndpointDrain[] {
  const drains = all.filter((drain) => isActive(drain, systemClock.now()))
  const named = words.length === 1 ? drains.filter(({ selector }) => selector.id === words[0]) : []
  if (named.length > 0) return named
  const isId = words.length === 1 && /^[0-9a-f]{8}$/.test(words[0]!)
  const selector = isId ? undefined : scanDrainSelector(words)
  if (typeof selector === 'string') return fail(selector)
  const found = drains.filter((drain) => drain.selector.text === selector?.text)
  if (found.length > 0) return found
  throw notDrained(words, drains.map(reportDrain))
}

function printDrained(drain: DrainReport): string {
  return `drained ${drain.id} ${printDrainReport(drain)}`
}

function table(drains: readonly DrainReport[], isWide: boolean): Line[] {
  if (drains.length === 0) return ['nothing is drained']
  const rows = drains.map(({ id, selector, created = null, until = null, actor, reason }) => {
    return [id, selector, ...(isWide ? [created] : []), until, actor || null, reason]
  })
  const created = isWide ? ['CREATED'] : []
  return tableOf(['ID', 'SELECTOR', ...created, 'UNTIL', 'BY', 'REASON'], rows)
}
