import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { ListedName } from '../../src/egress/agent/api/names-api.ts'
import { ALLOWED_MS, DROPPED_MS, EgressNode, UPSTREAM } from '../support/egress-node.ts'
import { needs, needsRoot } from '../support/peer.ts'
import { putFile, root, runSextant } from '../support/server.ts'
import { until } from '../support/until.ts'

/* Reloads of the node agent, its ready page and its metrics; nftables and connections are real. */

t.setTimeout(600_000)

const NEEDS = { ...needsRoot(), ...needs('ip', 'nft', 'conntrack', 'dig', 'curl') }
const OBJECTS = `apiVersion: v1
kind: Pod
metadata: { name: app, namespace: a, uid: u, labels: { app: app } }
status: { podIPs: [{ ip: 10.1.0.2 }] }
---
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: { name: app, namespace: a }
spec:
  endpointSelector: { matchLabels: { app: app } }
  egress:
    - toPorts: [{ ports: [{ port: "53", protocol: ANY }] }]
    - toFQDNs: [{ matchPattern: "*.example.com" }]
`
const NAMES = 10_000
const addressOf = (i: number) => {
  return { address: `198.18.${2 + Math.floor(i / 250)}.${(i % 250) + 1}`, port: 443 }
}
const ZONE = `$TTL 3600
@ SOA ns hostmaster 1 3600 600 86400 60
@ NS ns
ns A ${UPSTREAM}
${Array.from({ length: NAMES }, (_, i) => `n${i} A ${addressOf(i).address}`).join('\n')}
`
const [METRICS, READY] = ['http://127.0.0.1:9153/metrics', 'http://127.0.0.1:8181/ready']
const OTHER = { address: '198.18.200.1', port: 443 }

async function start(t: Test) {
  const node = await EgressNode.start(t, {
    objects: OBJECTS,
    podAddresses: { app: ['10.1.0.2'] },
    zones: { 'example.com.': ZONE },
    chain: `prometheus 127.0.0.1:9153\n    ready 127.0.0.1:8181\n    forward . ${UPSTREAM}`,
  })
  const { agent, directory } = node
  const path = join(directory, 'Corefile')
  const count = (what: RegExp) => agent.output().match(new RegExp(what, 'g'))?.length ?? 0
  /** Has the agent read an edited Corefile, and waits for a log line. */
  const reload = async (edit: (corefile: string) => string, end: RegExp): Promise<void> => {
    const before = count(end)
    writeFileSync(path, edit(readFileSync(path, 'utf8')))
    agent.process.kill('SIGUSR1')
    await until(() => count(end) > before, String(end), 120_000).catch((error) => {
      throw new Error(agent.output(), { cause: error })
    })
  }
  const fetch = (url: string) => node.host.run('curl', '-s', '--max-time', '30', url)
  const metric = async (name: string): Promise<number> => {
    const line = (await fetch(METRICS)).split('\n').find((one) => one.startsWith(`${name} `))
    return Number(line?.split(' ')[1] ?? Number.NaN)
  }
  const names = async (): Promise<readonly string[]> => {
    const args = ['fqdn', 'cache', 'list', '-o', 'json', '--socket', node.socket]
    const { code, stdout, stderr } = await runSextant(directory, args)
    t.strictSame([code, stderr], [0, ''])
    return (JSON.parse(stdout) as readonly ListedName[]).map(({ fqdn }) => fqdn).sort()
  }
  return { node, app: node.pod('app'), reload, fetch, metric, names }
}

/** Names that no visit has asked for yet: the reply of each of them waits for its address. */
let nextName = 10

/** Connects and resolves all the time, several at once. */
function visiting({ app }: Awaited<ReturnType<typeof start>>) {
  let isOver = false
  const failed: string[] = []
  const startMs = performance.now()
  const note = (what: string, result: string): void => {
    const tookMs = Math.round(performance.now() - startMs)
    if (result !== 'open') failed.push(`${what}: ${result}, ${tookMs} ms after the start`)
  }
  const work = Array.from({ length: 8 }, async () => {
    while (!isOver) {
      const name = `n${nextName++ % NAMES}.example.com`
      const { result, rcode } = await app.visit(name, 443)
      note(`${name} ${rcode}`, result)
      note('known', await app.connect(addressOf(0), ALLOWED_MS))
    }
  })
  return async (): Promise<readonly string[]> => {
    isOver = true
    await Promise.all(work)
    return failed
  }
}

const DONE = /Reloading complete/

t.test('a reload', NEEDS, async (t) => {
  const place = await start(t)
  const { node, app, reload, fetch, metric, names } = place
  t.equal((await app.visit('n0.example.com', 443)).result, 'open')
  t.equal(await app.open('long', addressOf(0)), 'open')

  await t.test('each metric of the page is there, and no others', async (t) => {
    const page = readFileSync(join(root, 'docs/reference/metrics.md'), 'utf8')
    const section = /^## Node agent$[\s\S]*?(?=^## )/m.exec(page)?.[0] ?? ''
    const rows = /^\| `(sextant_(?:egress|fqdn|proxy)_\w+)` \| \w+ \| (`server`)?/gm
    const found = [...section.matchAll(rows)]
    const listed = [...new Set(found.map(([, name]) => name))].sort()
    const metrics = await fetch(METRICS)
    const exported = metrics.matchAll(/^# TYPE (sextant_(?:egress|fqdn|proxy)_\w+)/gm)
    t.strictSame([...exported].map(([, name]) => name).sort(), listed)
    // The counters of a server block begin with their first event.
    for (const [, name] of found.filter(([, , label]) => label === undefined))
      t.ok(new RegExp(`^${name}(_count)?[ {]`, 'm').test(metrics), `a value of ${name}`)
  })

  await t.test('with the same options keeps the agent', async (t) => {
    const answers = await metric('sextant_egress_answers_total')
    const resyncs = await metric('sextant_egress_nft_resyncs_total')
    const stop = visiting(place)
    await reload((text) => text.replace('errors', 'errors\n    loadbalance'), DONE)
    await reload((text) => text.replace('nftables', 'nftables\n        deny_rcode NXDOMAIN'), DONE)
    t.strictSame(await stop(), [])
    t.equal(await app.echo('long'), 'open')
    t.ok((await metric('sextant_egress_answers_total')) > answers, 'the counters continue')
    t.equal(await metric('sextant_egress_nft_resyncs_total'), resyncs, 'the table is not written')
    t.equal(await metric('sextant_egress_clients'), 1)
    t.ok((await names()).includes('n0.example.com.'))
  })

  await t.test('with other options: the new agent adopts the table', async (t) => {
    const state = join(node.directory, 'state.json')
    const isStored = () => existsSync(state) && readFileSync(state, 'utf8').includes('n0.example')
    await until(isStored, 'the state file')
    const stop = visiting(place)
    await reload((text) => text.replace('nftables', 'nftables\n        min_ttl 9s'), DONE)
    t.strictSame(await stop(), [])
    t.equal(await app.connect(addressOf(0), ALLOWED_MS), 'open', 'without a new query')
    t.equal(await app.connect(OTHER, DROPPED_MS), 'dropped')
    t.equal(await app.echo('long'), 'open')
    t.equal(await metric('sextant_egress_clients'), 1)
    t.ok((await names()).includes('n0.example.com.'), 'from the state file')
    t.equal((await app.visit('n1.example.com', 443)).result, 'open')
  })

  await t.test('that fails: the agent continues', async (t) => {
    const stop = visiting(place)
    const before = readFileSync(join(node.directory, 'Corefile'), 'utf8')
    // An invalid Corefile, and new agents whose instances fail later.
    for (const edit of [
      (text: string) => text.replace('errors', 'errors\n    nonsense'),
      (text: string) =>
        `${text.replace('min_ttl 9s', 'min_ttl 8s')}.:5399 {\n bind 192.0.2.99\n}\n`,
      (text: string) => text.replace('policies objects.yaml', ''),
    ])
      await reload(() => edit(before), /Restart failed|Reload failed/)
    t.strictSame(await stop(), [])
    t.equal(await app.connect(addressOf(0), ALLOWED_MS), 'open')
    t.equal(await app.connect(OTHER, DROPPED_MS), 'dropped')
    t.equal(await app.echo('long'), 'open')
    t.equal((await app.visit('n2.example.com', 443)).result, 'open')
    t.ok((await names()).includes('n2.example.com.'), 'the socket is still open')
    t.equal(await metric('sextant_egress_clients'), 1)
    putFile(node.directory, 'objects.yaml', OBJECTS.replace('*.example.com', 'n3.example.com'))
    const isWithdrawn = async () => (await app.connect(addressOf(2), DROPPED_MS)) === 'dropped'
    await until(isWithdrawn, 'the new rules')
    t.equal((await app.visit('n3.example.com', 443)).result, 'open')
  })

  await t.test('the ready page has the reason why rules may be old', async (t) => {
    t.equal((await fetch(READY)).trim(), 'OK')
    node.putObjects(`${OBJECTS}---\nspec: [\n`)
    const isShown = async () => /egress: .*objects\.yaml:\d+: /.test(await fetch(READY))
    await until(isShown, 'the reason')
    t.match(await fetch(READY), /^OK\n/, 'the last valid policies are enforced')
    t.equal(await app.connect(OTHER, DROPPED_MS), 'dropped')
    node.putObjects(OBJECTS)
    await until(async () => (await fetch(READY)).trim() === 'OK', 'no reason')
  })
})
