import { didYouMean } from '../../base/nearest.ts'
import { scanHostPort } from '../../plugin/arguments/host-port.ts'
import { nextOnce } from '../../plugin/arguments/once.ts'
import { collectWhileServing } from '../../plugin/collect.ts'
import type { Description, HttpReply } from '../../plugin/description.ts'
import type { Directive, SetupContext } from '../../plugin/directive.ts'
import type { Handler } from '../../plugin/handler.ts'
import { SERVER_COUNTERS } from '../../plugin/server-counters.ts'
import { TRACED_DURATIONS } from '../../plugin/traced-durations.ts'
import { DnsMetrics } from './metrics.ts'
import { exportProblems } from './problem-metrics.ts'
import { RuntimeMetrics, showProcess } from './process-metrics.ts'
import { Prometheus } from './prometheus.ts'

const DEFAULT_ADDRESS = 'localhost:9153'

/** `prometheus [ADDRESS] { runtime_metrics }`: counts queries and serves `/metrics`. */
export const prometheus: Directive = {
  name: 'prometheus',
  setup(c) {
    const { address, runtime } = scanOptions(c)
    const metrics = new DnsMetrics(c.metrics)
    let handler: Prometheus | undefined
    const slots = c.counters()
    const link = (next: Handler): Handler => {
      handler = new Prometheus(next, c.clock, slots, c.block.directives)
      return handler
    }
    const exporting = collectWhileServing(c, () => {
      if (handler !== undefined) metrics.takeFrom(handler)
      metrics.showServer(c.shared.find(SERVER_COUNTERS)!)
      metrics.showBuild()
      metrics.showEnabled(c.block, true)
      showProcess(c.metrics)
    })
    // The next instance exports its own plugins at the next scrape.
    const stop = (): void => metrics.showEnabled(c.block, false)
    const page = async (_query: URLSearchParams, accept: string): Promise<HttpReply> => {
      return { status: 200, ...(await c.metrics.page(accept)) }
    }
    c.block.shared.provide(TRACED_DURATIONS, metrics)
    return [
      { handler: link, seesNotify: true },
      exporting,
      exportProblems(c),
      { stop },
      runtime ? exportRuntime(c) : [],
      { http: { address, path: '/metrics', reply: page } },
    ]
  },
}

function scanOptions(c: SetupContext): { address: string; runtime: boolean } {
  const d = c.dispenser
  let address = DEFAULT_ADDRESS
  let runtime = false
  for (let i = 0; nextOnce(d, i); i++) {
    const args = d.remainingArgs(0, 1)
    if (args[0] !== undefined) address = scanHostPort(d, args[0])
    d.eachProperty(() => {
      if (d.value() === 'tls') {
        throw d.error('tls for metrics is not supported by this version of Sextant')
      }
      if (d.value() !== 'runtime_metrics')
        throw d.error(`unknown option: ${d.value()}${didYouMean(d.value(), ['runtime_metrics'])}`)
      if (d.nextArg()) throw d.argError()
      runtime = true
    })
  }
  return { address, runtime }
}

function exportRuntime(c: SetupContext): Description {
  const runtime = new RuntimeMetrics(c.metrics)
  return [
    { start: () => runtime.start() },
    collectWhileServing(c, () => runtime.show()),
    { stop: () => runtime.stop() },
  ]
}
