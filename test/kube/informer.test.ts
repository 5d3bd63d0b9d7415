import t, { type Test } from 'tap'
import { Random } from '../../src/base/random.ts'
import { createLogger } from '../../src/base/telemetry/log.ts'
import type { ApiObject } from '../../src/kube/api.ts'
import { Informer, type InformerListener } from '../../src/kube/informer.ts'
import { keyOf, splitKey } from '../../src/kube/object-key.ts'
import { ApiDouble, type Asked, listBody, statusBody, turns } from '../support/api-double.ts'
import { FakeClock, FakeTimers } from '../support/setup.ts'

/** Longer than any wait between attempts. */
const WAIT_MS = 15_001

function object(key: string, resourceVersion: string, more: object = {}): ApiObject {
  return { metadata: { ...splitKey(key), uid: `uid of ${key}`, resourceVersion, ...more } }
}

function versionOf({ metadata }: ApiObject): string {
  return (metadata as { resourceVersion: string }).resourceVersion
}

class Stage {
  readonly api = new ApiDouble()
  readonly timers = new FakeTimers()
  readonly lines: string[] = []
  readonly calls: string[] = []
  readonly informer: Informer

  constructor(t: Test, namespaces: readonly string[] = [], trim?: (o: ApiObject) => ApiObject) {
    this.informer = new Informer({
      api: this.api,
      resource: { group: '', version: 'v1', plural: 'secrets' },
      namespaces,
      labelSelector: 'a=b',
      log: createLogger(
        '',
        (line) => this.lines.push(line),
        () => false,
      ),
      clock: new FakeClock(),
      timers: this.timers,
      random: new Random(1),
      ...(trim === undefined ? {} : { trim }),
    })
    this.informer.subscribe(this.listener())
    this.informer.start()
    t.teardown(() => this.informer.close())
  }

  listener(): InformerListener {
    return {
      onAdd: (key, object) => this.calls.push(`+${key}@${versionOf(object)}`),
      onUpdate: (key, object, before) =>
        this.calls.push(`${key}@${versionOf(before)}>${versionOf(object)}`),
      onDelete: (key, before) => this.calls.push(`-${key}@${versionOf(before)}`),
    }
  }

  async heard(): Promise<string[]> {
    await turns()
    await this.timers.advance(10)
    await turns()
    return this.calls.splice(0)
  }

  async asked(): Promise<Asked> {
    await turns()
    if (this.api.asked.length === 0) throw new Error('nothing was asked')
    return this.api.next()
  }

  async isSynced(): Promise<boolean> {
    const synced = this.informer.synced().then(() => true)
    return Promise.race([synced, turns().then(() => false)])
  }
}

t.test('a key is a namespace and a name, or a name alone', async (t) => {
  for (const [key, namespace, name] of [
    ['a/b', 'a', 'b'],
    ['b', '', 'b'],
  ] as const) {
    t.strictSame(splitKey(key), { namespace, name })
    t.equal(keyOf({ metadata: namespace === '' ? { name } : { namespace, name } }), key)
  }
})

t.test(
  'listeners get existing, new, changed and deleted objects, once the cache has them',
  async (t) => {
    const stage = new Stage(t)
    const list = await stage.asked()
    t.equal(list.path, '/api/v1/secrets')
    t.equal(list.query.get('labelSelector'), 'a=b')
    list.reply(200, listBody('7', [object('x/a', '1')], 'more'))
    t.strictSame(await stage.heard(), ['+x/a@1'])
    t.equal(await stage.isSynced(), false, 'a page is not all')
    ;(await stage.asked()).reply(200, listBody('7', [object('x/b', '2')]))
    t.strictSame(await stage.heard(), ['+x/b@2'])
    t.equal(await stage.isSynced(), true)
    const watch = (await stage.asked()).stream()
    watch.event('ADDED', object('y/a', '8'))
    watch.event('MODIFIED', object('x/a', '9'))
    watch.event('DELETED', object('x/b', '10'))
    t.strictSame(await stage.heard(), ['+y/a@8', 'x/a@1>9', '-x/b@2'])
    t.strictSame([...stage.informer.objects()].map(keyOf), ['x/a', 'y/a'])
    t.equal(stage.informer.get('x/b'), undefined)
    t.equal(versionOf(stage.informer.get('x/a') as ApiObject), '9')
  },
)

t.test('a late listener gets the existing objects, a removed one nothing', async (t) => {
  const stage = new Stage(t)
  ;(await stage.asked()).reply(200, listBody('7', [object('x/a', '1')]))
  await stage.heard()
  const late: string[] = []
  const leave = stage.informer.subscribe({ onAdd: (key) => late.push(key) })
  t.strictSame(late, ['x/a'])
  const watch = (await stage.asked()).stream()
  watch.event('ADDED', object('x/b', '8'))
  await stage.heard()
  leave()
  watch.event('ADDED', object('x/c', '9'))
  await stage.heard()
  t.strictSame(late, ['x/a', 'x/b'])
})

t.test('changes without a watch are found by the next list', async (t) => {
  const stage = new Stage(t)
  const before = ['same', 'changed', 'gone', 'another'].map((name, i) =>
    object(`x/${name}`, `${i}`),
  )
  ;(await stage.asked()).reply(200, listBody('7', before))
  ;(await stage.asked()).reply(410, statusBody(410, 'too old resource version'))
  await stage.heard()
  await stage.timers.advance(WAIT_MS)
  const after = [
    object('x/same', '0'),
    object('x/changed', '20'),
    object('x/another', '21', { uid: 'not the one before' }),
    object('x/new', '22'),
  ]
  ;(await stage.asked()).reply(200, listBody('30', after))
  t.strictSame(await stage.heard(), [
    'x/changed@1>20',
    '-x/another@3',
    '+x/another@21',
    '+x/new@22',
    '-x/gone@2',
  ])
})

t.test('listeners are notified once the watch is established again', async (t) => {
  const stage = new Stage(t)
  let returns = 0
  stage.informer.subscribe({ onReturn: () => returns++ })
  ;(await stage.asked()).reply(200, listBody('7', []))
  const watch = (await stage.asked()).stream()
  await stage.heard()
  t.equal(returns, 0, 'it was never away')
  watch.fail(new Error('socket hang up'))
  await stage.heard()
  await stage.timers.advance(WAIT_MS)
  ;(await stage.asked()).reply(503, statusBody(503, 'not yet'))
  await stage.heard()
  await stage.timers.advance(WAIT_MS)
  ;(await stage.asked()).reply(200, listBody('9', [], 'more'))
  await stage.heard()
  t.equal(returns, 0, 'it is not followed yet')
  ;(await stage.asked()).stream()
  await stage.heard()
  t.equal(returns, 1)
})

t.test('a list of one namespace says nothing of the others', async (t) => {
  const stage = new Stage(t, ['x', 'xy', 'x'])
  const lists = [await stage.asked(), await stage.asked()]
  t.strictSame(
    lists.map(({ path }) => path),
    ['/api/v1/namespaces/x/secrets', '/api/v1/namespaces/xy/secrets'],
  )
  lists[0]?.reply(200, listBody('7', [object('x/a', '1')]))
  t.equal(await stage.isSynced(), false)
  lists[1]?.reply(200, listBody('7', [object('xy/a', '2')]))
  t.equal(await stage.isSynced(), true)
  await stage.heard()
  const watches = [await stage.asked(), await stage.asked()]
  watches[0]?.reply(410, statusBody(410, 'gone'))
  await turns()
  await stage.timers.advance(WAIT_MS)
  ;(await stage.asked()).reply(200, listBody('9', []))
  t.strictSame(await stage.heard(), ['-x/a@1'])
})

t.test('managed fields are not kept, or what the owner says', async (t) => {
  const given = object('x/a', '1', { managedFields: [{ manager: 'm' }] })
  const stage = new Stage(t)
  ;(await stage.asked()).reply(200, listBody('7', [given]))
  await stage.heard()
  const want = { ...splitKey('x/a'), uid: 'uid of x/a', resourceVersion: '1' }
  t.strictSame(stage.informer.get('x/a')?.metadata, want)
  const whole = new Stage(t, [], (object) => object)
  ;(await whole.asked()).reply(200, listBody('7', [given]))
  await whole.heard()
  t.strictSame(whole.informer.get('x/a'), given)
})

t.test("a listener's fault is its own", async (t) => {
  const stage = new Stage(t)
  stage.informer.subscribe({
    onAdd: () => {
      throw new Error('a bug')
    },
  })
  const others: string[] = []
  stage.informer.subscribe({ onAdd: (key) => others.push(key) })
  ;(await stage.asked()).reply(200, listBody('7', [object('x/a', '1'), object('x/b', '2')]))
  t.strictSame(await stage.heard(), ['+x/a@1', '+x/b@2'])
  t.strictSame(others, ['x/a', 'x/b'])
  t.match(stage.lines[0], /Applying changed secrets failed.*a bug/)
  t.equal((await stage.asked()).isWatch, true, 'nothing is listed anew for it')
})
