import { InputError } from '../../base/errors.ts'
import type { ResourceLease } from '../../base/resource-registry.ts'
import { oneProblem, type ProblemGroup } from '../../base/telemetry/problems.ts'
import type { Upstream, UpstreamSettings } from '../../client/upstream/upstream.ts'
import { printName } from '../../dns/name/name.ts'
import { zonesInBlock } from '../../plugin/arguments/zones.ts'
import { collectWhileServing } from '../../plugin/collect.ts'
import type { CheckHook, Description } from '../../plugin/description.ts'
import type { Directive, SetupContext } from '../../plugin/directive.ts'
import type { Handler } from '../../plugin/handler.ts'
import { findLoops } from '../../plugin/own-blocks.ts'
import type { Transaction } from '../../plugin/transaction.ts'
import { Forward } from './forward.ts'
import type { ForwardUpstream } from './forward-upstream.ts'
import { ForwardMetrics } from './metrics.ts'
import { type ForwardConfig, scanForwards } from './options.ts'
import { Slots } from './slots.ts'

/** Fewer than the queries that an address has in progress: so a client cannot use up those either. */
const SLOTS_DEFAULT = 1000
const UPSTREAM_LABEL = 'forward/upstream'

/** `forward FROM TO... { … }`: forwards queries to other servers. */
export const forward: Directive = {
  name: 'forward',
  setup: (c) => {
    const asked = new AskedUpstreams()
    c.block.metadata.providers.set(UPSTREAM_LABEL, (tx) => asked.of(tx))
    return scanForwards(c.dispenser, c.block).map((config) =>
      setUp(c, config, (tx, upstream) => {
        if (c.block.metadata.readsAny([UPSTREAM_LABEL])) asked.set(tx, upstream)
      }),
    )
  },
}

function setUp(
  c: SetupContext,
  config: ForwardConfig,
  onAsk: (tx: Transaction, upstream: ForwardUpstream) => void,
): Description {
  const upstreams: Upstream[] = []
  const counts = new ForwardMetrics()
  const { select, maxConcurrent } = config
  const { clock, timers } = c
  const { item: slots, release } = acquireSlots(c, maxConcurrent)
  // Else clients could use up the queries in progress, which have no shares.
  c.block.waitingMax += maxConcurrent
  const parts = { upstreams, select, clock, timers, slots, counts, onAsk }
  let loops: readonly InputError[] = []
  const check: CheckHook = async ({ isOffline, warn }) => {
    if (isOffline) return []
    const { findUpstreams } = await import('./destinations.ts')
    try {
      for (const loop of await loopsOf(c, config, await findUpstreams(config))) warn(loop)
      return []
    } catch (error) {
      if (!(error instanceof InputError)) throw error
      return error.all()
    }
  }
  const start = async (): Promise<void> => {
    const { findUpstreams } = await import('./destinations.ts')
    const { Upstream } = await import('../../client/upstream/upstream.ts')
    const found = await findUpstreams(config)
    for (const settings of found) upstreams.push(new Upstream(settings, c.clock, c.timers))
    loops = await loopsOf(c, config, found)
    for (const loop of loops) c.log.warning(loop.print(), 'forward-loop')
  }
  const stop = (): void => {
    for (const upstream of upstreams) upstream.close()
  }
  const handler = (next: Handler): Handler => new Forward(next, config, parts)
  const problems = (): ProblemGroup[] => problemsOf(config, upstreams, loops)
  return [
    { stop: release },
    { handler, waits: true, answers: true, problems },
    collectWhileServing(c, () => counts.collect(c.metrics, upstreams)),
    { check, start, stop },
  ]
}

/** Returns the upstreams that are this server block. */
function loopsOf(
  c: SetupContext,
  config: ForwardConfig,
  upstreams: readonly UpstreamSettings[],
): Promise<InputError[]> {
  // This server speaks no TLS.
  const servers = upstreams.filter(({ tls }) => tls === undefined).map(({ server }) => server)
  const { position, from } = config
  const line = { what: printLine(config), position }
  return findLoops(c, servers, zonesInBlock(from.zones, c.block), line)
}

/**
 * Returns upstreams that are this server; and all, if they are down together: while one of them is up, clients notice
 * nothing.
 */
function problemsOf(
  config: ForwardConfig,
  upstreams: readonly Upstream[],
  loops: readonly InputError[],
): ProblemGroup[] {
  const { position, failsFast } = config
  const place = `${position.file}:${position.line}`
  const object = printLine(config)
  const reasons = loops.map(({ message }) => message)
  if (upstreams.length > 0 && upstreams.every(({ isDown }) => isDown)) {
    const addresses = upstreams.map(({ address }) => address).join(', ')
    const meanwhile = failsFast ? 'queries get SERVFAIL' : 'each query is sent to one of them'
    reasons.push(`${object}: all upstreams are down: ${addresses}; ${meanwhile}`)
  }
  return reasons.map((reason) =>
    oneProblem('upstream', `${place} ${reason}`, { place, object, reason }),
  )
}

function printLine({ from }: ForwardConfig): string {
  return `forward ${from.zones.map((zone) => printName(zone)).join(' ')}`
}

/** `max`: 0 = the slots that every `forward` without a limit shares. */
function acquireSlots({ resources }: SetupContext, max: number): ResourceLease<Slots> {
  if (max > 0) return { item: new Slots(max), release: () => {} }
  return resources.acquire(Slots, '', () => new Slots(SLOTS_DEFAULT))
}

/** The upstream that a query was sent to last. Transactions are used again for other queries. */
class AskedUpstreams {
  readonly #asked = new WeakMap<Transaction, { readonly startedMs: number; readonly to: string }>()

  set(tx: Transaction, { address }: ForwardUpstream): void {
    this.#asked.set(tx, { startedMs: tx.startedMs, to: address })
  }

  of(tx: Transaction): string {
    const asked = this.#asked.get(tx)
    return asked?.startedMs === tx.startedMs ? asked.to : ''
  }
}
