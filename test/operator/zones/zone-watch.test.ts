import t from 'tap'
import type { Provider } from '../../../src/operator/provider/provider-secret.ts'
import type { ZoneAnswer } from '../../../src/operator/zones/ask-zone.ts'
import { readFault, ZoneWatch } from '../../../src/operator/zones/zone-watch.ts'
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
  let asked = 0
  const note = (text: string): number => lines.push(text)
  const watch = new ZoneWatch({
    ask: async ({ host }) => {
      asked++
      return answers[host] ?? 'served'
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
  const fault = (zone = 'k.example', key = 'a/app') => watch.faultOf(key, zone, provider)
  const pass = async (seconds: number): Promise<void> => {
    for (let i = 0; i < seconds; i++) {
      clock.pass(1000)
      await timers.advance(1000)
      await turns()
    }
  }
  return { watch, provider, fault, pass, answers, lines, events, count: () => asked }
}

t.test('a zone that none of its nameservers serves', async (t) => {
  for (const { name, answers, want } of [
    {
      name: 'all refuse',
      answers: { '192.0.2.53': REFUSED, '192.0.2.54': { refusal: 'no SOA' } },
      want: FAULT,
    },
    { name: 'one serves it', answers: { '192.0.2.53': REFUSED }, want: '' },
    {
      name: 'one is silent, so nothing is known',
      answers: { '192.0.2.53': REFUSED, '192.0.2.54': 'silent' },
      want: '',
    },
  ] as const) {
    const { fault, pass, answers: said, lines, events } = stage()
    Object.assign(said, answers)
    t.equal(fault(), undefined, name)
    await pass(20)
    t.equal(fault(), want, name)
    t.strictSame(lines, want === '' ? [] : [FAULT], name)
    t.strictSame(events, ['a/app'], name)
    await pass(3600)
    t.strictSame(events.splice(0), ['a/app'], `${name}: no event because time passes`)
    said['192.0.2.53'] = 'silent'
    await pass(120)
    t.equal(fault(), want, `${name}: silence changes nothing`)
    said['192.0.2.53'] = 'served'
    await pass(360)
    t.equal(fault(), '', name)
    t.strictSame(
      lines.slice(1),
      want === '' ? [] : ['zone k.example: a nameserver serves it again'],
    )
  }
})

t.test('one refusal is not believed', async (t) => {
  const { fault, pass, answers, lines } = stage()
  answers['192.0.2.53'] = REFUSED
  answers['192.0.2.54'] = REFUSED
  fault()
  await pass(3)
  answers['192.0.2.54'] = 'served'
  await pass(30)
  t.equal(fault(), '')
  t.strictSame(lines, [])
})

t.test('the rate is bounded, whatever the number of zones', async (t) => {
  const { fault, pass, count, watch } = stage()
  for (let i = 0; i < 1000; i++) fault(`z${i}.example`, `a/app-${i}`)
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
  const { watch, provider, pass, count } = stage()
  t.equal(watch.faultOf('a/app', 'k.example', { ...provider, nameservers: [] }), '')
  await pass(60)
  t.equal(count(), 0)
})

t.test('the fault is read back from a condition', (t) => {
  t.equal(readFault(`Provider ensured the dns record; ${FAULT}; another note`), FAULT)
  t.equal(readFault('Provider ensured the dns record'), '')
  t.end()
})
