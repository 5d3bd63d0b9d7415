import { InputError, type Position } from '../../base/errors.ts'
import { systemTimers } from '../../base/timers.ts'
import { printName } from '../../dns/name/name.ts'
import type { BlockConfig, Directive, SetupContext } from '../../plugin/directive.ts'
import { acquireSource, type SharedSource } from '../../record/manifests/shared-source.ts'
import { SerialBook } from '../../record/serials/serial-book.ts'
import type { SerialFile } from '../../record/serials/serial-file.ts'
import { acquireSerialFile } from '../../record/serials/shared-serial-file.ts'
import { checkBlock } from './check.ts'
import { KuadrantHandler } from './kuadrant.ts'
import { commitHistogram, measure } from './metrics.ts'
import { type KuadrantOptions, scanOptions } from './options.ts'
import { SharedZones } from './shared-zones.ts'
import { Siblings } from './siblings.ts'
import { KuadrantZones } from './zones.ts'

/** Outlives reloads: a zone whose content stayed the same keeps its serial. */
const serials = new SerialBook()

/** `kuadrant`: zones made of DNSRecords. */
export const kuadrant: Directive = {
  name: 'kuadrant',
  setup(c) {
    const options = scanOptions(c.dispenser, c.block)
    const share = new SharedZones(c)
    c.addHandler((next) => new KuadrantHandler(next, share, options.fallthrough))
    follow(c, options, share)
    c.onCheck((warn) => {
      return checkBlock(options, Siblings.of(c.corefile).options, warn).catch(at(options.position))
    })
  },
}

/** Registers what happens while the block is in service. */
function follow(c: SetupContext, options: KuadrantOptions, share: SharedZones): void {
  const stops: (() => void)[] = []
  let unreadyReason = (): string => 'records are not loaded yet'
  c.onReady(() => unreadyReason())
  const { clock, log } = c
  const directory = options.manifests
  let shared: SharedSource | undefined
  const siblings = Siblings.of(c.corefile)
  const claim = async (): Promise<void> => {
    const source = { directory, log, clock, timers: systemTimers }
    const acquired = await acquireSource(source).catch(at(options.position))
    shared = acquired.shared
    stops.push(acquired.release, shared.claims.claim(options.zones))
  }
  let stopFollowing = (): void => {}
  const place = (): string => placeOf(c.block)
  siblings.add({ options, place, claim, stopFollowing: () => stopFollowing() })
  const keepSerials = (): SerialFile | undefined => {
    if (options.serials === '') return undefined
    const parts = { path: options.serials, book: serials, log, clock, timers: systemTimers }
    const { file, release } = acquireSerialFile(parts)
    stops.push(release)
    return file
  }
  c.onStartup(async () => {
    await siblings.claimAll()
    const { source, claims } = shared!
    const { image, table } = share.open(c.block.locator)
    stops.push(() => table.close())
    const parts = { image, table, serials, clock, log, onCommit: commitHistogram(c.metrics) }
    const serialFile = keepSerials()
    for (const zone of options.zones) serials.retain(printName(zone), siblings.placesOf(zone))
    const zones = new KuadrantZones(options, { ...parts, serialFile, place: place() })
    stopFollowing = await zones.follow(source, claims)
    stops.push(measure(c.metrics, directory, shared!, zones))
    unreadyReason = () => source.unreadyReason()
  })
  c.onShutdown(() => {
    siblings.stopFollowing()
    for (const stop of stops.splice(0).reverse()) stop()
  })
}

/** Names the server block by what tells it from others: its keys, its addresses, its view. */
function placeOf({ keys, listenHosts, viewName }: BlockConfig): string {
  const addresses = keys.map(({ scheme, zoneText, port }) => `${scheme}://${zoneText}:${port}`)
  const hosts = [...listenHosts].sort().join()
  return `${addresses.sort().join()}@${hosts}/${encodeURIComponent(viewName)}`
}

/** A source that can't be opened is the fault of the line that names it. */
function at(position: Position): (error: unknown) => never {
  return (error) => {
    if (!(error instanceof InputError)) throw error
    const message = `${position.file}:${position.line} - Error during parsing: ${error.print()}`
    throw new InputError(error.code, position, message, error)
  }
}
