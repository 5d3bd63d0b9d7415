import { scanDuration } from '../../base/duration.ts'
import { type CollectorKind, scanCollectorUrl } from '../../base/telemetry/spans/collector-url.ts'
import type { Dispenser } from '../../corefile/dispenser.ts'
import { nextOnce } from '../../plugin/arguments/once.ts'

export interface TraceSettings {
  readonly kind: CollectorKind
  readonly url: URL
  /** 0 = no query is sampled. */
  every: number
  service: string
  backlogMax: number
  batchMax: number
  intervalMs: number
}

const ADDRESS_DEFAULT = { zipkin: 'localhost:9411', otlp: 'localhost:4318' } as const
const SPANS_MAX = 1_000_000
const BOOLEANS = /^(1|t|T|true|TRUE|True|0|f|F|false|FALSE|False)$/
const PROPERTIES = [
  'every',
  'service',
  'client_server',
  'zipkin_max_backlog_size',
  'zipkin_max_batch_size',
  'zipkin_max_batch_interval',
]

/** Reads the directive. Throws InputError. */
export function scanTrace(d: Dispenser, warn: (message: string) => void): TraceSettings {
  let settings: TraceSettings | undefined
  for (let i = 0; nextOnce(d, i); i++) {
    settings = scanCollector(d, d.remainingArgs(0, 2))
    scanProperties(d, settings, warn)
  }
  return settings!
}

/** As in CoreDNS, one argument is an endpoint. */
function scanCollector(d: Dispenser, args: readonly string[]): TraceSettings {
  const isKindOnly = args.length === 1 && args[0]!.toLowerCase() === 'otlp'
  const hasKind = args.length === 2 || isKindOnly
  const kind = hasKind ? args[0]!.toLowerCase() : 'zipkin'
  if (kind === 'datadog') {
    throw d.error('datadog is not supported; its agent accepts OTLP: write trace otlp ENDPOINT')
  }
  if (kind !== 'zipkin' && kind !== 'otlp') {
    throw d.error(`tracing endpoint type '${kind}' is not supported; use zipkin or otlp`)
  }
  const text = (hasKind ? args[1] : args[0]) ?? ADDRESS_DEFAULT[kind]
  return {
    kind,
    url: scanUrl(d, kind, text),
    every: 1,
    service: 'coredns',
    backlogMax: 1000,
    batchMax: 100,
    intervalMs: 1000,
  }
}

function scanUrl(d: Dispenser, kind: CollectorKind, text: string): URL {
  const url = scanCollectorUrl(kind, text)
  if (url !== undefined) return url
  throw d.error(`endpoint ${JSON.stringify(text)}; use HOST:PORT, or http(s)://HOST/PATH`)
}

function scanProperties(
  d: Dispenser,
  settings: TraceSettings,
  warn: (message: string) => void,
): void {
  d.eachProperty(() => {
    const property = d.value()
    switch (property) {
      case 'every':
        settings.every = scanNumber(d, property, 0, 1e9)
        if (settings.every === 0) warn('trace with every 0 samples no query')
        return
      case 'service':
        settings.service = d.onlyArg()
        return
      case 'client_server':
        if (!BOOLEANS.test(d.remainingArgs(0, 1)[0] ?? 'true')) {
          throw d.error(`client_server is ${JSON.stringify(d.value())}; use true or false`)
        }
        warn('client_server of trace has no effect: DNS queries have no span of their client')
        return
      case 'zipkin_max_backlog_size':
        settings.backlogMax = scanNumber(d, property, 1, SPANS_MAX)
        return
      case 'zipkin_max_batch_size':
        settings.batchMax = scanNumber(d, property, 1, SPANS_MAX)
        return
      case 'zipkin_max_batch_interval':
        settings.intervalMs = scanInterval(d, property)
        return
      case 'datadog_analytics_rate':
        throw d.error('datadog_analytics_rate is only for datadog, which is not supported')
      default:
        throw d.unknownProperty(property, PROPERTIES)
    }
  })
}

function scanNumber(d: Dispenser, what: string, least: number, most: number): number {
  const text = d.onlyArg()
  const number = /^\d{1,10}$/.test(text) ? Number(text) : -1
  if (number >= least && number <= most) return number
  throw d.error(`${what} is ${JSON.stringify(text)}; use a number from ${least} to ${most}`)
}

function scanInterval(d: Dispenser, what: string): number {
  const text = d.onlyArg()
  const ms = scanDuration(text) ?? 0
  if (ms > 0) return ms
  throw d.error(`${what} is ${JSON.stringify(text)}; write a duration such as 500ms or 10s`)
}
