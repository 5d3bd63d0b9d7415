import { lazyKey } from '../../base/shared-values.ts'
import { collectProblems, PROBLEM_KINDS } from '../../base/telemetry/problems.ts'
import { collectWhileServing } from '../../plugin/collect.ts'
import type { DirectivePart } from '../../plugin/description.ts'
import type { SetupContext } from '../../plugin/directive.ts'

/** The server blocks with metrics: one of them exports what concerns the whole server. */
class MeasuredBlocks {
  isExported = false
}

const MEASURED_BLOCKS = lazyKey('server blocks with metrics', () => new MeasuredBlocks())

/** Exports the number of problems by kind. Every kind has a series, so that an alert needs no `absent`. */
export function exportProblems(c: SetupContext): DirectivePart {
  const blocks = c.shared.acquire(MEASURED_BLOCKS)
  if (blocks.isExported) return {}
  blocks.isExported = true
  const gauge = c.metrics.gauge(
    'sextant_problems',
    'What is wrong now, by kind; the ready page and the status have the places.',
    ['kind'],
  )
  return collectWhileServing(c, () => {
    const { counts } = collectProblems(c.reports.problems)
    for (const kind of PROBLEM_KINDS) gauge.set({ kind }, counts.get(kind) ?? 0)
  })
}
