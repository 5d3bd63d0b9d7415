// `direct`: a zone whose RRsets are put straight into the image, as records are once they are parsed.

import { scanName } from '../../dist/dns/name/name.js'
import { LOCATOR } from '../../dist/geo/locator.js'
import { NO_FALLTHROUGH } from '../../dist/plugin/arguments/fallthrough.js'
import { bind } from '../../dist/plugins/bind/setup.js'
import { KuadrantHandler } from '../../dist/plugins/kuadrant/kuadrant.js'
import { minimal } from '../../dist/plugins/minimal/setup.js'
import { multisocket } from '../../dist/plugins/multisocket/setup.js'
import { ThreadedZones } from '../../dist/publish/serve/threaded-zones.js'
import { ZONE } from './manifests.mjs'

/** The image of the last server block that was started, in the control thread. */
export const opened = { image: undefined, zone: 0, swaps: 0 }

const direct = {
  name: 'direct',
  setup(c) {
    const share = new ThreadedZones(c)
    return {
      handler: (next) => new KuadrantHandler(next, share, NO_FALLTHROUGH),
      start: () => {
        opened.image = share.open(c.block.shared.find(LOCATOR)).image
        opened.image.onSwap(() => opened.swaps++)
        opened.zone = opened.image.addZone(scanName(`${ZONE}.`))
      },
    }
  },
}

export const DIRECTIVES = [bind, multisocket, minimal, direct]
