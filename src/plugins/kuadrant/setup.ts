import type { Cidr } from '../../dns/text/address.ts'
import { isLocalZone } from '../../dnsrecord/local-zone.ts'
import { GEO_COVERAGE } from '../../geo/locator.ts'
import type { AnswerExplainer } from '../../plugin/answer-explainer.ts'
import type { Directive, SetupContext } from '../../plugin/directive.ts'
import type { Handler } from '../../plugin/handler.ts'
import { faultAt } from '../../publish/source-fault.ts'
import { ThreadedZones } from '../../publish/threaded-zones.ts'
import { prepareService } from './block-service.ts'
import { conflictWith } from './conflicts.ts'
import { ExplainNames } from './explain-names.ts'
import { KuadrantHandler } from './kuadrant.ts'
import { KUADRANT_BLOCKS } from './kuadrant-blocks.ts'
import { draftOptions, scanOptions } from './options.ts'
import { TakesNotify } from './takes-notify.ts'
import { threadCounts } from './thread-counts.ts'

/** `kuadrant`: zones built from DNSRecords. */
export const kuadrant: Directive = {
  name: 'kuadrant',
  setup(c) {
    const { drafts, group } = c.shared.acquire(KUADRANT_BLOCKS)
    const draft = draftOptions(c.dispenser)
    drafts.push(draft)
    // Registered before the scan, so that an invalid property does not hide faults of the manifests.
    let isScanned = false
    c.onCheck(async (report) => {
      if (!isScanned && !draft.hasSource) return []
      const { checkBlock } = await import('./check.ts')
      return checkBlock(draft, drafts, report, c.block.shared.find(GEO_COVERAGE)).catch(
        faultAt(draft.position),
      )
    })
    const options = scanOptions(c.dispenser, c.block, draft)
    isScanned = true
    const conflict = conflictWith(options, group.options)
    if (conflict !== '') throw c.dispenser.error(conflict)
    if (options.explainFor.length > 0) addExplainNames(c, options.explainFor)
    const { endpointMetrics } = options
    const counts = endpointMetrics === undefined ? undefined : threadCounts(c, endpointMetrics)
    const threads = new ThreadedZones(c, counts?.own)
    const handlerOf = (next: Handler): Handler =>
      new KuadrantHandler(next, threads, options.fallthrough)
    if (options.zones.some(isLocalZone)) {
      const report = c.toControl((host) => group.notify(host))
      const takesNotify = (next: Handler): Handler => new TakesNotify(handlerOf(next), next, report)
      c.addHandler(takesNotify, { seesNotify: true, answers: true })
      c.onLinked(() => {
        const hasPeers = group.options.some(({ peering }) => peering.peers.length > 0)
        if (hasPeers) c.block.takesNotify = true
      })
    } else c.addHandler(handlerOf, { answers: true })
    prepareService(c, options, { threads, group, counts })
  },
}

function addExplainNames(c: SetupContext, networks: readonly Cidr[]): void {
  let explainer: AnswerExplainer | undefined
  let isOver = false
  let without: 'not open' | 'elsewhere' = 'elsewhere'
  c.addHandler((next) => new ExplainNames(next, networks, () => explainer ?? without))
  c.onStartup(() => {
    without = 'not open'
  })
  c.onServing(() => {
    const open = async (): Promise<void> => {
      explainer = await c.openExplainer()
      if (isOver) explainer?.close()
    }
    open().catch((error) => {
      c.log.error(`explanations are off: ${error instanceof Error ? error.message : error}`)
    })
  })
  c.onShutdown(() => {
    isOver = true
    explainer?.close()
  })
}
