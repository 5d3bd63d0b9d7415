import { printDuration, scanDuration } from '../../base/duration.ts'
import { lazyKey } from '../../base/shared-values.ts'
import { oneProblem, type ProblemGroup } from '../../base/telemetry/problems.ts'
import type { Dispenser } from '../../corefile/dispenser.ts'
import { collectWhileServing } from '../../plugin/collect.ts'
import type { Description, DirectivePart } from '../../plugin/description.ts'
import type { Directive, SetupContext } from '../../plugin/directive.ts'
import { PodEvents, podOf } from './pod-events.ts'
import { CorefileWatch } from './watch.ts'

const INTERVAL_DEFAULT_MS = 30_000
const INTERVAL_MIN_MS = 2000
const JITTER_DEFAULT_MS = 15_000
const JITTER_MIN_MS = 1000

/** Several blocks may watch the Corefile, and two of them that notice one change must not reload twice. */
class ReloadState {
  isReloading = false
}

const RELOAD_STATE = lazyKey('state of reloads', () => new ReloadState())

/** `reload [INTERVAL] [JITTER]`: applies the Corefile when it changes. */
export const reload: Directive = { name: 'reload', setup }

function setup(c: SetupContext): Description {
  const { intervalMs, jitterMs } = scanTimes(c.dispenser)
  const failed = c.metrics.counter(
    'coredns_reload_failed_total',
    'Counter of the number of failed reload attempts.',
  )
  const info = c.metrics.gauge(
    'coredns_reload_version_info',
    'A metric with a constant value of 1 labelled by the hash of the running Corefile.',
    ['hash', 'value'],
  )
  const { loadedDigest } = c.corefile
  // At every scrape, since an instance that starts may still fail and leave the old one running.
  const exporting = collectWhileServing(c, () => {
    info.reset()
    info.set({ hash: 'sha512', value: loadedDigest }, 1)
  })
  const start = (): void =>
    c.log.info(`Running configuration SHA512 = ${loadedDigest}`, 'configuration-loaded')
  if (c.corefile.path === '') return [exporting, { start }]
  const pod = podOf(process.env)
  const events = pod && new PodEvents(c, pod)
  const watch = new CorefileWatch({
    loadedDigest,
    digest: () => c.corefile.digest(),
    // Half the jitter up or down, so that servers that started together do not reload together.
    intervalMs: intervalMs + Math.floor(jitterMs * (c.random() - 0.5)),
    timers: c.timers,
    log: c.log,
    reload: () => reloadOnce(c),
    countFailure: () => failed.inc(),
    report: (fault) => void events?.recordFault(fault),
  })
  const watching: DirectivePart = {
    problems: () => problemsOf(watch, c.corefile.path),
    start: () => watch.start(),
    stop: async () => {
      watch.stop()
      await events?.close()
    },
  }
  return [exporting, { start }, watching]
}

function problemsOf({ fault }: CorefileWatch, path: string): ProblemGroup[] {
  if (fault === '') return []
  const reason = `the Corefile that was loaded before is in use: ${fault}`
  return [oneProblem('corefile', path, { place: path, object: path, reason })]
}

async function reloadOnce(c: SetupContext): Promise<string> {
  const state = c.shared.acquire(RELOAD_STATE)
  if (state.isReloading) return ''
  state.isReloading = true
  try {
    return await c.requestReload('the Corefile changed')
  } finally {
    state.isReloading = false
  }
}

/** Each occurrence overrides the one before. */
function scanTimes(d: Dispenser): { intervalMs: number; jitterMs: number } {
  let intervalMs = INTERVAL_DEFAULT_MS
  let jitterMs = JITTER_DEFAULT_MS
  while (d.next()) {
    const args = d.remainingArgs(0, 2)
    d.noBlock()
    intervalMs = scanTime(d, args[0], INTERVAL_DEFAULT_MS)
    jitterMs = scanTime(d, args[1], JITTER_DEFAULT_MS)
    if (intervalMs < INTERVAL_MIN_MS) {
      const least = printDuration(INTERVAL_MIN_MS)
      throw d.error(`interval value must be greater or equal to ${least}`)
    }
    if (jitterMs !== 0 && jitterMs < JITTER_MIN_MS) {
      const least = printDuration(JITTER_MIN_MS)
      throw d.error(`jitter value must be 0 or greater or equal to ${least}`)
    }
  }
  return { intervalMs, jitterMs: Math.floor(Math.min(jitterMs, intervalMs / 2)) }
}

function scanTime(d: Dispenser, text: string | undefined, defaultMs: number): number {
  if (text === undefined) return defaultMs
  const ms = scanDuration(text)
  if (ms === undefined) throw d.error(`time: invalid duration ${JSON.stringify(text)}`)
  return ms
}
