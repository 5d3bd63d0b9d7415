import { collectWhileServing } from './collect.ts'
import type { CounterSlots } from './counter-slots.ts'
import type { DirectivePart } from './description.ts'
import type { SetupContext } from './directive.ts'

const NAMES = {
  dns64: 'coredns_dns64_requests_translated_total',
  siit: 'coredns_siit_requests_translated_total',
} as const

/** Exports slot 0 of the counters: the queries that a directive translated. */
export function exportTranslated(
  c: SetupContext,
  slots: CounterSlots,
  directive: keyof typeof NAMES,
): DirectivePart {
  const help = `Counter of DNS requests translated by ${directive}.`
  const counter = c.metrics.counter(NAMES[directive], help, ['server'])
  return collectWhileServing(c, () =>
    slots.forEach((counts, { server }) => {
      const count = counts.take(0)
      if (count > 0) counter.inc({ server }, count)
    }),
  )
}
