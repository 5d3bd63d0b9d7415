import type { InputError } from '../../base/errors.ts'
import { lazyKey } from '../../base/shared-values.ts'
import { LocalChannel } from '../../base/telemetry/local-channel.ts'
import type { Counter, MetricsRegistry } from '../../base/telemetry/metrics.ts'
import { collectWhileServing } from '../../plugin/collect.ts'
import type { DirectivePart } from '../../plugin/description.ts'
import type { Directive, SetupContext } from '../../plugin/directive.ts'
import { addTap } from '../../plugin/query-tap.ts'
import type { AcceptedSinks } from './accepted-sinks.ts'
import { ENTRY_OCTETS_MAX, EntryWriter } from './entry.ts'
import { ExtraText, otherFields } from './extra-text.ts'
import { type LineSettings, scanLine } from './line-settings.ts'
import type { TapSink } from './sink.ts'
import { Tap, type TapLine } from './tap.ts'

/** Endpoints on which a Corefile listens for sinks. */
const LISTENED = lazyKey('endpoints of dnstap listen', () => new Set<string>())

/** `dnstap [listen] ENDPOINT [full] [WRITEBUFFER] [QUEUE] { … }`: sends queries and replies to dnstap sinks. */
export const dnstap: Directive = {
  name: 'dnstap',
  setup(c) {
    const counters = countersIn(c.metrics)
    const slots = c.counters()
    const names: string[] = []
    const lines: TapLine[] = []
    const parts: DirectivePart[] = []
    while (c.dispenser.next()) {
      const settings = scanLine(c.dispenser)
      if (settings.listens) claimEndpoint(c, settings)
      for (const field of otherFields(settings.extra)) {
        c.warn(`dnstap has no field ${field}: it is sent unchanged`, c.dispenser.position())
      }
      const { line, part } = setUpLine(c, settings, counters)
      names.push(settings.name)
      lines.push(line)
      parts.push(part)
    }
    slots.length = lines.length
    addTap(c.block.shared, new Tap(lines, slots))
    const collect = (): void => {
      slots.forEach((counts) => {
        for (const [i, endpoint] of names.entries()) {
          const count = counts.take(i)
          if (count > 0) counters.lost.inc({ endpoint }, count)
        }
      })
    }
    return [...parts, collectWhileServing(c, collect)]
  },
}

interface Counters {
  readonly sent: Counter
  readonly lost: Counter
}

function countersIn(metrics: MetricsRegistry): Counters {
  return {
    sent: metrics.counter(
      'sextant_dnstap_messages_total',
      'Counter of messages sent to dnstap sinks.',
      ['endpoint'],
    ),
    lost: metrics.counter(
      'sextant_dnstap_lost_messages_total',
      'Counter of messages that dnstap sinks did not get.',
      ['endpoint'],
    ),
  }
}

/** Throws InputError if another line listens on the endpoint. */
function claimEndpoint(
  { dispenser, shared }: SetupContext,
  { endpoint, name }: LineSettings,
): void {
  const listened = shared.acquire(LISTENED)
  const id = JSON.stringify(endpoint)
  if (listened.has(id)) throw dispenser.error(`another dnstap listens on ${name}`)
  listened.add(id)
}

function setUpLine(
  c: SetupContext,
  settings: LineSettings,
  { sent, lost }: Counters,
): { readonly line: TapLine; readonly part: DirectivePart } {
  const { name: endpoint, keepsMessages } = settings
  const extra = new ExtraText(settings.extra, c.block.metadata)
  let sink: TapSink | AcceptedSinks | undefined
  const receive = (octets: Uint8Array): void => sink?.receive(octets)
  const channel = c.octetsToControl(receive) ?? new LocalChannel(ENTRY_OCTETS_MAX, receive)
  const writer = new EntryWriter(channel, c.clock, keepsMessages)
  const start = async (): Promise<void> => {
    // Data threads do not need it.
    const { openLine } = await import('./open-line.ts')
    sink = openLine(c, extra.isConstant ? settings : { ...settings, extra: '' }, {
      sent: (count) => sent.inc({ endpoint }, count),
      lost: (count) => lost.inc({ endpoint }, count),
    })
    sink.start()
  }
  const check = async (): Promise<readonly InputError[]> => {
    const { findTlsFault } = await import('./tls-files.ts')
    return findTlsFault(settings.tls, c.block.root)
  }
  const line = { writer, extra: extra.isConstant ? undefined : extra }
  return { line, part: { start, check, stop: () => sink?.stop() } }
}
