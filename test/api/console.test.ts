import { join } from 'node:path'
import t, { type Test } from 'tap'
import { openAdmin } from '../../src/api/admin/open-admin.ts'
import { open as openConsole } from '../../src/api/console/console.ts'
import { loadAssets } from '../../src/api/console/load-assets.ts'
import type { AdminSite } from '../../src/plugin/admin.ts'
import { adminSite, STATUS } from '../support/admin-site.ts'
import { fetchLocal } from '../support/http-client.ts'
import { root } from '../support/server.ts'

const ASSETS = join(root, 'dist/api/console/assets')
/** Of the files together, with gzip. */
const OCTETS_MAX = 300_000
const refusing = { roleOf: () => undefined, fault: '' }

async function open(t: Test, changed: Partial<AdminSite> = {}) {
  const stage = adminSite({ console: true, ...changed })
  const listener = await openAdmin(stage.site, undefined)
  t.teardown(() => listener.close())
  return { ...stage, listener, port: listener.port }
}

t.test('the files of the console', async (t) => {
  const { port } = await open(t, { tokens: refusing })
  for (const [path, type] of [
    ['', 'text/html; charset=utf-8'],
    ['?view=map&name=a', 'text/html; charset=utf-8'],
    ['console.js', 'text/javascript; charset=utf-8'],
    ['console.css', 'text/css; charset=utf-8'],
    ['icon.svg', 'image/svg+xml'],
  ] as const) {
    const answer = await fetchLocal(port, { path: `/console/${path}` })
    t.equal(answer.status, 200, `${path} needs no token`)
    t.match(answer.headers, {
      'content-type': type,
      'cache-control': 'no-cache',
      'content-security-policy':
        /^default-src 'none'; script-src 'self'; .* frame-ancestors 'none'$/,
      'cross-origin-opener-policy': 'same-origin',
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
    })
    t.notMatch(answer.body, /https?:\/\/(?!www\.w3\.org\/)/, 'no address of another host')
    const head = await fetchLocal(port, { path: `/console/${path}`, method: 'HEAD' })
    t.equal(head.status, 200)
    t.equal(head.headers['content-length'], answer.headers['content-length'])
    t.equal(head.body, '')
    const tag = String(answer.headers.etag)
    const same = await fetchLocal(port, {
      path: `/console/${path}`,
      headers: { 'if-none-match': tag },
    })
    t.equal(same.status, 304)
  }
})

t.test('gzip if the client accepts it', async (t) => {
  const { port } = await open(t)
  for (const [accepted, isGzip] of [
    ['gzip', true],
    ['br, GZIP;q=0.5', true],
    ['*', true],
    ['gzip;q=0', false],
    ['gzip;q=0.0', false],
    ['br', false],
    ['', false],
  ] as const) {
    const headers = { 'accept-encoding': accepted }
    const answer = await fetchLocal(port, { path: '/console/console.css', headers })
    t.equal(answer.headers['content-encoding'] === 'gzip', isGzip, accepted)
    t.equal(answer.headers.vary, 'accept-encoding')
  }
})

t.test('all that the console loads is small', async (t) => {
  let octets = 0
  for (const { gzip } of loadAssets(ASSETS).values()) octets += gzip.length
  t.comment(`${octets} octets with gzip`)
  t.ok(octets <= OCTETS_MAX, `${octets} octets with gzip`)
})

t.test('the page without JavaScript', async (t) => {
  const { port } = await open(t)
  const { status, body, headers } = await fetchLocal(port, { path: '/console/plain' })
  t.equal(status, 200)
  t.equal(headers['cache-control'], 'no-store')
  t.match(
    body,
    '<th scope="row">www.example.org. A</th><td>na1</td><td>192.0.2.1</td><td>down</td>',
  )
  t.match(body, 'unknown geo code &quot;XX&quot;')
  const refused = await open(t, { tokens: refusing })
  const answer = await fetchLocal(refused.port, { path: '/console/plain' })
  t.equal(answer.status, 401)
  t.notMatch(answer.body, 'example.org')
  const zones = Array.from({ length: 1500 }, () => STATUS.zones[0]!)
  const many = await open(t, { status: () => ({ ...STATUS, zones }) })
  t.match((await fetchLocal(many.port, { path: '/console/plain' })).body, '500 more are not shown.')
})

t.test('a fault of the status ends the request, not the server', async (t) => {
  const status = (): never => {
    throw new Error('a bug')
  }
  const { port } = await open(t, { status })
  t.equal((await fetchLocal(port, { path: '/console/plain' })).status, 500)
  t.equal((await fetchLocal(port, { path: '/console/' })).status, 200)
})

t.test('what the console does not answer', async (t) => {
  const { port, listener, site } = await open(t)
  for (const [method, path, status, headers = {}] of [
    ['GET', '/console', 308],
    ['POST', '/console/', 405],
    ['GET', '/console/none', 404],
    ['GET', '/console/../console/', 404],
    ['GET', '/console/%2e%2e/package.json', 404],
    ['GET', '/console/console.js.map', 404],
    ['GET', '/consoles', 404],
    ['GET', '/console/', 403, { host: 'evil.example' }],
  ] as const) {
    const answer = await fetchLocal(port, { method, path, headers })
    t.equal(answer.status, status, `${method} ${path}`)
  }
  listener.use({ ...site, console: false })
  t.equal((await fetchLocal(port, { path: '/console/' })).status, 404, 'off after a reload')
})

t.test('a console that is not built', async (t) => {
  const folder = t.testdir({ empty: {} })
  for (const path of [`${folder}/empty`, `${folder}/none`]) {
    t.throws(() => openConsole(path), {
      message: /^the web console is not built: .* run `npm run build`$/,
    })
  }
})
