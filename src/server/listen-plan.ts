import { InputError, type Position } from '../base/errors.ts'
import type { Key } from '../corefile/key.ts'
import type { BlockConfig } from '../plugin/directive.ts'
import type { Handler } from '../plugin/handler.ts'
import { joinTaps, QUERY_TAP, type QueryTap } from '../plugin/query-tap.ts'
import { LIMITER } from '../plugin/reply-limiter.ts'
import { SERVED_SCHEMES, type ServedScheme } from '../transport/driver.ts'
import type { AnswerSource } from '../zone/lookup/answer-source.ts'
import { OverlapCheck, printKey } from './overlap.ts'
import type { RoutedBlock } from './routing.ts'

/** A server block after its setups ran. */
export interface LoadedBlock {
  readonly config: BlockConfig
  /** Position of each of the block's keys in the Corefile; parallel to `config.keys`. */
  readonly keyPositions: readonly Position[]
  readonly chain: Handler
  /** The zones that the chain answers from, in its order. */
  readonly sources: readonly AnswerSource[]
  /** See `DirectivePart`. */
  readonly takesChaos: boolean
}

/** One address to listen on, by all transports of its scheme, and the blocks that it serves. */
export interface ListenPlan {
  /** `dns://:53` or `dns://127.0.0.1:53`. Equal text means the same sockets across a reload. */
  readonly address: string
  readonly scheme: ServedScheme
  /** '' = every address. */
  readonly host: string
  /** 0 = any free port. */
  readonly port: number
  readonly blocks: readonly RoutedBlock[]
  /** Sockets to open; 0 = as many as CPUs. The first block of the address that sets a number decides. */
  readonly sockets: number
  /** What the directives of its blocks asked for, each block once. */
  readonly configs: readonly Pick<BlockConfig, 'directives' | 'shared'>[]
  readonly timeouts: BlockConfig['timeouts']
  /** Sum over the blocks, as in BlockConfig. */
  readonly waitingMax: number
  /** The first key that asks for the address, for messages. */
  readonly asked: { readonly key: string; readonly position: Position }
}

type ServedKey = Key & { readonly scheme: ServedScheme }

type PlanDraft = ListenPlan & {
  blocks: RoutedBlock[]
  sockets: number
  configs: ListenPlan['configs'][number][]
  waitingMax: number
}

/**
 * Groups the keys of all blocks by the address they listen on. Returns the plans, and an error for
 * each key that can't be served. Warns of each view that can't serve a query, because a block
 * without a view has the same key and is tried first. `tap`: sees the queries of all blocks.
 */
export function planListeners(
  blocks: readonly LoadedBlock[],
  tap?: QueryTap,
): {
  plans: ListenPlan[]
  errors: InputError[]
  warnings: InputError[]
} {
  const overlaps = new OverlapCheck()
  const plans = new Map<string, PlanDraft>()
  const errors: InputError[] = []
  const warnings: InputError[] = []
  for (const block of blocks) {
    const taps = joinTaps(block.config.shared.find(QUERY_TAP), tap)
    block.config.keys.forEach((key, i) => {
      const position = block.keyPositions[i]!
      for (const host of listenHosts(block.config)) {
        if (!isServed(key)) {
          const fault = `scheme "${key.scheme}" is not supported by this version of Sextant`
          errors.push(new InputError(position, fault))
          continue
        }
        const fault = overlaps.check(key, host, block.config.filters.length > 0)
        if (fault !== undefined) {
          errors.push(new InputError(position, fault))
          continue
        }
        const isReached = addToPlan(plans, { ...block, tap: taps }, key, host, position)
        if (!isReached) warnings.push(shadowed(block.config, printKey(key, host), position))
      }
    })
  }
  return { plans: [...plans.values()], errors, warnings }
}

function shadowed({ viewName }: BlockConfig, key: string, position: Position): InputError {
  const reason = 'an earlier block of this zone has no view and serves all queries'
  return new InputError(
    position,
    `view ${viewName} serves no query of ${key}: ${reason}; move this block before that block`,
  )
}

function listenHosts(config: BlockConfig): readonly string[] {
  return config.listenHosts.length === 0 ? [''] : config.listenHosts
}

function isServed(key: Key): key is ServedKey {
  return SERVED_SCHEMES.some((scheme) => scheme === key.scheme)
}

/** Returns false if an earlier block of the plan serves all queries of the zone. */
function addToPlan(
  plans: Map<string, PlanDraft>,
  block: LoadedBlock & Pick<RoutedBlock, 'tap'>,
  key: ServedKey,
  host: string,
  position: Position,
): boolean {
  const { config, chain, sources } = block
  const address = `${key.scheme}://${host.includes(':') ? `[${host}]` : host}:${key.port}`
  const plan = plans.get(address) ?? {
    address,
    scheme: key.scheme,
    host,
    port: key.port,
    blocks: [],
    sockets: 0,
    configs: [],
    timeouts: config.timeouts,
    waitingMax: 0,
    asked: { key: printKey(key, host), position },
  }
  plans.set(address, plan)
  if (!plan.blocks.some((known) => known.chain === chain)) plan.waitingMax += config.waitingMax
  if (plan.sockets === 0) plan.sockets = config.sockets
  if (!plan.configs.includes(config)) plan.configs.push(config)
  const isReached = !plan.blocks.some(
    ({ zoneText, filters }) => zoneText === key.zoneText && filters.length === 0,
  )
  plan.blocks.push({
    zone: key.zone,
    zoneText: key.zoneText,
    chain,
    sources,
    filters: config.filters,
    limiter: config.shared.find(LIMITER),
    tap: block.tap,
    viewName: config.viewName,
    bufsizeOctets: config.bufsizeOctets,
    debug: config.debug,
    takesChaos: block.takesChaos,
    takesNotify: config.takesNotify,
  })
  return isReached
}
