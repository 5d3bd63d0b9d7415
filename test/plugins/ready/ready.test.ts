import t from 'tap'
import { ready } from '../../../src/plugins/ready/setup.ts'
import { SetUp, setupError } from '../../support/setup.ts'

const ENDPOINT = ':8181/ready'

t.test('ready once every plugin is', async (t) => {
  const setUp = new SetUp(ready, 'ready')
  t.match(await setUp.get(ENDPOINT), { status: 200, body: 'OK' })
  let reason = 'zones/a.yaml:3: bad\nweight'
  setUp.readiness.push(
    { name: 'kuadrant', check: () => reason },
    { name: 'geoip', check: () => 'not loaded' },
    { name: 'kuadrant', check: () => '' },
  )
  t.match(await setUp.get(ENDPOINT), {
    status: 503,
    body: 'geoip,kuadrant\ngeoip: not loaded\nkuadrant: zones/a.yaml:3: bad\\x0aweight',
  })
  t.match(setUp.lines.at(-1), '[INFO] plugin/ready: Plugins not ready: "geoip,kuadrant"')
  reason = ''
  t.match(await setUp.get(ENDPOINT), { status: 503, body: 'geoip\ngeoip: not loaded' })
  reason = 'broken again'
  t.match(await setUp.get(ENDPOINT), { status: 503, body: 'geoip\ngeoip: not loaded' })
})

t.test('a later failure is logged, and the status stays', async (t) => {
  const setUp = new SetUp(ready, 'ready')
  const reasons = { kuadrant: '', geoip: '' }
  setUp.readiness.push(
    { name: 'kuadrant', check: () => reasons.kuadrant },
    { name: 'geoip', check: () => reasons.geoip },
  )
  t.strictSame((await setUp.get(ENDPOINT)).body, 'OK')
  reasons.kuadrant = 'zones/a.yaml:3: bad\nweight'
  const body = 'OK\nkuadrant: zones/a.yaml:3: bad\\x0aweight'
  t.match(await setUp.get(ENDPOINT), { status: 200, body })
  reasons.geoip = 'gone'
  t.match(await setUp.get(ENDPOINT), { status: 200, body: body.replace('OK', 'OK\ngeoip: gone') })
  reasons.kuadrant = ''
  reasons.geoip = ''
  t.strictSame((await setUp.get(ENDPOINT)).body, 'OK')
})

t.test('the note of a ready plugin is on the page', async (t) => {
  const setUp = new SetUp(ready, 'ready')
  const said = { reason: 'not loaded', note: 'answers are old' }
  setUp.readiness.push({ name: 'kuadrant', check: () => said.reason, note: () => said.note })
  t.match(await setUp.get(ENDPOINT), { status: 503, body: 'kuadrant\nkuadrant: not loaded' })
  said.reason = ''
  const body = 'OK\nkuadrant: answers are old'
  t.match(await setUp.get(ENDPOINT), { status: 200, body })
  said.note = ''
  t.strictSame((await setUp.get(ENDPOINT)).body, 'OK')
})

t.test('two blocks over one source give one line', async (t) => {
  const setUp = new SetUp(ready, 'ready')
  const said = { reason: 'a.yaml:1: bad' }
  for (let block = 0; block < 2; block++) {
    setUp.readiness.push({ name: 'kuadrant', check: () => said.reason, note: () => 'old' })
  }
  t.strictSame((await setUp.get(ENDPOINT)).body, 'kuadrant\nkuadrant: a.yaml:1: bad')
  said.reason = ''
  t.strictSame((await setUp.get(ENDPOINT)).body, 'OK\nkuadrant: old')
})

t.test('problems are below the notes, in place of what makes their plugin not ready', async (t) => {
  const setUp = new SetUp(ready, 'ready')
  let reason = ''
  let count = 0
  setUp.readiness.push(
    { name: 'kuadrant', check: () => reason, note: () => 'answers are old' },
    { name: 'file', check: () => '' },
  )
  const problem = { place: 'a.yaml:1', object: 'ns/a', reason: 'bad\nweight' }
  const groups = () => [{ kind: 'manifest', of: 'a', count, problems: [problem] } as const]
  setUp.problemReports.push({ plugin: 'kuadrant', groups })
  t.strictSame((await setUp.get(ENDPOINT)).body, 'OK\nkuadrant: answers are old')
  reason = 'a.yaml:1: bad weight and 2 more'
  count = 3
  t.match(await setUp.get(ENDPOINT), {
    status: 200,
    body: [
      'OK',
      'kuadrant: answers are old',
      'kuadrant: a.yaml:1: bad\\x0aweight',
      'and 2 more: manifest',
    ].join('\n'),
  })
})

t.test('monitored continuously', async (t) => {
  const setUp = new SetUp(ready, 'ready 127.0.0.1:99 {\n monitor continuously\n}')
  let reason = ''
  setUp.readiness.push({ name: 'file', check: () => reason })
  t.match(await setUp.get('127.0.0.1:99/ready'), { status: 200 })
  reason = 'gone'
  t.match(await setUp.get('127.0.0.1:99/ready'), { status: 503, body: 'file\nfile: gone' })
})

t.test('not while shutting down', async (t) => {
  const setUp = new SetUp(ready, 'ready')
  await setUp.exit()
  t.match(await setUp.get(ENDPOINT), { status: 503, body: 'Shutting down' })
})

t.test('bad lines', async (t) => {
  const table = [
    { given: 'ready\nready', want: 'this plugin can only be used once per Server Block' },
    { given: 'ready a b', want: 'Wrong argument count' },
    { given: 'ready localhost', want: 'missing port in address' },
    { given: 'ready {\n monitor\n}', want: 'Wrong argument count' },
    { given: 'ready {\n monitor never\n}', want: "monitor type 'never' not supported" },
    { given: 'ready {\n watch\n}', want: "unknown property 'watch'" },
  ]
  for (const { given, want } of table) t.match(setupError(ready, given), want, given)
})
