import t from 'tap'
import { type Asked, listBody, statusBody, turns } from '../support/api-double.ts'
import { object, Stage, WAIT_MS } from './list-watch-stage.ts'

t.test('refusals say what to do, once, and are tried again until it works', async (t) => {
  const table = [
    {
      status: 403,
      want: /403 no way; this account needs get, list and watch of dnsrecords\.kuadrant\.io; retrying$/,
      refreshes: 0,
    },
    {
      status: 404,
      want: /404 no way; is the CustomResourceDefinition dnsrecords\.kuadrant\.io installed\?/,
      refreshes: 0,
    },
    { status: 401, want: /401 no way/, refreshes: 3 },
    { status: 500, want: /500 no way/, refreshes: 0 },
  ]
  for (const { status, want, refreshes } of table) {
    await t.test(`${status}`, async (t) => {
      const stage = new Stage(t)
      for (let attempt = 0; attempt < 3; attempt++) {
        ;(await stage.asked()).reply(status, statusBody(status, 'no way'))
        await turns()
        t.match(stage.watch.reason, /no way/)
        await stage.advance(WAIT_MS)
      }
      t.match(stage.lines, [want])
      t.equal(stage.lines.length, 1)
      t.equal(stage.watch.counts.failures.get(status), 3)
      t.equal(stage.api.refreshes, refreshes)
      await stage.synced()
      t.match(stage.lines[1], /dnsrecords in all namespaces: watch established again/)
      t.equal(stage.watch.reason, '')
    })
  }
})

t.test('no response of a starting server removes objects', async (t) => {
  const table: readonly { name: string; say: (asked: Asked) => void }[] = [
    { name: 'no connection', say: (asked) => asked.fail(new Error('connect ECONNREFUSED')) },
    { name: 'truncated', say: (asked) => asked.stream().fail(new Error('socket hang up')) },
    { name: 'no answer', say: (asked) => asked.stream().end() },
    {
      name: 'paths that are not installed',
      say: (asked) => asked.reply(503, statusBody(503, 'try again', 'ServiceUnavailable')),
    },
    {
      name: 'a kind that is not known',
      say: (asked) => asked.reply(404, statusBody(404, 'not found', 'NotFound')),
    },
    { name: 'an account without rights', say: (asked) => asked.reply(403, statusBody(403, 'no')) },
    { name: 'a token that is not known', say: (asked) => asked.reply(401, statusBody(401, 'no')) },
    {
      name: 'a cache that is not filled',
      say: (asked) => asked.reply(429, statusBody(429, 'storage is (re)initializing'), 1),
    },
    {
      name: 'a cache that is behind',
      say: (asked) => asked.reply(504, statusBody(504, 'Timeout: Too large resource version: 9')),
    },
    {
      name: 'a history that begins later',
      say: (asked) => asked.reply(410, statusBody(410, 'too old resource version')),
    },
    {
      name: 'an answer that is no list',
      say: (asked) => asked.reply(200, { metadata: { resourceVersion: '20' } }),
    },
  ]
  for (const { name, say } of table) {
    await t.test(name, async (t) => {
      const stage = new Stage(t)
      ;(await stage.asked()).reply(200, listBody('10', [object('a', '1')]))
      ;(await stage.asked()).stream().end()
      t.strictSame(await stage.heard(), ['begin', 'put a', 'end'])
      for (let attempt = 0; attempt < 12; attempt++) {
        await stage.advance(WAIT_MS)
        say(await stage.asked())
        await turns()
      }
      t.notOk((await stage.heard()).includes('end'), 'what was not listed goes with the end only')
      await stage.advance(WAIT_MS)
      const last = await stage.asked()
      const isQuestion = last.query.get('limit') === '1'
      last.reply(
        200,
        isQuestion ? listBody('30', [], 'more') : { ...listBody('30', []), items: null },
      )
      await stage.heard()
      t.equal(stage.api.asked[0]?.isWatch, true, 'it is followed again')
    })
  }
})

t.test('a long reason is cut', async (t) => {
  const long = 'x'.repeat(10_000)
  const table: readonly { name: string; fail: (asked: Asked) => void }[] = [
    { name: 'no answer', fail: (asked) => asked.fail(new Error(long)) },
    { name: 'a refusal', fail: (asked) => asked.reply(500, statusBody(500, long)) },
  ]
  for (const { name, fail } of table) {
    const stage = new Stage(t)
    fail(await stage.asked())
    await turns()
    t.ok(stage.watch.reason.length < 400, name)
    t.match(stage.lines, [/xxx…; retrying$/], name)
  }
})

t.test('waits grow, are drawn, and heed what the API asks for', async (t) => {
  const stage = new Stage(t)
  const waits: number[] = []
  for (let attempt = 0; attempt < 8; attempt++) {
    ;(await stage.asked()).fail(new Error('connect ECONNREFUSED'))
    await turns()
    let waited = 0
    for (; stage.api.asked.length === 0; waited += 50) await stage.advance(50)
    waits.push(waited)
  }
  for (const [attempt, waited] of waits.entries()) {
    const most = Math.min(500 * 2 ** attempt, 15_000)
    t.ok(waited >= most / 2 && waited <= most + 50, `${waited} of ${most}`)
  }
  ;(await stage.asked()).reply(429, statusBody(429, 'too many requests'), 40)
  await turns()
  await stage.advance(39_000)
  t.equal(stage.api.asked.length, 0)
  await stage.advance(1001)
  t.equal(stage.api.asked.length, 1)
})

t.test('the age grows while the API is away, and only then', async (t) => {
  const stage = new Stage(t)
  t.equal(stage.watch.ageMs, 0, 'nothing is known yet')
  const stream = await stage.synced()
  await stage.advance(60_000)
  t.equal(stage.watch.ageMs, 0)
  stream.event('BOOKMARK', object('', '11'))
  await turns()
  await stage.advance(1000)
  stream.fail(new Error('gone'))
  await turns()
  t.equal(stage.watch.ageMs, 1000, 'since something came')
  await stage.advance(WAIT_MS)
  t.equal(stage.watch.ageMs, 1000 + WAIT_MS)
  ;(await stage.verified()).stream()
  await turns()
  t.equal(stage.watch.ageMs, 0)
})

t.test('closing ends it at any point', async (t) => {
  const table: readonly { name: string; bring: (stage: Stage) => Promise<unknown> }[] = [
    { name: 'before the answer', bring: (stage) => stage.asked() },
    { name: 'in a list', bring: async (stage) => (await stage.asked()).stream() },
    { name: 'in a watch', bring: (stage) => stage.synced() },
    {
      name: 'while it waits',
      bring: async (stage) => (await stage.asked()).fail(new Error('connect ECONNREFUSED')),
    },
  ]
  for (const { name, bring } of table) {
    const stage = new Stage(t)
    await bring(stage)
    await turns()
    stage.watch.close()
    await stage.ended
    t.equal(stage.timers.count, 0, name)
  }
})
