import { scanZoneArgsOrBlock } from '../../plugin/arguments/zones.ts'
import type { Directive } from '../../plugin/directive.ts'
import { limitToZones } from './metadata.ts'

/** `metadata [ZONES...]`: lets other directives of the block read metadata of a query. */
export const metadata: Directive = {
  name: 'metadata',
  setup(c) {
    const d = c.dispenser
    d.next()
    const zones = scanZoneArgsOrBlock(d, d.remainingArgs(), c.block)
    if (d.nextBlock() || d.next()) throw d.argError()
    c.block.metadata.isEnabled = true
    return { link: () => limitToZones(c.block.metadata.providers, zones) }
  },
}
