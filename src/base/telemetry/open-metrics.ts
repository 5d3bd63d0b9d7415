/** One trace of an observation, with its value. */
export interface Exemplar {
  readonly labelSet: Readonly<Record<string, string>>
  readonly value: number
  /** Seconds since the Unix epoch. */
  readonly timestamp: number
}

interface MetricSample {
  /** Absent = the name of the family. */
  readonly metricName?: string | undefined
  readonly labels: Readonly<Record<string, string | number>>
  readonly value: number
  /** prom-client has null for none. */
  readonly exemplar?: Exemplar | null | undefined
}

/** A metric as prom-client has it. */
export interface MetricFamily {
  readonly name: string
  readonly help: string
  readonly type: string
  readonly values: readonly MetricSample[]
}

export const OPEN_METRICS_TYPE = 'application/openmetrics-text; version=1.0.0; charset=utf-8'

const TOTAL = '_total'
const UNITS = ['seconds', 'bytes', 'octets'] as const

/**
 * Returns whether a client prefers OpenMetrics to the older text format. `accept`: its header Accept (RFC 9110 section
 * 12.5.1).
 */
export function prefersOpenMetrics(accept: string): boolean {
  let [open, plain] = [0, 0]
  for (const range of accept.split(',')) {
    const [type = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase())
    const parameterOf = (name: string): string | undefined =>
      parameters.find((parameter) => parameter.startsWith(`${name}=`))?.slice(name.length + 1)
    const quality = Number(parameterOf('q') ?? 1)
    const isOpen =
      type === 'application/openmetrics-text' && /^1\./.test(parameterOf('version') ?? '1.')
    if (isOpen) open = Math.max(open, quality)
    if (type === 'text/plain') plain = Math.max(plain, quality)
  }
  return open > 0 && open >= plain
}

/** Prints a page in OpenMetrics 1.0. Sample names are those of the older format. */
export function printOpenMetrics(families: readonly MetricFamily[]): string {
  return `${families.map(printFamily).join('')}# EOF\n`
}

function printFamily({ name, help, type, values }: MetricFamily): string {
  const isTotal = name.endsWith(TOTAL)
  const family = type === 'counter' && isTotal ? name.slice(0, -TOTAL.length) : name
  // All samples of a counter end in _total. As in Prometheus's own libraries, other counters keep their names.
  const printed = type === 'counter' && !isTotal ? 'unknown' : type
  const unit = UNITS.find((candidate) => family.endsWith(`_${candidate}`))
  const lines = [
    `# TYPE ${family} ${printed}`,
    ...(unit === undefined ? [] : [`# UNIT ${family} ${unit}`]),
    `# HELP ${family} ${escapeText(help)}`,
    ...values.map((sample) => printSample(name, sample)),
  ]
  return `${lines.join('\n')}\n`
}

function printSample(family: string, sample: MetricSample): string {
  const { metricName = family, labels, value, exemplar } = sample
  const line = `${metricName}${printLabels(labels)} ${printNumber(value)}`
  if (exemplar === undefined || exemplar === null) return line
  const { labelSet, timestamp } = exemplar
  const traced = `{${printPairs(labelSet)}} ${printNumber(exemplar.value)}`
  return `${line} # ${traced} ${timestamp.toFixed(3)}`
}

function printLabels(labels: MetricSample['labels']): string {
  const pairs = printPairs(labels)
  return pairs === '' ? '' : `{${pairs}}`
}

function printPairs(labels: MetricSample['labels']): string {
  return Object.entries(labels)
    .map(
      ([name, value]) => `${name}="${name === 'le' ? printBound(value) : escapeText(`${value}`)}"`,
    )
    .join(',')
}

/** Bounds are canonical numbers: integers have a decimal. */
function printBound(value: string | number): string {
  return Number.isInteger(value) ? `${value}.0` : `${value}`
}

function printNumber(value: number): string {
  if (value === Number.POSITIVE_INFINITY) return '+Inf'
  return value === Number.NEGATIVE_INFINITY ? '-Inf' : `${value}`
}

function escapeText(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
}
