import { writeFileSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { AnswerMap } from '../../src/plugin/admin-map.ts'
import type { WhatIfReply } from '../../src/plugin/admin-what-if.ts'
import { fetchLocal } from '../support/http-client.ts'
import { freePort, runSextant, startServer } from '../support/server.ts'

// Long: it starts servers.

type Weights = Readonly<Record<string, number>>

function endpoint(host: string, setIdentifier: string, target: string, weight: number, code = '') {
  const properties = [
    { name: 'weight', value: String(weight) },
    ...(code === '' ? [] : [{ name: 'geo-code', value: code }]),
  ]
  const base = { dnsName: host, recordType: 'A', recordTTL: 60, setIdentifier }
  return { ...base, targets: [target], providerSpecific: properties }
}

function record(name: string, weights: Weights, namespace = 'gateways', annotations = {}) {
  const host = `${name}.k.example.com`
  const endpoints = Object.entries(weights).map(([id, weight], i) => {
    return endpoint(host, id, `192.0.2.${i + 1}`, weight, id.startsWith('eu') ? 'GEO-EU' : '*')
  })
  return JSON.stringify({
    ...{
      apiVersion: 'kuadrant.io/v1alpha1',
      kind: 'DNSRecord',
      metadata: { name, namespace, annotations },
    },
    spec: { rootHost: host, endpoints },
  })
}

const WEIGHTS = { 'eu-1': 100, 'eu-2': 100, us: 100 }
const FILES = {
  'records/app.json': record('app', WEIGHTS),
  'records/shop.json': record('shop', WEIGHTS),
  'records/alias.yaml': `apiVersion: kuadrant.io/v1alpha1
kind: DNSRecord
metadata: { name: alias, namespace: gateways }
spec:
  rootHost: www.k.example.com
  endpoints:
    - { dnsName: www.k.example.com, recordType: CNAME, recordTTL: 60, targets: [app.k.example.com] }
`,
}

async function start(t: Test, more: Readonly<Record<string, string>> = {}) {
  const port = await freePort()
  const corefile = `k.example.com:{PORT} {
    bind 127.0.0.1
    admin 127.0.0.1:${port}
    geoip
    kuadrant {
        manifests records
        drain drains
    }
}
`
  const server = await startServer(t, { corefile, files: { ...FILES, ...more } })
  const headers = { 'content-type': 'application/json' }
  const post = async (path: string, body: unknown) => {
    const text = typeof body === 'string' ? body : JSON.stringify(body)
    return fetchLocal(port, { method: 'POST', path, headers }, text)
  }
  const ask = async (order: unknown): Promise<WhatIfReply> => {
    const { status, body } = await post('/v1/what-if', order)
    t.equal(status, 200, body.slice(0, 200))
    return JSON.parse(body)
  }
  return { server, post, ask }
}

t.test('what a drain and its end would change', async (t) => {
  const { server, post, ask } = await start(t)
  const app = await ask({ drain: 'id:eu-1 host:app.k.example.com' })
  t.match(app, { records: 1, recordsOmitted: 0, changesOmitted: 0, notes: [] })
  t.match(
    app.changes.map(({ name, type, kind, via }) => ({ name, type, kind, via })),
    [
      { name: 'app.k.example.com.', type: 'A', kind: 'changed' },
      { name: 'www.k.example.com.', type: 'CNAME', kind: 'leads', via: ['app.k.example.com.'] },
    ],
  )
  t.strictSame(app.changes[0]?.tiers, [
    {
      clients: 'GEO-EU',
      before: '192.0.2.1 50 %, 192.0.2.2 50 %',
      after: '192.0.2.2 100 %',
    },
  ])
  t.match(app.changes[0]?.continents[0], { code: 'GEO-EU', ipv4: 1 })
  t.equal((await ask({ drain: 'id:eu-1' })).records, 2)
  t.strictSame((await ask({ drain: 'id:none' })).changes, [])
  t.strictSame((await ask({ undrain: 'id:eu-1' })).changes, [], 'nothing is drained yet')
  const { stdout } = await runSextant(server.directory, ['drains', '-conf', 'Corefile'])
  t.match(stdout, 'nothing is drained', 'a preview changes nothing')

  const { id } = JSON.parse((await post('/v1/drains', { selector: 'id:eu-1' })).body)
  for (const undrain of [id, 'id:eu-1']) {
    // The drain takes effect within a second.
    let ended = await ask({ undrain })
    while (ended.records === 0) ended = await ask({ undrain })
    t.match(ended.changes[0]?.tiers, [
      { before: '192.0.2.2 100 %', after: '192.0.2.1 50 %, 192.0.2.2 50 %' },
    ])
  }
  const all = await ask({ drain: 'host:app.k.example.com' })
  t.ok(all.records === 1 && all.changes.length >= 1, 'a name without any endpoint in service')
})

t.test('what a step of a shift would change', async (t) => {
  const annotations = { 'sextant.io/shift': 'to=eu-2 steps=5% bake=1h' }
  const { ask, post } = await start(t, {
    'records/moved.json': record('moved', WEIGHTS, 'gateways', annotations),
  })
  const shift = { name: 'App.k.example.com', to: 'eu-2', percent: 25 }
  const { changes, records, notes } = await ask({ shift })
  t.equal(records, 1)
  t.strictSame(notes, [])
  t.match(changes[0]?.tiers, [{ clients: 'GEO-EU', after: '192.0.2.1 75 %, 192.0.2.2 25 %' }])
  const reply = await post('/v1/map', { name: 'app.k.example.com', shift })
  const { answers, groups } = JSON.parse(reply.body) as AnswerMap
  const target = answers.findIndex(({ setIdentifier }) => setIdentifier === 'eu-2')
  const shares = groups.flatMap((group) => group.shares.filter(({ answer }) => answer === target))
  t.ok(shares.length > 0 && shares.every(({ ipv4 }) => ipv4 === 0.25), 'the map has its share')
  t.strictSame((await ask({ shift: { name: 'app.k.example.com', to: 'eu-2' } })).records, 0)
  t.strictSame((await ask({ shift: { ...shift, name: 'none.example' } })).changes, [])

  // What refuses the shift is a note of its preview.
  for (const [refused, note] of [
    [{ to: 'eu-3' }, 'no endpoint of the host has the set identifier "eu-3"'],
    [{ name: 'moved.k.example.com' }, /^gateways\/moved has the annotation sextant\.io\/shift/],
    [{ name: 'none.example' }, 'no DNSRecord has the root host "none.example"'],
  ] as const) {
    const order = { ...shift, ...refused }
    t.match((await ask({ shift: order })).notes, [note], JSON.stringify(refused))
    t.strictSame((await ask({ shift: { ...order, percent: undefined } })).notes, [], 'no shift')
  }
  const map = await post('/v1/map', { name: shift.name, shift: { ...shift, to: 'eu-3' } })
  t.match((JSON.parse(map.body) as AnswerMap).notes, [/"eu-3"/])
})

t.test('manifests change what `sextant what-if` says', async (t) => {
  const { server, ask } = await start(t)
  const changed = [
    record('app', { 'eu-1': 10, 'eu-2': 30, us: 100 }),
    record('new', { us: 1 }),
    record('shop', WEIGHTS),
  ]
  const after = join(server.directory, 'after')
  await mkdir(after)
  await writeFile(join(after, 'alias.yaml'), FILES['records/alias.yaml'])
  for (const [i, text] of changed.entries()) writeFileSync(join(after, `${i}.json`), text)
  const { stdout, stderr } = await runSextant(server.directory, [
    ...['what-if', '-conf', 'Corefile', '--manifests', 'after', '-o', 'json'],
  ])
  const offline = JSON.parse(stdout || stderr)
  const online = await ask({ manifests: `---\n${changed.join('\n---\n')}` })
  t.equal(online.changes.length, 3)
  t.strictSame(online.changes, offline.changes)
  t.equal(online.records, 3)
  const foreign = await ask({ manifests: record('app', { us: 1 }, 'other') })
  t.match(foreign.notes, [/^other\/app: gateways\/app has app\.k\.example\.com\.; rights/])
})

t.test('orders that are invalid, hostile or too large', async (t) => {
  const { post } = await start(t)
  const bomb = [
    'a: &a [x, x, x, x, x, x, x, x, x]',
    ...[...'bcdefghi'].map((name) => {
      const before = String.fromCharCode(name.charCodeAt(0) - 1)
      return `${name}: &${name} [${Array(9).fill(`*${before}`).join(', ')}]`
    }),
  ].join('\n')
  const deep = `a: ${'['.repeat(50_000)}`
  for (const [order, status, detail] of [
    [{}, 400, /give one of/],
    [{ drain: 'site:a', undrain: 'site:a' }, 400, /give one of/],
    [{ drain: 'nonsense' }, 400, /is not a selector/],
    [{ drain: 'x'.repeat(5000) }, 400, /4096/],
    [{ shift: { name: 'a..b', to: 'x' } }, 400, /invalid name/],
    [{ shift: { name: 'a', to: 'x', percent: 101 } }, 400, /100/],
    [{ manifests: '' }, 400, /no DNSRecord/],
    [{ manifests: 'kind: [' }, 400, /./],
    [{ manifests: bomb }, 400, /./],
    [{ manifests: deep }, 400, /./],
    [{ manifests: `${FILES['records/app.json']}\n\u0000` }, 400, /./],
    [{ manifests: '%YAML 9.9\n---\na' }, 400, /./],
    [{ manifests: '<script>alert(1)</script>' }, 400, /must be a mapping/],
    [{ manifests: 'x'.repeat(1024 * 1024) }, 413, /./],
  ] as const) {
    const what = JSON.stringify(order).slice(0, 60)
    const startMs = performance.now()
    const answer = await post('/v1/what-if', order)
    t.equal(answer.status, status, what)
    const problem = JSON.parse(answer.body)
    t.match(problem, { status, detail }, what)
    t.ok(problem.detail.length < 10_000, `${what}: a short text`)
    t.ok(performance.now() - startMs < 5000, `${what}: soon`)
  }
})

t.test('orders wait for each other, and more than some are refused', async (t) => {
  const { post, ask } = await start(t)
  const orders = Array.from({ length: 12 }, () => post('/v1/what-if', { drain: 'id:eu-1' }))
  const statuses = (await Promise.all(orders)).map(({ status }) => status)
  t.ok(statuses.includes(200) && statuses.includes(503), statuses.join())
  t.equal((await ask({ drain: 'id:eu-1' })).records, 2)
})
