import t from 'tap'
import { scanName } from '../../../src/dns/name/name.ts'
import { HMAC_SHA256 } from '../../../src/dns/tsig/algorithm.ts'
import { createTsigKey, type TsigKey } from '../../../src/dns/tsig/key.ts'
import type { Provider } from '../../../src/operator/provider/provider-secret.ts'
import { DnsRecordView } from '../../../src/operator/record/record-view.ts'
import type { ZoneAnswer } from '../../../src/operator/zones/ask-zone.ts'
import type { ZoneState } from '../../../src/operator/zones/zone-state.ts'
import { ZoneWatch } from '../../../src/operator/zones/zone-watch.ts'
import { turns } from '../../support/api-double.ts'
import { FakeClock, FakeTimers } from '../../support/setup.ts'

const REFUSED: ZoneAnswer = { refusal: 'REFUSED' }
const NAMESERVERS = [
  { host: '192.0.2.53', port: 53 },
  { host: '192.0.2.54', port: 53 },
]
const FAULT =
  'no nameserver of its Secret serves the zone k.example: 192.0.2.53:53 (REFUSED), 192.0.2.54:53 (no SOA): add the zone to their Corefiles, or remove it from ZONES'

function stage() {
  const [clock, timers] = [new FakeClock(), new FakeTimers()]
  const [lines, events]: [string[], string[]] = [[], []]
  const answers: Record<string, ZoneAnswer> = {}
  /** By zone, in place of `answers`. */
  const answersOf: Record<string, Record<string, ZoneAnswer>> = {}
  const keys = new Set<TsigKey | undefined>()
  let asked = 0
  const note = (text: string): number => lines.push(text)
  const watch = new ZoneWatch({
    ask: async ({ host }, zone, { key }) => {
      asked++
      keys.add(key)
      return (answersOf[zone] ?? answers)[host] ?? 'served'
    },
    onEvent: (key) => events.push(key),
    clock,
    timers,
    log: { debug: note, info: note, warning: note, error: note },
  })
  const provider: Provider = {
    secretName: 'coredns',
    zones: ['k.example'],
    nameservers: NAMESERVERS,
    tsigKey: undefined,
    rules: [],
  }
  const state = (zone = 'k.example', name = 'app', message = '', used = provider, ready = {}) => {
    const reason = message.startsWith('Published') ? 'ZoneNotServed' : 'ProviderSuccess'
    const status = { conditions: [{ type: 'Ready', reason, message, ...ready }] }
    const record = new DnsRecordView({ metadata: { namespace: 'a', name }, status })
    return watch.stateOf({ record, zone, provider: used })
  }
  const pass = async (seconds: number): Promise<void> => {
    for (let i = 0; i < seconds; i++) {
      clock.pass(1000)
      await timers.advance(1000)
      await turns()
    }
  }
  return {
    watch,
    provider,
    state,
    pass,
    answers,
    answersOf,
    lines,
    events,
    keys,
    count: () => asked,
  }
}

const UNKNOWN = 'not known whether a nameserver serves the zone k.example: '
const SILENT_NOTE = `${UNKNOWN}192.0.2.53:53 (no answer), 192.0.2.54:53 (no answer)`
const EXCHANGES_NOTE = `${UNKNOWN}192.0.2.53:53 (REFUSED, only kdrnt), 192.0.2.54:53 (REFUSED, only kdrnt)`
const HALF = FAULT.replace('(no SOA)', '(no answer)')
const BOTH: ZoneState = { fault: FAULT, note: '' }
const SERVED: ZoneState = { fault: '', note: '' }
const EXCHANGE = { refusal: 'REFUSED', hasRecords: true }

t.test('what is known of a zone', async (t) => {
  for (const { name, first, second, want, log } of [
    { name: 'all refuse', first: REFUSED, second: { refusal: 'no SOA' }, want: BOTH, log: [FAULT] },
    { name: 'one serves it', first: REFUSED, second: 'served', want: SERVED, log: [] },
    {
      name: 'one refuses, and the other has never answered',
      first: REFUSED,
      second: 'silent',
      want: { fault: HALF, note: '' },
      log: [HALF],
    },
    {
      name: 'none answers',
      first: 'silent',
      second: 'silent',
      want: { fault: '', note: SILENT_NOTE },
      log: [SILENT_NOTE],
    },
    {
      name: 'exchanges serve only kdrnt',
      first: EXCHANGE,
      second: EXCHANGE,
      want: { fault: '', note: EXCHANGES_NOTE },
      log: [EXCHANGES_NOTE],
    },
    {
      name: 'one exchange, and one that refuses',
      first: EXCHANGE,
      second: REFUSED,
      want: { fault: '', note: EXCHANGES_NOTE.replace(/(.*), only kdrnt/, '$1') },
      log: [EXCHANGES_NOTE.replace(/(.*), only kdrnt/, '$1')],
    },
  ] as const) {
    const { state, pass, answers: said, lines, events } = stage()
    Object.assign(said, { '192.0.2.53': first, '192.0.2.54': second })
    t.strictSame(state(), SERVED, name)
    await pass(30)
    t.strictSame(state(), want, name)
    t.strictSame(lines, log, name)
    t.strictSame(events, ['a/app'], name)
    await pass(900)
    t.strictSame(events.splice(0), ['a/app'], `${name}: no event because time passes`)
    said['192.0.2.53'] = 'silent'
    said['192.0.2.54'] = 'silent'
    await pass(600)
    const { fault } = want
    t.strictSame(state(), { fault, note: SILENT_NOTE }, `${name}: silence keeps the fault`)
    said['192.0.2.53'] = 'served'
    await pass(360)
    t.strictSame(state(), SERVED, name)
    const isBack = lines.includes('zone k.example: a nameserver serves it again')
    t.equal(isBack, fault !== '', name)
  }
})

t.test(
  'two refusals are not believed, nor those of others while the server restarts',
  async (t) => {
    const { state, pass, answers, lines } = stage()
    answers['192.0.2.53'] = REFUSED
    answers['192.0.2.54'] = REFUSED
    state()
    await pass(15)
    answers['192.0.2.54'] = 'served'
    await pass(30)
    t.strictSame(state(), SERVED)
    t.strictSame(lines, [])
    answers['192.0.2.54'] = 'silent'
    await pass(600)
    const note = `${UNKNOWN}192.0.2.53:53 (REFUSED), 192.0.2.54:53 (no answer)`
    t.strictSame(state(), { fault: '', note }, 'the only one that served it is silent')
    answers['192.0.2.54'] = REFUSED
    await pass(120)
    t.match(state().fault, 'REFUSED', 'it answers, and does not serve the zone')
  },
)

t.test('nameservers that serve another zone of the Secret are no exchanges', async (t) => {
  const { state, pass, answersOf } = stage()
  answersOf['k.example'] = { '192.0.2.53': EXCHANGE, '192.0.2.54': EXCHANGE }
  answersOf['k2.example'] = { '192.0.2.53': 'served' }
  state('k.example', 'app')
  state('k2.example', 'other')
  await pass(200)
  t.match(state('k.example', 'app').fault, '192.0.2.53:53 (REFUSED), 192.0.2.54:53 (REFUSED)')
  t.strictSame(state('k2.example', 'other'), SERVED)
})

t.test('the rate is bounded, whatever the number of zones', async (t) => {
  const { state, pass, count, watch } = stage()
  for (let i = 0; i < 1000; i++) state(`z${i}.example`, `app-${i}`)
  await pass(10)
  t.ok(count() <= 120, `${count()} queries`)
  await pass(290)
  t.ok(count() >= 1000, 'each zone is asked for')
  for (let i = 0; i < 1000; i++) watch.forget(`a/app-${i}`)
  const asked = count()
  await pass(600)
  t.equal(count(), asked, 'zones without records are not asked for')
  watch.close()
})

t.test('a provider without nameservers is not asked', async (t) => {
  const { state, provider, pass, count } = stage()
  t.strictSame(state('k.example', 'app', '', { ...provider, nameservers: [] }), SERVED)
  await pass(60)
  t.equal(count(), 0)
})

t.test('what an earlier leader found counts until the nameservers answer', async (t) => {
  for (const [message, want] of [
    [`Published, but ${FAULT}; ${SILENT_NOTE}; another note`, { fault: FAULT, note: SILENT_NOTE }],
    [`Provider ensured the dns record; ${EXCHANGES_NOTE}`, { fault: '', note: EXCHANGES_NOTE }],
    [`Published, but ${FAULT.replace('k.example', 'example')}`, SERVED],
    ['Provider ensured the dns record', SERVED],
  ] as const) {
    const { state, pass, answers } = stage()
    answers['192.0.2.53'] = 'silent'
    answers['192.0.2.54'] = 'silent'
    const current = () => state('k.example', 'app', message)
    t.strictSame(current(), want)
    await pass(60)
    t.strictSame(current(), { fault: want.fault, note: SILENT_NOTE })
    answers['192.0.2.53'] = 'served'
    await pass(60)
    t.strictSame(current(), SERVED)
  }
})

t.test('each record recalls its own state, from where our text is in its message', async (t) => {
  for (const { reason, message, want } of [
    { reason: 'ZoneNotServed', message: `Published, but ${FAULT}`, want: FAULT },
    { reason: 'ProviderSuccess', message: `Published, but ${FAULT}`, want: '' },
    { reason: 'ProviderError', message: `The DNS provider failed: x; ${FAULT}`, want: '' },
    { reason: 'ZoneNotServed', message: `Published, but x; ${FAULT}`, want: '' },
    { reason: 'ZoneNotServed', message: `Published, but x ${FAULT}`, want: '' },
  ]) {
    const { state, provider, pass, answers, watch } = stage()
    Object.assign(answers, { '192.0.2.53': 'silent', '192.0.2.54': 'silent' })
    const first = () => state('k.example', 'app', message, provider, { reason })
    const second = () => state('k.example', 'other')
    t.strictSame([first().fault, second().fault], [want, ''], `${reason}: ${message}`)
    await pass(60)
    t.strictSame(
      [first(), second()],
      [want, ''].map((fault) => ({ fault, note: SILENT_NOTE })),
    )
    t.strictSame(watch.faults, want === '' ? [] : [want])
  }
  const { state, provider } = stage()
  const foreign = { reason: 'ProviderError' }
  t.strictSame(state('k.example', 'app', `x; ${SILENT_NOTE}`, provider, foreign), SERVED)
  t.strictSame(state('k.example', 'other', `x; y ${SILENT_NOTE}`), SERVED)
})

t.test('a new key is used, and each Secret has its own', async (t) => {
  const { state, provider, pass, keys } = stage()
  const [one, other] = [1, 2].map((octet) => ({
    ...provider,
    tsigKey: createTsigKey(scanName('key.')!, HMAC_SHA256, Uint8Array.of(octet)),
  })) as [Provider, Provider]
  state('k.example', 'app', '', one)
  state('k.example', 'other', '', other)
  await pass(10)
  t.strictSame([...keys], [one.tsigKey, other.tsigKey], 'two Secrets')
  keys.clear()
  state('k.example', 'app', '', other)
  await pass(600)
  t.strictSame([...keys], [other.tsigKey], 'the key was replaced')
})

t.test('other rcodes are no news', async (t) => {
  const { state, pass, answers, lines, events } = stage()
  Object.assign(answers, { '192.0.2.53': REFUSED, '192.0.2.54': { refusal: 'no SOA' } })
  state()
  await pass(60)
  for (const refusal of ['NXDOMAIN', 'REFUSED', 'NOTAUTH']) {
    answers['192.0.2.53'] = { refusal }
    await pass(120)
    t.strictSame(state(), BOTH, refusal)
  }
  t.strictSame([lines, events], [[FAULT], ['a/app']])
})

t.test('an exchange keeps the fault that was found before', async (t) => {
  const { state, pass, answersOf, watch } = stage()
  answersOf['k.example'] = { '192.0.2.53': EXCHANGE, '192.0.2.54': EXCHANGE }
  answersOf['k2.example'] = { '192.0.2.53': 'served' }
  state('k.example', 'app')
  state('k2.example', 'other')
  await pass(200)
  const { fault } = state('k.example', 'app')
  t.match(fault, 'REFUSED')
  watch.forget('a/other')
  await pass(600)
  t.strictSame(state('k.example', 'app'), { fault, note: EXCHANGES_NOTE })
})
