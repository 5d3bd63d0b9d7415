import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { runDrain, runDrains, runUndrain } from '../../src/cli/drain.ts'
import { fetchLocal } from '../support/http-client.ts'
import { recordManifest } from '../support/manifest.ts'
import { recordOutput } from '../support/recorded-output.ts'
import { freePort, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

// Long: it starts many servers.

const corefile = (adminPort: number, extra: string) => `k.example.com:{PORT} {
    bind 127.0.0.1
    admin 127.0.0.1:${adminPort}
    kuadrant {
        manifests records
        ${extra}
    }
}
`
const FILES = {
  'records/a.yaml': recordManifest('a', '192.0.2.1'),
  'records/b.yaml': recordManifest('b', '192.0.2.2'),
}
const JSON_TYPE = { 'content-type': 'application/json' }

function api(port: number) {
  const send = async (method: string, path: string, body?: unknown) => {
    const headers = body === undefined ? {} : JSON_TYPE
    const text = body === undefined ? undefined : JSON.stringify(body)
    const answer = await fetchLocal(port, { method, path, headers }, text)
    return { status: answer.status, json: JSON.parse(answer.body) }
  }
  return send
}

t.test('drains begin and end by the API', async (t) => {
  const port = await freePort()
  const server = await startServer(t, { corefile: corefile(port, 'drain drains'), files: FILES })
  const file = join(server.directory, 'drains')
  const send = api(port)
  const dropped = async (): Promise<string> => {
    const question = { name: 'a.k.example.com', client: '192.0.2.9' }
    const { json } = await send('POST', '/v1/explain', question)
    return json.steps[0].endpoints[0].dropped || json.steps[0].endpoints[0].out[0]?.reason || ''
  }
  t.strictSame((await send('GET', '/v1/drains')).json, { drains: [], drainsOmitted: 0 })
  t.equal(await dropped(), '')
  const order = { selector: 'host:a.k.example.com', reason: 'racks\nmove', until: '2h' }
  const { status, json } = await send('POST', '/v1/drains', order)
  t.equal(status, 200)
  t.match(json, {
    id: /^[0-9a-f]{8}$/,
    selector: 'host:a.k.example.com',
    reason: 'racks\nmove',
    actor: 'admin API',
    created: /Z$/,
    until: /Z$/,
    file,
    endpoints: 1,
    records: 1,
  })
  const { endpoints, records, ...drain } = json
  t.strictSame((await send('GET', '/v1/drains')).json, { drains: [drain], drainsOmitted: 0 })
  await until(async () => (await dropped()).includes('drained: host:a.k.example.com'), 'the drain')
  t.match(readFileSync(file, 'utf8'), /^host:a\.k\.example\.com until=.* reason="racks\\nmove"$/m)
  const replaced = await send('POST', '/v1/drains', { ...order, actor: 'ops' })
  t.match(replaced.json, { id: drain.id, actor: 'ops' })
  t.equal((await send('GET', '/v1/drains')).json.drains.length, 1)
  t.match(await send('DELETE', `/v1/drains?id=${drain.id}`), {
    status: 200,
    json: { drains: [{ actor: 'ops', file }] },
  })
  await until(async () => (await dropped()) === '', 'the end of the drain')
  t.equal((await send('DELETE', `/v1/drains?id=${drain.id}`)).status, 404)

  const selector = 'host:b.k.example.com'
  for (const [body, detail] of [
    [{}, /selector/],
    [{ selector: '' }, /./],
    [{ selector: 'color:red' }, /color/],
    [{ selector: '"' }, /valid JSON/],
    [{ selector: 'host:c.k.example.com' }, /selects no endpoint; .* set allowEmpty/],
    [{ selector, until: 'soon' }, /^until "soon" is neither a duration/],
    [{ selector, until: '2020-01-01T00:00:00Z' }, /in the past/],
    [
      { selector, file: '/etc/passwd' },
      /^file \(--file\) must be one of the drain files of the Corefile: /,
    ],
    [{ selector, reason: 'x'.repeat(1001) }, /1000 characters/],
    [{ selector, color: 'red' }, /additional properties/],
  ] as const) {
    const refused = await send('POST', '/v1/drains', body)
    t.equal(refused.status, 400, JSON.stringify(body).slice(0, 80))
    t.match(refused.json.detail, detail)
  }
  t.equal((await send('DELETE', '/v1/drains')).status, 400, 'the id is required')
  t.strictSame(
    (await send('GET', '/v1/drains')).json,
    { drains: [], drainsOmitted: 0 },
    'nothing was written',
  )
  const empty = { selector: 'host:c.k.example.com', allowEmpty: true }
  t.match(await send('POST', '/v1/drains', empty), { status: 200, json: { endpoints: 0 } })
  const orders = ['a', 'b'].map((name) => ({
    selector: `record:default/${name}`,
    allowEmpty: true,
  }))
  await Promise.all(orders.map((one) => send('POST', '/v1/drains', one)))
  t.equal((await send('GET', '/v1/drains')).json.drains.length, 3, 'both at once are kept')
  writeFileSync(file, 'nonsense\n')
  const broken = await send('POST', '/v1/drains', { selector })
  t.equal(broken.status, 400)
  t.match(broken.json.detail, /drains:1/)
  t.equal(readFileSync(file, 'utf8'), 'nonsense\n')
})

t.test('without a drain file there is nothing to change', async (t) => {
  const port = await freePort()
  await startServer(t, { corefile: corefile(port, ''), files: FILES })
  const send = api(port)
  t.strictSame((await send('GET', '/v1/drains')).json, { drains: [], drainsOmitted: 0 })
  const refused = await send('POST', '/v1/drains', { selector: 'host:a.k.example.com' })
  t.match(refused, {
    status: 400,
    json: { detail: 'the Corefile names no drain file; add `drain FILE` to kuadrant' },
  })
})

async function run(command: typeof runDrain, ...argv: string[]) {
  const { output, printed, errors } = recordOutput()
  const code = await command(argv, output)
  return { code, printed, errors }
}

t.test('the commands with @SERVER', async (t) => {
  const port = await freePort()
  const files = { ...FILES, token: 'a'.repeat(32) }
  const config = corefile(port, 'drain drains').replace(
    `admin 127.0.0.1:${port}`,
    `admin 127.0.0.1:${port} {\n token token\n }`,
  )
  const server = await startServer(t, { corefile: config, files })
  const file = join(server.directory, 'drains')
  const place = [`@127.0.0.1:${port}`, '--token-file', join(server.directory, 'token')]
  t.strictSame(await run(runDrains, ...place), {
    code: 0,
    printed: ['nothing is drained'],
    errors: [],
  })
  const order = ['host:a.*', '--until', '2h', 'record:default/*', '--reason', 'a "b"']
  const begun = await run(runDrain, ...order, '--actor', 'ops', ...place)
  t.strictSame([begun.code, begun.errors], [0, []])
  t.match(begun.printed, [
    /^drained [0-9a-f]{8} host:a\.\* record:default\/\* by ops until .+Z: a "b"$/,
    'selected: 1 endpoint of 1 record',
  ])
  t.match(readFileSync(file, 'utf8'), /by=ops .*reason="a \\"b\\""/)
  const listed = await run(runDrains, '-o', 'json', ...place)
  const [drain] = JSON.parse(listed.printed.join('\n'))
  t.match(drain, { selector: 'host:a.* record:default/*', actor: 'ops', file })
  t.match((await run(runDrains, ...place)).printed, [
    /^ID {8}SELECTOR .* UNTIL .* BY {3}REASON$/,
    /^[0-9a-f]{8} {2}host:a\.\* record:default\/\* {2}\S+Z {2}ops {2}a "b"$/,
  ])
  t.match((await run(runUndrain, 'record:default/*', 'host:A.*', ...place)).printed, [
    /^undrained [0-9a-f]{8} host:a\.\* record:default\/\* by ops until/,
  ])
  t.equal((await run(runDrain, 'host:b.*', '--file', file, ...place)).code, 0)
  const [other] = JSON.parse((await run(runDrains, '-o', 'json', ...place)).printed.join('\n'))
  t.not(other.actor, '', 'the user of the system')
  t.equal((await run(runUndrain, other.id, ...place)).code, 0)
  t.strictSame((await run(runDrains, ...place)).printed, ['nothing is drained'])

  const [at] = place as [string]
  for (const [command, argv, error] of [
    [runDrain, ['host:c.k.example.com', ...place], /selects no endpoint; .* \(--allow-empty\)$/],
    [runDrain, ['host:a.k.example.com', at], /; use --token-file$/],
    [
      runDrain,
      ['host:a.k.example.com', '--file', '/etc/passwd', ...place],
      /file \(--file\) must be one of/,
    ],
    [runDrain, ['host:a.k.example.com', '--until', 'noon', ...place], /^--until "noon" is neither/],
    [runDrain, ['color:red', ...place], /^"color:red" is not a selector/],
    [runDrain, ['host:a.k.example.com', '@127.0.0.1:1', at], /^more than one server: /],
    [runDrain, ['host:a.k.example.com', '--token-file', file], /are for a running server/],
    [runDrain, ['host:a.k.example.com', '-conf', 'x', at], /^use either @SERVER or -conf$/],
    [
      runUndrain,
      [other.id, ...place],
      /^no drain in force has the id or selector .*; the drains are: none$/,
    ],
    [runUndrain, ['host:a.*', '--file', file, ...place], /leave out --file$/],
    [runDrains, ['host:a.*', ...place], /^drains takes no selector: host:a/],
    [runDrains, ['@127.0.0.1:1'], /^no server listens on/],
  ] as const) {
    const refused = await run(command, ...argv)
    t.strictSame([refused.code, refused.printed], [1, []], argv.join(' '))
    t.equal(refused.errors.length, 1)
    t.match(refused.errors[0], error)
  }
  t.strictSame((await run(runDrains, ...place)).printed, ['nothing is drained'])
})
