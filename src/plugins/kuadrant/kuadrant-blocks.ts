import { lazyKey } from '../../base/shared-values.ts'
import type { BlockConfig } from '../../plugin/directive.ts'
import { PublisherGroup } from '../../publish/publisher-group.ts'
import type { KuadrantOptions } from './options.ts'

/** The `kuadrant` blocks of one Corefile. */
class KuadrantBlocks {
  /** Options of every block from before its scan: `sextant check` also checks blocks with faults. */
  readonly drafts: KuadrantOptions[] = []
  readonly byBlock = new Map<BlockConfig, KuadrantOptions>()
  readonly group = new PublisherGroup()
}

export const KUADRANT_BLOCKS = lazyKey('kuadrant blocks', () => new KuadrantBlocks())
