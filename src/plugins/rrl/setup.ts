import { randomFillSync } from 'node:crypto'
import { createRateTable, type Rate, rateOf } from '../../base/rate-table.ts'
import { TABULATION_WORDS } from '../../base/tabulation-hash.ts'
import { LineBudget } from '../../base/telemetry/line-budget.ts'
import type { Dispenser } from '../../corefile/dispenser.ts'
import { type Cidr, scanCidr } from '../../dns/text/address.ts'
import { AddressSet } from '../../dns/text/address-set.ts'
import { nextOnce } from '../../plugin/arguments/once.ts'
import { scanZoneArgs } from '../../plugin/arguments/zones.ts'
import { collectWhileServing } from '../../plugin/collect.ts'
import type { CounterSlots } from '../../plugin/counter-slots.ts'
import type { Description } from '../../plugin/description.ts'
import type { Directive, SetupContext } from '../../plugin/directive.ts'
import { LIMITER } from '../../plugin/reply-limiter.ts'
import { ZoneSet } from '../../zone/lookup/zone-set.ts'
import { CATEGORY_NAMES, Category, type RrlOptions } from './options.ts'
import { LimitReports, REPORT_PERIOD_MS, REPORTS_MAX } from './reports.ts'
import { Rrl, RrlCount, type RrlMemory } from './rrl.ts'

const WINDOW_SECONDS_DEFAULT = 15
const WINDOW_SECONDS_MAX = 3600
const ALLOWANCE_MAX = 10_000
const SLIP_MAX = 10
const TABLE_SIZE_DEFAULT = 100_000
const TABLE_SIZE_MIN = 64
const TABLE_SIZE_MAX = 10_000_000
/** A terabit: more than any server sends. */
const AMPLIFIED_OCTETS_MAX = 125_000_000_000

/** Properties that set a limit, and their categories. */
const ALLOWANCES: ReadonlyMap<string, Category> = new Map([
  ['responses-per-second', Category.Response],
  ['nodata-per-second', Category.Nodata],
  ['nxdomains-per-second', Category.Nxdomain],
  ['referrals-per-second', Category.Referral],
  ['errors-per-second', Category.Error],
  ['requests-per-second', Category.Request],
])

const PROPERTIES: readonly string[] = [
  ...ALLOWANCES.keys(),
  'window',
  'ipv4-prefix-length',
  'ipv6-prefix-length',
  'slip-ratio',
  'amplified-octets-per-second',
  'max-table-size',
  'report-only',
  'exempt',
]

interface RrlDraft {
  zones: ZoneSet | undefined
  windowSeconds: number
  ipv4Bits: number
  ipv6Bits: number
  /** As written. */
  readonly allowances: Map<Category, number>
  slip: number
  amplifiedOctets: number
  tableSize: number
  reportOnly: boolean
  readonly exempt: Cidr[]
}

/** `rrl [ZONES...] { … }`: limits UDP replies to clients whose address may be forged. */
export const rrl: Directive = { name: 'rrl', setup }

function setup(c: SetupContext): Description {
  const options = scanOptions(c)
  const slots = c.counters()
  // Each thread sends few lines; this budget bounds the lines of all threads.
  const budget = new LineBudget(REPORTS_MAX, REPORT_PERIOD_MS)
  const verb = options.reportOnly ? 'over the limit' : 'limited'
  const report = c.toControl((text) => {
    if (budget.take(c.clock.monotonic())) c.log.info(`${verb}: ${text}`, 'rrl-limited')
  })
  const limiter = new Rrl(options, slots, new LimitReports(options, report))
  c.block.shared.provide(LIMITER, limiter)
  const broadcast = c.broadcast<RrlMemory>((memory) => limiter.use(memory))
  const start = (): void => {
    const memory = {
      accounts: createRateTable(options.tableSize),
      secret: randomFillSync(new Int32Array(TABULATION_WORDS)),
      amplification: new Float64Array(new SharedArrayBuffer(Float64Array.BYTES_PER_ELEMENT)),
    }
    limiter.use(memory)
    broadcast.publish(memory)
  }
  return [{ start }, exportCounts(c, slots)]
}

function scanOptions(c: SetupContext): RrlOptions {
  const d = c.dispenser
  const draft: RrlDraft = {
    zones: undefined,
    windowSeconds: WINDOW_SECONDS_DEFAULT,
    ipv4Bits: 24,
    ipv6Bits: 56,
    allowances: new Map(),
    slip: 1,
    amplifiedOctets: 0,
    tableSize: TABLE_SIZE_DEFAULT,
    reportOnly: false,
    exempt: [],
  }
  for (let i = 0; nextOnce(d, i); i++) {
    const args = d.remainingArgs()
    if (args.length > 0) draft.zones = new ZoneSet(scanZoneArgs(d, args))
    d.eachProperty(() => scanProperty(d, draft))
  }
  const { zones, ipv4Bits, ipv6Bits, slip, amplifiedOctets, tableSize, reportOnly } = draft
  const rates = CATEGORY_NAMES.map((_, category) => rateIn(draft, category as Category))
  if (amplifiedOctets === 0 && rates.every((rate) => rate === undefined)) {
    throw d.error('rrl limits nothing; set responses-per-second, or another limit')
  }
  const exempt = draft.exempt.length === 0 ? undefined : new AddressSet(draft.exempt)
  return { zones, ipv4Bits, ipv6Bits, rates, slip, amplifiedOctets, tableSize, reportOnly, exempt }
}

/**
 * The rate of a category. A limit that is not set is that of positive responses; requests have no
 * default limit.
 */
function rateIn({ allowances, windowSeconds }: RrlDraft, category: Category): Rate | undefined {
  const inherited = category === Category.Request ? 0 : allowances.get(Category.Response)
  const allowance = allowances.get(category) ?? inherited ?? 0
  return allowance === 0 ? undefined : rateOf(allowance, windowSeconds)
}

function scanProperty(d: Dispenser, draft: RrlDraft): void {
  const property = d.value()
  const category = ALLOWANCES.get(property)
  if (category !== undefined) {
    draft.allowances.set(category, scanNumber(d, property, 0, ALLOWANCE_MAX))
    return
  }
  switch (property) {
    case 'window':
      draft.windowSeconds = scanNumber(d, property, 1, WINDOW_SECONDS_MAX)
      return
    case 'ipv4-prefix-length':
      draft.ipv4Bits = scanWhole(d, property, 1, 32)
      return
    case 'ipv6-prefix-length':
      draft.ipv6Bits = scanWhole(d, property, 1, 128)
      return
    case 'slip-ratio':
      draft.slip = scanWhole(d, property, 0, SLIP_MAX)
      return
    case 'amplified-octets-per-second':
      draft.amplifiedOctets = scanWhole(d, property, 0, AMPLIFIED_OCTETS_MAX)
      return
    case 'max-table-size':
      draft.tableSize = scanWhole(d, property, TABLE_SIZE_MIN, TABLE_SIZE_MAX)
      return
    case 'report-only':
      if (d.nextArg()) throw d.argError()
      draft.reportOnly = true
      return
    case 'exempt':
      draft.exempt.push(...scanNetworks(d))
      return
    default:
      throw d.unknownProperty(property, PROPERTIES)
  }
}

function scanNumber(d: Dispenser, property: string, least: number, most: number): number {
  const args = d.remainingArgs()
  const number = args.length === 1 && /^\d{1,12}(\.\d{1,6})?$/.test(args[0]!) ? Number(args[0]) : -1
  if (number >= least && number <= most) return number
  throw d.error(`${property} needs one number from ${least} to ${most}`)
}

function scanWhole(d: Dispenser, property: string, least: number, most: number): number {
  const number = scanNumber(d, property, least, most)
  if (Number.isInteger(number)) return number
  throw d.error(`${property} needs one whole number from ${least} to ${most}`)
}

function scanNetworks(d: Dispenser): Cidr[] {
  const args = d.remainingArgs(1)
  return args.map((text) => {
    const whole = text.includes(':') ? '/128' : '/32'
    const network = scanCidr(text.includes('/') ? text : text + whole)
    if (network !== undefined) return network
    throw d.error(`${JSON.stringify(text)} is not a network; write ADDRESS or ADDRESS/BITS`)
  })
}

/** Copies the counts of all threads to the metrics page, and logs their sum once per period. */
function exportCounts(c: SetupContext, slots: CounterSlots): Description {
  const counter = (name: string, help: string, category: readonly string[] = []) =>
    c.metrics.counter(name, help, ['server', 'zone', 'view', ...category])
  const responses = counter(
    'coredns_rrl_responses_exceeded_total',
    'Counter of responses exceeding QPS limit.',
    ['category'],
  )
  const requests = counter(
    'coredns_rrl_requests_exceeded_total',
    'Counter of requests exceeding QPS limit.',
  )
  const sent = {
    truncated: counter('sextant_rrl_truncated_total', 'Counter of replies sent truncated.'),
    dropped: counter('sextant_rrl_dropped_total', 'Counter of replies not sent.'),
  }
  let exceeded = 0
  const collect = (): void => {
    slots.forEach((counts, { server, zone, view }) => {
      const labels = { server, zone, view }
      const take = (index: number, add: (count: number) => void): void => {
        const count = counts.take(index)
        if (count > 0) add(count)
      }
      const noteExceeded = (category: string) => (count: number) => {
        exceeded += count
        if (category === CATEGORY_NAMES[Category.Request]) requests.inc(labels, count)
        else responses.inc({ ...labels, category }, count)
      }
      for (const [i, name] of CATEGORY_NAMES.entries()) {
        take(RrlCount.Exceeded + i, noteExceeded(name))
      }
      take(RrlCount.Amplified, noteExceeded('amplified'))
      take(RrlCount.Truncated, (count) => sent.truncated.inc(labels, count))
      take(RrlCount.Dropped, (count) => sent.dropped.inc(labels, count))
    })
  }
  let stop = (): void => {}
  const serving = (): void => {
    stop = c.timers.every(REPORT_PERIOD_MS, () => {
      collect()
      if (exceeded > 0)
        c.log.info(`replies over the limit: ${exceeded} in the last minute`, 'rrl-over-limit')
      exceeded = 0
    })
  }
  return [collectWhileServing(c, collect), { serving, stop: () => stop() }]
}
