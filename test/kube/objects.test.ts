import t, { type Test } from 'tap'
import type { ApiError } from '../../src/kube/api.ts'
import {
  isAlreadyThere,
  isConflict,
  isNotFound,
  type ObjectRef,
  Objects,
} from '../../src/kube/objects.ts'
import { ApiDouble, type Asked, missingBody, statusBody, turns } from '../support/api-double.ts'
import { FakeTimers } from '../support/setup.ts'

const RESOURCE = { group: 'kuadrant.io', version: 'v1alpha1', plural: 'dnsrecords' }
const REF: ObjectRef = { resource: RESOURCE, namespace: 'team', name: 'a' }
const SECRETS = { group: '', version: 'v1', plural: 'secrets' }

class Stage {
  readonly api = new ApiDouble()
  readonly timers = new FakeTimers()
  readonly objects: Objects

  constructor(t: Test) {
    const { api, timers } = this
    this.objects = new Objects({ api, timers, fieldManager: 'a manager', timeoutMs: 5000 })
    t.teardown(() => this.objects.close())
  }

  async asked(): Promise<Asked> {
    await turns()
    if (this.api.asked.length === 0) throw new Error('nothing was asked')
    return this.api.next()
  }
}

/** How a request was refused. */
function refusal(request: Promise<unknown>): Promise<ApiError> {
  return request.then(
    () => {
      throw new Error('it was not refused')
    },
    (error) => error,
  )
}

t.test('requests are what the API expects', async (t) => {
  const object = { metadata: { name: 'a' } }
  const table: readonly {
    name: string
    run: (objects: Objects) => Promise<unknown>
    want: Partial<Omit<Asked, 'query'>> & { query?: Record<string, string> }
  }[] = [
    {
      name: 'get',
      run: (objects) => objects.get(REF),
      want: { method: 'GET', path: '/apis/kuadrant.io/v1alpha1/namespaces/team/dnsrecords/a' },
    },
    {
      name: 'the core group, and a kind without namespaces',
      run: (o) =>
        o.get({ resource: { ...SECRETS, plural: 'namespaces' }, namespace: '', name: 'x' }),
      want: { method: 'GET', path: '/api/v1/namespaces/x' },
    },
    {
      name: 'create',
      run: (objects) => objects.create(RESOURCE, 'team', object),
      want: {
        method: 'POST',
        path: '/apis/kuadrant.io/v1alpha1/namespaces/team/dnsrecords',
        contentType: 'application/json',
        body: object,
        query: { fieldManager: 'a manager' },
      },
    },
    {
      name: 'replace',
      run: (objects) => objects.replace(REF, object),
      want: { method: 'PUT', contentType: 'application/json', body: object },
    },
    {
      name: 'apply',
      run: (objects) => objects.apply(REF, object),
      want: {
        method: 'PATCH',
        path: '/apis/kuadrant.io/v1alpha1/namespaces/team/dnsrecords/a',
        contentType: 'application/apply-patch+yaml',
        body: object,
        query: { fieldManager: 'a manager', force: 'true' },
      },
    },
    {
      name: 'apply of a status',
      run: (objects) => objects.applyStatus(REF, object),
      want: {
        method: 'PATCH',
        path: '/apis/kuadrant.io/v1alpha1/namespaces/team/dnsrecords/a/status',
        contentType: 'application/apply-patch+yaml',
        query: { fieldManager: 'a manager', force: 'true' },
      },
    },
    {
      name: 'merge patch',
      run: (objects) => objects.patch(REF, object),
      want: { method: 'PATCH', contentType: 'application/merge-patch+json', body: object },
    },
    {
      name: 'merge patch of a status',
      run: (objects) => objects.patchStatus(REF, object),
      want: { path: '/apis/kuadrant.io/v1alpha1/namespaces/team/dnsrecords/a/status' },
    },
    {
      name: 'JSON patch',
      run: (objects) => objects.patchSteps(REF, [{ op: 'remove', path: '/spec/x' }]),
      want: {
        contentType: 'application/json-patch+json',
        body: [{ op: 'remove', path: '/spec/x' }],
      },
    },
    {
      name: 'delete',
      run: (objects) => objects.delete(REF, { uid: 'u', resourceVersion: '7' }),
      want: {
        method: 'DELETE',
        body: {
          apiVersion: 'v1',
          kind: 'DeleteOptions',
          propagationPolicy: 'Background',
          preconditions: { uid: 'u', resourceVersion: '7' },
        },
      },
    },
    {
      name: 'names with signs of their own',
      run: (objects) => objects.get({ ...REF, namespace: 'a/b', name: 'c?d#e%f' }),
      want: { path: '/apis/kuadrant.io/v1alpha1/namespaces/a%2Fb/dnsrecords/c%3Fd%23e%25f' },
    },
  ]
  for (const { name, run, want } of table) {
    const stage = new Stage(t)
    const answer = run(stage.objects)
    const { query = {}, ...more } = want
    const asked = await stage.asked()
    t.match(asked, more, name)
    t.match(Object.fromEntries(asked.query), query, name)
    asked.reply(200, { answer: name })
    t.strictSame(await answer, name === 'delete' ? true : { answer: name }, name)
  }
})

t.test('a name that is none leads nowhere else', async (t) => {
  const stage = new Stage(t)
  for (const bad of ['', '.', '..']) {
    t.equal(await stage.objects.get({ ...REF, name: bad }), undefined)
    t.equal(await stage.objects.delete({ ...REF, name: bad }), false)
    t.match(await refusal(stage.objects.apply({ ...REF, name: bad }, {})), { status: 404 })
  }
  for (const namespace of ['.', '..']) {
    t.match(await refusal(stage.objects.patch({ ...REF, namespace }, {})), { status: 404 })
    t.match(await refusal(stage.objects.create(RESOURCE, namespace, {})), { status: 404 })
  }
  t.equal(stage.api.asked.length, 0)
})

t.test('refusals are distinguished', async (t) => {
  const table = [
    {
      name: 'a conflict',
      given: [409, 'Conflict', 0],
      want: { conflict: true, there: false, missing: false },
    },
    {
      name: 'a name that is taken',
      given: [409, 'AlreadyExists', 0],
      want: { conflict: false, there: true, missing: false },
    },
    {
      name: 'a 404 that names no object',
      given: [404, 'NotFound', 0],
      want: { conflict: false, there: false, missing: false },
    },
    {
      name: 'not valid',
      given: [422, 'Invalid', 0],
      want: { conflict: false, there: false, missing: false },
    },
    {
      name: 'too many requests',
      given: [429, 'TooManyRequests', 7],
      want: { conflict: false, there: false, missing: false },
    },
  ] as const
  for (const { name, given, want } of table) {
    const [status, reason, retryAfterSeconds] = given
    const stage = new Stage(t)
    const refused = refusal(stage.objects.apply(REF, {}))
    ;(await stage.asked()).reply(status, statusBody(status, 'no', reason), retryAfterSeconds)
    const error = await refused
    t.match(error, { name: 'ApiError', status, reason, retryAfterSeconds }, name)
    const got = {
      conflict: isConflict(error),
      there: isAlreadyThere(error),
      missing: isNotFound(error, REF),
    }
    t.strictSame(got, want, name)
    t.equal(stage.api.asked.length, 0, 'who asked decides whether to ask again')
  }
})

t.test('a missing object is no error when it is read or deleted', async (t) => {
  const stage = new Stage(t)
  const got = stage.objects.get(REF)
  ;(await stage.asked()).reply(404, missingBody('dnsrecords', 'a'))
  t.equal(await got, undefined)
  const deleted = stage.objects.delete(REF)
  ;(await stage.asked()).reply(404, missingBody('dnsrecords', 'a'))
  t.equal(await deleted, false)
})

t.test('only a 404 that names the object means that it is gone', async (t) => {
  const noResource = 'the server could not find the requested resource'
  const status = statusBody(404, noResource, 'NotFound')
  const table = [
    { name: 'that very object', status: 404, given: missingBody('dnsrecords', 'a'), want: true },
    { name: 'another object', status: 404, given: missingBody('dnsrecords', 'b'), want: false },
    { name: 'its namespace', status: 404, given: missingBody('namespaces', 'team'), want: false },
    { name: 'another kind', status: 404, given: missingBody('secrets', 'a'), want: false },
    { name: 'a kind that is not known yet', status: 404, given: status, want: false },
    { name: 'details of nothing', status: 404, given: { ...status, details: {} }, want: false },
    { name: 'details that are none', status: 404, given: { ...status, details: 'a' }, want: false },
    { name: 'no Status', status: 404, given: ['404 page not found'], want: false },
    { name: 'another status', status: 503, given: missingBody('dnsrecords', 'a'), want: false },
  ]
  for (const { name, status, given, want } of table) {
    const stage = new Stage(t)
    const refused = refusal(stage.objects.patchSteps(REF, []))
    ;(await stage.asked()).reply(status, given)
    const error = await refused
    t.equal(isNotFound(error, REF), want, name)
    if (want) continue
    for (const asking of [stage.objects.get(REF), stage.objects.delete(REF)]) {
      const fault = refusal(asking)
      ;(await stage.asked()).reply(status, given)
      t.match(await fault, { status }, name)
    }
  }
})

t.test('a refused credential is read anew, once', async (t) => {
  const stage = new Stage(t)
  const got = stage.objects.create(RESOURCE, 'team', { x: 1 })
  ;(await stage.asked()).reply(401, statusBody(401, 'Unauthorized'))
  const again = await stage.asked()
  t.equal(stage.api.refreshes, 1)
  t.strictSame(again.body, { x: 1 })
  again.reply(201, { done: true })
  t.strictSame(await got, { done: true })

  const refused = refusal(stage.objects.get(REF))
  for (let i = 0; i < 2; i++) {
    ;(await stage.asked()).reply(401, statusBody(401, 'Unauthorized'))
  }
  t.equal((await refused).status, 401)
  t.equal(stage.api.asked.length, 0)
})

t.test('a request is given up when its time is over, however busy it looks', async (t) => {
  const stage = new Stage(t)
  const unanswered = refusal(stage.objects.get(REF))
  await stage.asked()
  await stage.timers.advance(5001)
  t.match(await unanswered, { status: 0, message: /no data for 5 s/ })
  t.equal(stage.api.refreshes, 1, 'the server may have moved')

  const dripping = refusal(stage.objects.get(REF))
  const body = (await stage.asked()).stream()
  for (let i = 0; i < 6; i++) {
    body.push(' ')
    await stage.timers.advance(1000)
  }
  t.equal((await dripping).status, 0)
  t.equal(stage.timers.count, 0)
})

t.test('an answer that makes no sense', async (t) => {
  const table = [
    { name: 'not JSON', given: 'very-secret', want: /is not JSON$/ },
    { name: 'no object', given: '[1]', want: /is not an object$/ },
    {
      name: 'too long',
      given: 'x'.repeat(16 * 1024 * 1024 + 1),
      want: /is larger than 16777216 octets$/,
    },
  ]
  for (const { name, given, want } of table) {
    const stage = new Stage(t)
    const refused = refusal(stage.objects.get({ ...REF, resource: SECRETS }))
    const body = (await stage.asked()).stream()
    body.push(given)
    body.end()
    const error = await refused
    t.match(error, { status: 0, message: want }, name)
    t.notMatch(error.message, /very-secret/, name)
  }
})

t.test('no answer says nothing of what was sent', async (t) => {
  const stage = new Stage(t)
  const secret = { data: { token: 'very-secret' } }
  const refused = refusal(stage.objects.create(SECRETS, 'team', secret))
  ;(await stage.asked()).fail(new Error('read ECONNRESET'))
  t.match(await refused, { status: 0, message: 'read ECONNRESET' })
})

t.test('closing gives up what is under way, and takes nothing more', async (t) => {
  const stage = new Stage(t)
  const running = [refusal(stage.objects.get(REF)), refusal(stage.objects.delete(REF))]
  await turns()
  stage.objects.close()
  for (const refused of running) t.match(await refused, { status: 0, message: 'closed' })
  t.match(await refusal(stage.objects.get(REF)), { message: 'closed' })
  t.equal(stage.timers.count, 0)
})
