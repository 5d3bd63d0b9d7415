import t from 'tap'
import type { ApiObject } from '../../src/kube/api.ts'
import { listBody, type Stream, statusBody, turns } from '../support/api-double.ts'
import { object, Stage, WAIT_MS } from './list-watch-stage.ts'

function listEnd(resourceVersion: string): ApiObject {
  const annotations = { 'k8s.io/initial-events-end': 'true' }
  return { metadata: { resourceVersion, annotations } }
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

t.test('if the server can, a list is a stream that ends with a bookmark', async (t) => {
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
    t.notOk(stage.calls.includes('end'), 'nothing is taken away')
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

t.test('a refusal that pages would get too is logged once', async (t) => {
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

t.test('the versions of a kind', async (t) => {
  const pathOf = (version: string) => `/apis/kuadrant.io/${version}/dnsrecords`
  const lack = async (stage: Stage, version: string) => {
    const asked = await stage.asked()
    t.equal(asked.path, pathOf(version))
    asked.reply(404, statusBody(404, 'the server could not find the requested resource'))
  }

  await t.test('one that the server lacks gives way to the next', async (t) => {
    const stage = new Stage(t, '', false, ['v1beta1', 'v1'])
    await lack(stage, 'v1alpha1')
    const list = await stage.asked()
    t.equal(list.path, pathOf('v1beta1'))
    list.reply(200, listBody('7', [object('a', '1')]))
    const watch = await stage.asked()
    t.equal(watch.path, pathOf('v1beta1'))
    t.equal(stage.watch.resource.version, 'v1beta1')
    const stream = watch.stream()
    t.strictSame(await stage.heard(), ['begin', 'begin', 'put a', 'end'])
    t.equal(stage.watch.failureStatus, 0)
    t.strictSame(stage.lines, [
      '[INFO] dnsrecords in all namespaces: version v1beta1 of kuadrant.io is followed',
    ])

    // It is served no longer.
    stream.end()
    await turns()
    await stage.advance(WAIT_MS)
    await lack(stage, 'v1beta1')
    await turns()
    await stage.advance(WAIT_MS)
    await lack(stage, 'v1alpha1')
    await lack(stage, 'v1beta1')
    const next = await stage.asked()
    t.equal(next.path, pathOf('v1'))
    next.reply(200, listBody('8', [object('a', '1')]))
    t.equal((await stage.asked()).path, pathOf('v1'))
    t.match(stage.lines.at(-1), /version v1 of kuadrant\.io is followed/)
    t.equal(stage.watch.resource.version, 'v1')
  })

  await t.test('none is served', async (t) => {
    const stage = new Stage(t, '', false, ['v1beta1'])
    for (let attempt = 0; attempt < 2; attempt++) {
      await lack(stage, 'v1alpha1')
      await lack(stage, 'v1beta1')
      await turns()
      t.equal(stage.watch.failureStatus, 404)
      t.match(stage.lines, [/is the CustomResourceDefinition dnsrecords\.kuadrant\.io installed/])
      await stage.advance(WAIT_MS)
    }
    ;(await stage.asked()).reply(200, listBody('7', []))
    t.equal((await stage.asked()).path, pathOf('v1alpha1'))
    t.equal(stage.lines.length, 2)
  })

  await t.test('another failure does not change the version', async (t) => {
    const stage = new Stage(t, '', false, ['v1beta1'])
    ;(await stage.asked()).reply(403, statusBody(403, 'no way'))
    await turns()
    await stage.advance(WAIT_MS)
    t.equal((await stage.asked()).path, pathOf('v1alpha1'))
  })
})
