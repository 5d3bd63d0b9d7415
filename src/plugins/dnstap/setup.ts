import { hostname } from 'node:os'
import type { Counter, MetricsRegistry } from '../../base/telemetry/metrics.ts'
import { PROGRAM, VERSION } from '../../base/version.ts'
import type { Dispenser } from '../../corefile/dispenser.ts'
import { collectWhileServing } from '../../plugin/collect.ts'
import type { DirectivePart } from '../../plugin/description.ts'
import type { Directive, SetupContext } from '../../plugin/directive.ts'
import { addTap } from '../../plugin/query-tap.ts'
import { scanSinkEndpoint } from './endpoint.ts'
import { EntryWriter, TEXT_OCTETS_MAX } from './entry.ts'
import { ExtraText, otherFields } from './extra-text.ts'
import type { SinkSettings, TapSink } from './sink.ts'
import { OwnChannel, Tap, type TapLine } from './tap.ts'

/** Of WRITEBUFFER and QUEUE, as in CoreDNS. */
const WRITE_BUFFER_MAX = 1024
const QUEUE_MAX = 4096
const WRITE_BUFFER_OCTETS = 2 ** 20
const QUEUE_MESSAGES = 10_000
/** Messages over TCP may have 64 KiB each. */
const QUEUE_OCTETS = 10 * 2 ** 20

const PROPERTIES = ['identity', 'version', 'extra', 'skipverify']

interface Settings extends SinkSettings {
  readonly keepsMessages: boolean
}

/** `dnstap ENDPOINT [full] [WRITEBUFFER] [QUEUE] { … }`: sends queries and replies to a dnstap sink. */
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

function setUpLine(
  c: SetupContext,
  settings: Settings,
  { sent, lost }: Counters,
): { readonly line: TapLine; readonly part: DirectivePart } {
  const { name: endpoint, keepsMessages } = settings
  const extra = new ExtraText(settings.extra, c.block.metadata)
  let sink: TapSink | undefined
  const receive = (octets: Uint8Array): void => sink?.receive(octets)
  const channel = c.octetsToControl(receive) ?? new OwnChannel(receive)
  const writer = new EntryWriter(channel, c.clock, keepsMessages)
  const start = async (): Promise<void> => {
    // Data threads do not need it.
    const { TapSink } = await import('./sink.ts')
    sink = new TapSink(extra.isConstant ? settings : { ...settings, extra: '' }, {
      log: c.log,
      timers: c.timers,
      seed: Math.floor(c.random() * 2 ** 32),
      sent: (count) => sent.inc({ endpoint }, count),
      lost: (count) => lost.inc({ endpoint }, count),
    })
    sink.start()
  }
  const line = { writer, extra: extra.isConstant ? undefined : extra }
  return { line, part: { start, stop: () => sink?.stop() } }
}

function scanLine(d: Dispenser): Settings {
  const [name = '', full, writeBuffer = '1', queue = '1'] = d.remainingArgs(1, 4)
  if (name === 'listen') throw d.error('dnstap cannot listen for sinks; name the socket of a sink')
  const endpoint = scanSinkEndpoint(d, name)
  if (full !== undefined && full !== 'full') {
    throw d.error(`${JSON.stringify(full)} is not expected here; write full, or nothing`)
  }
  const queues = scanNumber(d, 'QUEUE', queue, QUEUE_MAX)
  const settings = {
    endpoint,
    name,
    keepsMessages: full !== undefined,
    writeOctetsMax:
      scanNumber(d, 'WRITEBUFFER', writeBuffer, WRITE_BUFFER_MAX) * WRITE_BUFFER_OCTETS,
    queueMessagesMax: queues * QUEUE_MESSAGES,
    queueOctetsMax: queues * QUEUE_OCTETS,
    identity: hostname(),
    version: `${PROGRAM}-${VERSION}`,
    extra: '',
    skipVerify: false,
  }
  d.eachProperty(() => {
    const property = d.value()
    switch (property) {
      case 'identity':
      case 'version':
      case 'extra':
        settings[property] = scanText(d, property)
        return
      case 'skipverify':
        d.noArgs()
        if (endpoint.kind !== 'tls') throw d.error('skipverify needs an endpoint with tls://')
        settings.skipVerify = true
        return
      case 'tls':
        throw d.error('tls is only for dnstap listen, which this version does not have')
      default:
        throw d.unknownProperty(property, PROPERTIES)
    }
  })
  return settings
}

function scanText(d: Dispenser, property: string): string {
  const text = d.onlyArg()
  const octets = Buffer.byteLength(text)
  if (octets <= TEXT_OCTETS_MAX) return text
  throw d.error(`${property} has ${octets} octets; use at most ${TEXT_OCTETS_MAX}`)
}

function scanNumber(d: Dispenser, what: string, text: string, most: number): number {
  const number = /^\d{1,4}$/.test(text) ? Number(text) : 0
  if (number >= 1 && number <= most) return number
  throw d.error(`${what} is ${JSON.stringify(text)}; use a number from 1 to ${most}`)
}
