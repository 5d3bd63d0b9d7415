import t, { type Test } from 'tap'
import { Random } from '../../src/base/random.ts'
import type { ApiObject } from '../../src/kube/api.ts'
import { ListWatch } from '../../src/kube/list-watch.ts'
import type { WatchEvent } from '../../src/kube/watch-event.ts'
import { createLogger } from '../../src/telemetry/log.ts'
import {
  ApiDouble,
  type Asked,
  listBody,
  type Stream,
  statusBody,
  turns,
} from '../support/api-double.ts'
import { FakeClock, FakeTimers } from '../support/setup.ts'

const RESOURCE = { group: 'kuadrant.io', version: 'v1alpha1', plural: 'dnsrecords' }
/** Longer than any wait between attempts. */
const WAIT_MS = 15_001

function object(name: string, resourceVersion: string): ApiObject {
  return { metadata: { name, resourceVersion } }
}

function listEnd(resourceVersion: string): ApiObject {
  const annotations = { 'k8s.io/initial-events-end': 'true' }
  return { metadata: { resourceVersion, annotations } }
}

function nameOf({ metadata }: ApiObject): string {
  return (metadata as { name: string }).name
}

class Stage {
  readonly api = new ApiDouble()
  readonly clock = new FakeClock()
  readonly timers = new FakeTimers()
  readonly lines: string[] = []
  /** What the sink was told, in order. */
  readonly told: string[] = []
  readonly watch: ListWatch
  /** Thrown by the next `apply`. */
  fault: Error | undefined
  readonly ended: Promise<void>

  constructor(t: Test, namespace = '', streamsLists = false) {
    this.api.streamsLists = streamsLists
    this.watch = new ListWatch({
      api: this.api,
      resource: RESOURCE,
      namespace,
      labelSelector: 'a-label',
      sink: {
        beginList: () => this.told.push('begin'),
        put: (objects) => this.told.push(`put ${objects.map(nameOf).join()}`),
        endList: () => this.told.push('end'),
        apply: (events) => this.#apply(events),
      },
      log: createLogger(
        '',
        (line) => this.lines.push(line),
        () => false,
      ),
      clock: this.clock,
      timers: this.timers,
      random: new Random(1),
      onProgress: () => {},
    })
    this.ended = this.watch.run()
    t.teardown(() => this.watch.close())
  }

  #apply(events: readonly WatchEvent[]): void {
    const { fault } = this
    this.fault = undefined
    if (fault !== undefined) throw fault
    this.told.push(events.map((e) => `${e.isDeleted ? '-' : '+'}${nameOf(e.object)}`).join(' '))
  }

  /** What was told since the last time. */
  async heard(): Promise<string[]> {
    await turns()
    await this.advance(10)
    return this.told.splice(0)
  }

  async advance(milliseconds: number): Promise<void> {
    this.clock.monotonicMs += milliseconds
    await this.timers.advance(milliseconds)
    await turns()
  }

  /** The next request, which there must be without any waiting. */
  async asked(): Promise<Asked> {
    await turns()
    if (this.api.asked.length === 0) throw new Error('nothing was asked')
    return this.api.next()
  }

  /** Tells how far the API is, which is asked after it was away, and gives the next request. */
  async verified(version = '1000'): Promise<Asked> {
    const asked = await this.asked()
    if (asked.isWatch || asked.query.get('limit') !== '1') throw new Error('it was not asked')
    asked.reply(200, listBody(version, [], 'more'))
    return this.asked()
  }

  /** Answers the first list with nothing and lets the watch begin. */
  async synced(version = '10'): Promise<Stream> {
    ;(await this.asked()).reply(200, listBody(version, []))
    const stream = (await this.asked()).stream()
    await this.heard()
    return stream
  }
}

t.test('a list comes in pages, and the watch begins where it was', async (t) => {
  const stage = new Stage(t, 'team')
  const first = await stage.asked()
  t.equal(first.path, '/apis/kuadrant.io/v1alpha1/namespaces/team/dnsrecords')
  t.match(Object.fromEntries(first.query), { labelSelector: 'a-label', limit: '500' })
  t.equal(first.query.has('continue'), false)
  first.reply(200, listBody('7', [object('a', '1'), object('b', '2')], 'to ken'))
  const second = await stage.asked()
  t.equal(second.query.get('continue'), 'to ken')
  t.equal(stage.watch.isSynced, false)
  second.reply(200, listBody('7', [object('c', '3')]))
  const watch = await stage.asked()
  t.match(Object.fromEntries(watch.query), { resourceVersion: '7', allowWatchBookmarks: 'true' })
  const seconds = Number(watch.query.get('timeoutSeconds'))
  t.ok(seconds >= 70 && seconds < 140, 'over before silence counts as a fault')
  t.strictSame(await stage.heard(), ['begin', 'put a,b', 'put c', 'end'])
  t.equal(stage.watch.isSynced, true)
})

t.test('where the server can, a list comes as a stream that ends with a mark', async (t) => {
  const stage = new Stage(t, '', true)
  const list = await stage.asked()
  t.match(Object.fromEntries(list.query), {
    watch: '1',
    sendInitialEvents: 'true',
    resourceVersionMatch: 'NotOlderThan',
    resourceVersion: '',
    allowWatchBookmarks: 'true',
    labelSelector: 'a-label',
  })
  const stream = list.stream()
  stream.event('ADDED', object('a', '5'))
  stream.event('ADDED', object('b', '3'))
  t.strictSame(
    await stage.heard(),
    ['begin', 'put a', 'put b'],
    'in the order of keys, not of versions',
  )
  stream.event('BOOKMARK', object('', '6'))
  t.strictSame(await stage.heard(), [], 'an ordinary bookmark is no end')
  t.equal(stage.watch.isSynced, false)
  const rest = [
    { type: 'MODIFIED', object: object('a', '8') },
    { type: 'DELETED', object: object('b', '9') },
    { type: 'ADDED', object: object('c', '4') },
    { type: 'BOOKMARK', object: listEnd('9') },
    { type: 'ADDED', object: object('beyond', '10') },
  ]
  stream.push(rest.map((line) => `${JSON.stringify(line)}\n`).join(''))
  t.strictSame(await stage.heard(), ['put a', '-b', 'put c', 'end'])
  const watch = await stage.asked()
  t.equal(watch.query.get('resourceVersion'), '9')
  t.equal(watch.query.has('sendInitialEvents'), false)
  t.equal(stage.watch.isSynced, true)
  t.strictSame(stage.lines, [])
})

t.test('a streamed list that was cut is tried in pages, the next one streamed again', async (t) => {
  const cuts: readonly { name: string; cut: (stream: Stream) => void; want: RegExp }[] = [
    { name: 'an end', cut: (s) => s.end(), want: /the list is incomplete/ },
    { name: 'a break', cut: (s) => s.fail(new Error('read ECONNRESET')), want: /ECONNRESET/ },
    {
      name: 'an error of the server',
      cut: (s) => s.event('ERROR', statusBody(500, 'etcd is gone')),
      want: /500 etcd is gone/,
    },
    { name: 'nonsense', cut: (s) => s.push('nonsense\n'), want: /not JSON/ },
  ]
  for (const { name, cut, want } of cuts) {
    const stage = new Stage(t, '', true)
    const stream = (await stage.asked()).stream()
    stream.event('ADDED', object('a', '5'))
    cut(stream)
    await turns()
    t.match(stage.lines, [want], name)
    t.notOk(stage.told.includes('end'), 'nothing is taken away')
    await stage.advance(WAIT_MS)
    const page = await stage.asked()
    t.equal(page.query.get('limit'), '500', name)
    page.reply(200, listBody('7', [object('a', '5')]))
    ;(await stage.asked()).reply(410, statusBody(410, 'too old'))
    await turns()
    await stage.advance(WAIT_MS)
    t.equal((await stage.asked()).query.get('sendInitialEvents'), 'true', name)
  }
})

t.test('silence ends a streamed list, and so does closing', async (t) => {
  const silent = new Stage(t, '', true)
  ;(await silent.asked()).stream()
  await silent.advance(30_001)
  t.match(silent.lines, [/no data for 30 s/])
  const closed = new Stage(t, '', true)
  ;(await closed.asked()).stream()
  await turns()
  closed.watch.close()
  await closed.ended
  t.equal(closed.timers.count, 0)
})

t.test('a refusal that pages would meet too is told once', async (t) => {
  const stage = new Stage(t, '', true)
  for (let attempt = 0; attempt < 3; attempt++) {
    const asked = await stage.asked()
    t.equal(asked.query.has('sendInitialEvents'), true)
    asked.reply(403, statusBody(403, 'no way'))
    await turns()
    await stage.advance(WAIT_MS)
  }
  t.equal(stage.lines.length, 1)
})

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
    told: RegExp[]
    restored: (stage: Stage) => Promise<void>
  }[] = [
    {
      name: 'its version is lower after it was away',
      told: [
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
      told: [/the API went back from version 20 to 15/],
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
      told: [],
      restored: async (stage) => {
        const stream = await stage.synced('20')
        stream.event('BOOKMARK', object('', '15'))
        await turns()
        await stage.advance(WAIT_MS)
      },
    },
    {
      name: 'it complains of a version that it never had',
      told: [],
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
      told: [/ECONNREFUSED/, /the API moved to https:\/\/elsewhere; listing all objects again/],
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
  for (const { name, told, restored } of table) {
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
      t.equal(lines.length, told.length)
      t.match(lines, told)
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

t.test('so is a list, and one that comes slowly is not', async (t) => {
  const stage = new Stage(t)
  const body = (await stage.asked()).stream()
  const text = JSON.stringify(listBody('7', [object('a', '1')]))
  for (let at = 0; at < text.length; at += 10) {
    body.push(text.slice(at, at + 10))
    await turns(2)
    await stage.advance(25_000)
  }
  t.strictSame(stage.lines, [])
  await stage.advance(30_001)
  t.match(stage.lines, [/no data for 30 s/])
  await stage.advance(WAIT_MS)
  t.equal((await stage.asked()).isWatch, false)
})

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

t.test('nothing that a server says while it starts takes anything away', async (t) => {
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

t.test('an answer without items is no list, one without any is', async (t) => {
  for (const { name, given, want } of [
    { name: 'no items', given: {}, want: ['begin'] },
    { name: 'items that are no list', given: { items: {} }, want: ['begin'] },
    { name: 'null', given: { items: null }, want: ['begin', 'put ', 'end'] },
    { name: 'none', given: { items: [] }, want: ['begin', 'put ', 'end'] },
  ]) {
    const stage = new Stage(t)
    ;(await stage.asked()).reply(200, { metadata: { resourceVersion: '20' }, ...given })
    t.strictSame(await stage.heard(), want, name)
  }
})

t.test('a reason is cut, whoever wrote it', async (t) => {
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

t.test('what comes along with events that were lost does not hide the loss', async (t) => {
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

t.test('many events at once are passed on in bounded batches', async (t) => {
  const stage = new Stage(t)
  const stream = await stage.synced()
  const lines = Array.from({ length: 1300 }, (_, i) =>
    JSON.stringify({ type: 'ADDED', object: object(`n${i}`, `${11 + i}`) }),
  )
  stream.push(`${lines.join('\n')}\n`)
  const sizes = (await stage.heard()).map((batch) => batch.split(' ').length)
  t.strictSame(sizes, [512, 512, 276])
})

t.test('a page that is too large is asked for in smaller ones', async (t) => {
  const stage = new Stage(t)
  const body = (await stage.asked()).stream()
  const chunk = 'x'.repeat(1024 * 1024)
  for (let i = 0; i < 65; i++) body.push(chunk)
  await turns(200)
  t.match(stage.lines, [/a page of the list is larger than/])
  await stage.advance(WAIT_MS)
  t.equal((await stage.asked()).query.get('limit'), '250')
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
