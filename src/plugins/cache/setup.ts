import { scanCacheOptions } from '../../cache/options.ts'
import { startCache } from '../../cache/start-cache.ts'
import type { Directive } from '../../plugin/directive.ts'

/** `cache [TTL] [ZONES...] { … }`: keeps the answers that the plugins below had to wait for. */
export const cache: Directive = {
  name: 'cache',
  setup(c) {
    return startCache(c, 'cache', scanCacheOptions(c.dispenser, c.block)).description
  },
}
