import t from 'tap'
import { listBody, statusBody, turns } from '../support/api-double.ts'
import { object, Stage, WAIT_MS } from './list-watch-stage.ts'

t.test('events are gathered, and a cut stream is taken up where it was cut', async (t) => {
  const stage = new Stage(t)
  const stream = await stage.synced()
  t.equal(stage.watch.isFollowing, true)
  stream.event('ADDED', object('a', '11'))
  stream.event('MODIFIED', object('a', '12'))
  stream.event('DELETED', object('b', '13'))
  t.strictSame(await stage.heard(), ['+a +a -b'])
  stream.fail(new Error('read ECONNRESET'))
  await turns()
  t.equal(stage.watch.isFollowing, false)
  t.match(stage.lines, [
    /dnsrecords in all namespaces: read ECONNRESET; retrying, known objects are kept/,
  ])
  await stage.advance(WAIT_MS)
  const again = await stage.verified()
  t.equal(again.isWatch, true, 'no list is needed')
  t.equal(again.query.get('resourceVersion'), '13')
  t.equal(stage.watch.counts.lists, 1)
})

t.test('bookmarks move the place where the watch goes on', async (t) => {
  const stage = new Stage(t)
  const stream = await stage.synced()
  stream.event('BOOKMARK', object('', '99'))
  await turns()
  await stage.advance(10_000)
  stream.end()
  const again = await stage.verified()
  t.equal(again.query.get('resourceVersion'), '99')
  t.strictSame(await stage.heard(), [])
  t.strictSame(stage.lines, [], 'an end in order is not worth a line')
})

t.test('a version that is gone has everything listed anew', async (t) => {
  const table = [
    {
      name: '410 for the watch',
      gone: async (stage: Stage) => {
        const stream = await stage.synced()
        stream.end()
        await stage.advance(WAIT_MS)
        ;(await stage.verified()).reply(410, statusBody(410, 'too old resource version'))
      },
    },
    {
      name: '410 in the stream',
      gone: async (stage: Stage) => {
        const stream = await stage.synced()
        stream.event('ADDED', object('a', '11'))
        stream.event('ERROR', statusBody(410, 'too old resource version: 11 (20)'))
        t.strictSame(await stage.heard(), ['+a'], 'what came before it counts')
      },
    },
    {
      name: '410 in the middle of a list',
      gone: async (stage: Stage) => {
        ;(await stage.asked()).reply(200, listBody('7', [object('a', '1')], 'token'))
        ;(await stage.asked()).reply(
          410,
          statusBody(410, 'The provided continue parameter is too old'),
        )
        t.strictSame(await stage.heard(), ['begin', 'put a'], 'no end, so nothing is taken away')
      },
    },
  ]
  for (const { name, gone } of table) {
    await t.test(name, async (t) => {
      const stage = new Stage(t)
      await gone(stage)
      await stage.heard()
      await stage.advance(WAIT_MS)
      const list = await stage.asked()
      t.equal(list.isWatch, false)
      t.equal(list.query.has('continue'), false, 'from the beginning')
      list.reply(200, listBody('30', [object('b', '25')]))
      t.strictSame(await stage.heard(), ['begin', 'put b', 'end'])
      t.equal((await stage.asked()).query.get('resourceVersion'), '30')
      t.strictSame(stage.lines, [], 'part of the life of a watch')
    })
  }
})

t.test('an API that was restored from a backup has everything listed anew', async (t) => {
  const table: readonly {
    name: string
    logged: RegExp[]
    restored: (stage: Stage) => Promise<void>
  }[] = [
    {
      name: 'its version is lower after it was away',
      logged: [
        /read ECONNRESET/,
        /the API went back from version 20 to 15; listing all objects again/,
      ],
      restored: async (stage) => {
        const stream = await stage.synced('20')
        stream.fail(new Error('read ECONNRESET'))
        await turns()
        await stage.advance(WAIT_MS)
        ;(await stage.asked()).reply(200, listBody('15', [object('a', '1')], 'more'))
      },
    },
    {
      name: 'so it is after a stream that ended before its time',
      logged: [/the API went back from version 20 to 15/],
      restored: async (stage) => {
        const stream = await stage.synced('20')
        stream.end()
        await turns()
        await stage.advance(WAIT_MS)
        ;(await stage.asked()).reply(200, listBody('15', [], 'more'))
      },
    },
    {
      name: 'a bookmark says so',
      logged: [],
      restored: async (stage) => {
        const stream = await stage.synced('20')
        stream.event('BOOKMARK', object('', '15'))
        await turns()
        await stage.advance(WAIT_MS)
      },
    },
    {
      name: 'it complains of a version that it never had',
      logged: [],
      restored: async (stage) => {
        const stream = await stage.synced('20')
        stream.event(
          'ERROR',
          statusBody(504, 'Timeout: Too large resource version: 20, current: 15'),
        )
        await turns()
        await stage.advance(WAIT_MS)
      },
    },
    {
      name: 'the configuration leads to another one, however far that is',
      logged: [/ECONNREFUSED/, /the API moved to https:\/\/elsewhere; listing all objects again/],
      restored: async (stage) => {
        const stream = await stage.synced('20')
        stream.fail(new Error('connect ECONNREFUSED'))
        await turns()
        await stage.advance(WAIT_MS)
        stage.api.place = 'https://elsewhere'
        ;(await stage.asked()).reply(200, listBody('30', [], 'more'))
      },
    },
  ]
  for (const { name, logged, restored } of table) {
    await t.test(name, async (t) => {
      const stage = new Stage(t)
      await restored(stage)
      const list = await stage.asked()
      t.equal(list.isWatch, false)
      t.equal(list.query.get('limit'), '500')
      list.reply(200, listBody('16', [object('b', '12')]))
      t.strictSame(await stage.heard(), ['begin', 'put b', 'end'])
      t.equal((await stage.asked()).query.get('resourceVersion'), '16')
      const lines = stage.lines.filter((line) => !line.includes('established again'))
      t.equal(lines.length, logged.length)
      t.match(lines, logged)
    })
  }
})

t.test('a watch that ended in its time is taken up without a question', async (t) => {
  const stage = new Stage(t)
  const stream = await stage.synced()
  await stage.advance(139_000)
  stream.end()
  t.equal((await stage.asked()).isWatch, true)
})

t.test('half a line at the end of a stream is no event', async (t) => {
  const stage = new Stage(t)
  const stream = await stage.synced()
  const line = JSON.stringify({ type: 'ADDED', object: object('a', '11') })
  stream.push(line.slice(0, 20))
  t.strictSame(await stage.heard(), [])
  stream.push(`${line.slice(20)}\n${line.slice(0, 30)}`)
  t.strictSame(await stage.heard(), ['+a'], 'a line may come in pieces')
  stream.end()
  await stage.advance(WAIT_MS)
  t.equal((await stage.verified()).query.get('resourceVersion'), '11')
  t.strictSame(await stage.heard(), [])
})

t.test('a line that makes no sense ends the watch, not the server', async (t) => {
  const table = [
    { name: 'not JSON', given: 'nonsense\n', want: /not JSON/ },
    { name: 'no object', given: '{"type":"ADDED"}\n', want: /no object/ },
    { name: 'no version', given: '{"type":"ADDED","object":{"metadata":{}}}\n', want: /no object/ },
    {
      name: 'an unknown type',
      given: `${JSON.stringify({ type: 'X', object: object('a', '11') })}\n`,
      want: /unknown type "X"/,
    },
    {
      name: 'an error without a code',
      given: '{"type":"ERROR","object":{}}\n',
      want: /no reason given/,
    },
  ]
  for (const { name, given, want } of table) {
    await t.test(name, async (t) => {
      const stage = new Stage(t)
      const stream = await stage.synced()
      stream.push(given)
      await turns()
      t.match(stage.lines, [want])
      await stage.advance(WAIT_MS)
      t.equal((await stage.verified()).query.get('resourceVersion'), '10')
    })
  }
})

t.test('events that come twice or late are passed over', async (t) => {
  const stage = new Stage(t)
  const stream = await stage.synced('10')
  for (const version of ['11', '11', '9', '10', '12'])
    stream.event('MODIFIED', object(`v${version}`, version))
  t.strictSame(await stage.heard(), ['+v11 +v12'])
  t.equal(stage.watch.counts.staleEvents, 3)
})

t.test('a stream on which nothing comes is given up', async (t) => {
  const stage = new Stage(t)
  await stage.synced()
  await stage.advance(140_000)
  t.equal(stage.watch.isFollowing, true)
  await stage.advance(20_000)
  t.match(stage.lines, [/no data for 150 s/])
  t.ok(stage.watch.ageMs >= 150_000, 'as old as the last that came')
})

t.test('a fault in taking in events has everything listed anew', async (t) => {
  const stage = new Stage(t)
  const stream = await stage.synced()
  stage.fault = new Error('a bug')
  stream.event('ADDED', object('a', '11'))
  await stage.heard()
  t.match(stage.lines, [/a bug/])
  await stage.advance(WAIT_MS)
  t.equal((await stage.asked()).isWatch, false)
})

t.test('later events do not hide the loss of earlier ones', async (t) => {
  const stage = new Stage(t)
  const stream = await stage.synced()
  stage.fault = new Error('a bug')
  const lines = Array.from({ length: 513 }, (_, i) =>
    JSON.stringify({ type: 'ADDED', object: object(`n${i}`, `${11 + i}`) }),
  )
  stream.push(`${lines.join('\n')}\n`)
  t.strictSame(await stage.heard(), [])
  t.match(stage.lines, [/a bug/])
  await stage.advance(WAIT_MS)
  t.equal((await stage.asked()).isWatch, false, 'listing all objects again')
})

t.test('many events at once are delivered in bounded batches', async (t) => {
  const stage = new Stage(t)
  const stream = await stage.synced()
  const lines = Array.from({ length: 1300 }, (_, i) =>
    JSON.stringify({ type: 'ADDED', object: object(`n${i}`, `${11 + i}`) }),
  )
  stream.push(`${lines.join('\n')}\n`)
  const sizes = (await stage.heard()).map((batch) => batch.split(' ').length)
  t.strictSame(sizes, [512, 512, 276])
})
