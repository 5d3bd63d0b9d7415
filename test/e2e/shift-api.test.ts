import t from 'tap'
import { fetchLocal } from '../support/http-client.ts'
import { freePort, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

// Long: it starts servers.

const HOST = 'app.k.example.com'

function record(annotations: Readonly<Record<string, string>> = {}, name = 'app'): string {
  const endpoints = [
    ['eu-1', '100'],
    ['eu-2', '0'],
  ].map(([setIdentifier, weight], i) => ({
    ...{ dnsName: `${name}.k.example.com`, recordType: 'A', recordTTL: 60, setIdentifier },
    targets: [`192.0.2.${i + 1}`],
    providerSpecific: [{ name: 'weight', value: weight }],
  }))
  return JSON.stringify({
    ...{ apiVersion: 'kuadrant.io/v1alpha1', kind: 'DNSRecord' },
    metadata: { name, namespace: 'gateways', annotations },
    spec: { rootHost: `${name}.k.example.com`, endpoints },
  })
}

const ANNOTATION = { 'sextant.io/shift': 'to=eu-2 steps=5% bake=1h' }
const FILES = {
  'records/app.json': record(),
  'records/shop.json': record(ANNOTATION, 'shop'),
}
const corefile = (adminPort: number, properties: string) => `k.example.com:{PORT} {
    bind 127.0.0.1
    admin 127.0.0.1:${adminPort}
    kuadrant {
        manifests records
        ${properties}
    }
}
`

function client(port: number) {
  const headers = { 'content-type': 'application/json' }
  const send = async (method: string, path: string, body?: object) => {
    const text = body === undefined ? undefined : JSON.stringify(body)
    const request = { method, path, headers: body === undefined ? {} : headers }
    const answer = await fetchLocal(port, request, text)
    return { status: answer.status, body: JSON.parse(answer.body) }
  }
  const explain = async (): Promise<readonly number[]> => {
    const { body } = await send('POST', '/v1/explain', { name: HOST, client: '192.0.2.9' })
    const endpoints: readonly { share?: number }[] = body.steps[0].endpoints
    return endpoints.map(({ share = 0 }) => share)
  }
  return { send, explain }
}

const ORDER = { name: HOST, to: 'eu-2', steps: '25%,100%', bake: '1h', reason: 'new racks' }

t.test('a shift by the API survives a restart, and its end restores the weights', async (t) => {
  const port = await freePort()
  const files = FILES
  const first = await startServer(t, { corefile: corefile(port, 'shift shifts.state'), files })
  const { send, explain } = client(port)
  t.strictSame(await explain(), [1, 0])
  const begun = await send('POST', '/v1/shifts', ORDER)
  t.match(begun, {
    status: 200,
    body: { record: 'gateways/app', state: 'running', share: 25, order: { reason: 'new racks' } },
  })
  await until(async () => (await explain())[1] === 0.25, 'the first step')
  const { id } = begun.body.order
  t.match((await send('GET', '/v1/shifts')).body.shifts.length, 2)
  const { events } = (await send('GET', '/v1/events?limit=1000')).body
  const acts = events.filter(({ actor }: { actor: { kind: string } }) => actor.kind === 'act')
  t.match(acts, [{ actor: { name: 'admin API' }, text: /^shift [0-9a-f]{8} .*: new racks$/ }])

  first.process.kill('SIGTERM')
  await first.exited()
  const more = { files: {}, beside: first }
  await startServer(t, { corefile: corefile(port, 'shift shifts.state'), ...more })
  await until(async () => (await explain().catch(() => []))[1] === 0.25, 'the step after a restart')
  t.match((await send('DELETE', `/v1/shifts?id=${id}&reason=done`)).body.shifts, [
    { order: { id } },
  ])
  await until(async () => (await explain())[1] === 0, 'the weights of the record')
  t.equal((await send('DELETE', `/v1/shifts?id=${id}`)).status, 404)
})

t.test('shifts that are refused', async (t) => {
  const port = await freePort()
  await startServer(t, { corefile: corefile(port, 'shift shifts.state'), files: FILES })
  const { send } = client(port)
  for (const [changed, detail] of [
    [{ name: 'shop.k.example.com' }, /gateways\/shop has the annotation/],
    [{ name: 'none.k.example.com' }, /no DNSRecord has the root host/],
    [{ name: 'a..b' }, /invalid name/],
    [{ to: 'eu-3' }, /no endpoint of the host has the set identifier "eu-3"/],
    [{ to: 'eu-2 steps=1%' }, /without spaces/],
    [{ to: '' }, /set identifier/],
    [{ steps: '50%,25%' }, /ascending/],
    [{ steps: '101%' }, /ascending/],
    [{ bake: '1ms' }, /bake/],
    [{ reason: 'x'.repeat(1001) }, /1000/],
  ] as const) {
    const { status, body } = await send('POST', '/v1/shifts', { ...ORDER, ...changed })
    t.match({ status, detail: body.detail }, { status: 400, detail }, JSON.stringify(changed))
  }
  const other = await freePort()
  await startServer(t, { corefile: corefile(other, ''), files: FILES })
  const { body } = await client(other).send('POST', '/v1/shifts', ORDER)
  t.match(body.detail, /add `shift FILE`/, 'an order must survive a restart')
})
