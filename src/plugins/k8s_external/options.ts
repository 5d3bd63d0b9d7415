import type { Position } from '../../base/errors.ts'
import type { Dispenser } from '../../corefile/dispenser.ts'
import { scanClusterTtl, scanClusterZones } from '../../plugin/arguments/cluster-zones.ts'
import {
  type Fallthrough,
  NO_FALLTHROUGH,
  scanFallthrough,
} from '../../plugin/arguments/fallthrough.ts'
import { nextOnce } from '../../plugin/arguments/once.ts'
import type { BlockConfig } from '../../plugin/directive.ts'

const TTL_SECONDS_DEFAULT = 5
const LABEL = /^(?!-)[a-z\d-]{1,63}(?<!-)$/i

export interface ExternalOptions {
  position: Position
  /** Lower-case wire form; at least one is not reverse. */
  zones: readonly Uint8Array[]
  /** Lower case. */
  apexLabel: string
  ttlSeconds: number
  headless: boolean
  fallthrough: Fallthrough
}

/** Reads `k8s_external [ZONES...] { … }`. Throws InputError with all faults. */
export function scanOptions(d: Dispenser, block: BlockConfig): ExternalOptions {
  const options: ExternalOptions = {
    position: d.position(),
    zones: [],
    apexLabel: 'dns',
    ttlSeconds: TTL_SECONDS_DEFAULT,
    headless: false,
    fallthrough: NO_FALLTHROUGH,
  }
  for (let uses = 0; nextOnce(d, uses); uses++) {
    options.position = d.position()
    options.zones = scanClusterZones(d, block)
    d.eachProperty(() => scanProperty(d, options))
  }
  return options
}

function scanProperty(d: Dispenser, options: ExternalOptions): void {
  const property = d.value()
  switch (property) {
    case 'ttl':
      options.ttlSeconds = scanClusterTtl(d)
      return
    case 'apex':
      options.apexLabel = scanLabel(d)
      return
    case 'headless':
      d.noArgs()
      options.headless = true
      return
    case 'fallthrough':
      options.fallthrough = scanFallthrough(d)
      return
    default:
      throw d.unknownProperty(property, ['ttl', 'apex', 'headless', 'fallthrough'])
  }
}

function scanLabel(d: Dispenser): string {
  const label = d.onlyArg()
  if (!LABEL.test(label)) throw d.error(`apex must be one label, such as dns: '${label}'`)
  return label.toLowerCase()
}
