import { InputError, type Position } from '../../base/errors.ts'
import { systemTimers } from '../../base/timers.ts'
import type { Directive, SetupContext } from '../../plugin/directive.ts'
import { checkManifests } from '../../record/manifests/check-manifests.ts'
import { acquireSource } from '../../record/manifests/shared-source.ts'
import { SerialBook } from '../../record/soa.ts'
import { KuadrantHandler } from './kuadrant.ts'
import { commitHistogram, measure } from './metrics.ts'
import { type KuadrantOptions, scanOptions } from './options.ts'
import { SharedZones } from './shared-zones.ts'
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
    c.onCheck(() => checkManifests(options.manifests).catch(at(options.position)))
  },
}

/** Registers what happens while the block is in service. */
function follow(c: SetupContext, options: KuadrantOptions, share: SharedZones): void {
  const stops: (() => void)[] = []
  let unreadyReason = (): string => 'records are not loaded yet'
  c.onReady(() => unreadyReason())
  c.onStartup(async () => {
    const { clock, log } = c
    const { image, table } = share.open(c.block.locator)
    stops.push(() => table.close())
    const parts = { image, table, serials, clock, log, onCommit: commitHistogram(c.metrics) }
    const zones = new KuadrantZones(options, parts)
    const directory = options.manifests
    const { shared, release } = await acquireSource({
      directory,
      log,
      clock,
      timers: systemTimers,
    }).catch(at(options.position))
    stops.push(release, await zones.follow(shared.source, shared.claims))
    stops.push(measure(c.metrics, directory, shared, zones))
    unreadyReason = () => shared.source.unreadyReason()
  })
  c.onShutdown(() => {
    for (const stop of stops.splice(0).reverse()) stop()
  })
}

/** A source that can't be opened is the fault of the line that names it. */
function at(position: Position): (error: unknown) => never {
  return (error) => {
    if (!(error instanceof InputError)) throw error
    const message = `${position.file}:${position.line} - Error during parsing: ${error.print()}`
    throw new InputError(error.code, position, message, error)
  }
}
