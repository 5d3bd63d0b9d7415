import { ownAddress } from '../../arguments/endpoint.ts'
import { systemTimers } from '../../base/timers.ts'
import type { SetupContext } from '../../plugin/directive.ts'
import type { KuadrantOptions } from './options.ts'
import type { PassNotify } from './pass-notify.ts'
import { findPassFaults } from './pass-notify-options.ts'

/** Passes NOTIFYs on while the block is in service. Returns undefined if the block has no such options. */
export function preparePassing(
  c: SetupContext,
  { pass: options }: KuadrantOptions,
): Pick<PassNotify, 'take'> | undefined {
  if (options === undefined) return undefined
  const { block, clock, log, metrics } = c
  let passing: PassNotify | undefined
  c.onCheck(() => findPassFaults(options, block))
  c.onStartup(async () => {
    const { PassNotify } = await import('./pass-notify.ts')
    for (const fault of findPassFaults(options, block)) throw fault
    const help = 'NOTIFYs of peers, by whether they were passed on, and what of that failed.'
    const counter = metrics.counter('sextant_kuadrant_notifies_total', help, ['outcome'])
    const { keyName } = options
    passing = new PassNotify({
      options,
      key: () => (keyName === undefined ? undefined : block.tsigKeys.find(keyName)),
      sourceFor: (host) => ownAddress(host, block),
      count: (outcome) => counter.inc({ outcome }),
      clock,
      timers: systemTimers,
      log,
    })
  })
  c.onShutdown(() => passing?.close())
  return { take: (sender) => passing?.take(sender) }
}
