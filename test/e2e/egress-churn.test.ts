import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { ALLOWED_MS, EgressNode, UPSTREAM } from '../support/egress-node.ts'
import { needs, needsRoot } from '../support/peer.ts'
import { root } from '../support/server.ts'
import { until } from '../support/until.ts'

// Long: it edits policies for tens of seconds.

/*
 * A name with 5 000 addresses, as object stores have: each answer has eight of them, with a TTL of 5 s. CONTRIBUTING.md has the
 * seconds for a release.
 */
const SECONDS = Number(process.env.SEXTANT_CHURN_SECONDS ?? 10)
const PORT = 5301
const OBJECTS = `
apiVersion: v1
kind: Pod
metadata: { name: app, namespace: a, labels: { app: app } }
status: { podIPs: [{ ip: 10.1.0.2 }] }
---
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: { name: app, namespace: a }
spec:
  endpointSelector: { matchLabels: { app: app } }
  egress:
    - toPorts: [{ ports: [{ port: "53", protocol: ANY }], rules: { dns: [{ matchPattern: "*" }] } }]
    - toFQDNs: [{ matchName: objects.churn.example }]
`

t.setTimeout(SECONDS * 1000 + 300_000)

t.test(
  'a name whose addresses change all the time',
  { ...needsRoot(), ...needs('ip', 'nft', 'conntrack') },
  async (t) => {
    const node = await EgressNode.start(t, {
      objects: OBJECTS,
      podAddresses: { app: ['10.1.0.2'] },
      properties: 'addresses_per_name 100\n zombies 200',
      chain: `forward . ${UPSTREAM}:${PORT}`,
    })
    const script = join(root, 'test/e2e/egress-churn.mjs')
    const server = node.world.start([process.execPath, script, UPSTREAM, String(PORT)])
    await until(() => server.output().includes('ready'), 'the DNS server')
    const app = node.pod('app')
    const { addresses } = await app.resolve('objects.churn.example')
    const long = addresses[0]!
    t.equal(await app.open('long', { address: long, port: 443 }), 'open')
    const wrong: string[] = []
    const note = (what: string): void => {
      wrong.push(what)
      t.comment(what)
    }
    let most = 0
    for (let second = 0; second < SECONDS; second++) {
      const { result, retransmits } = await app.visit('objects.churn.example', 443)
      if (result !== 'open' || retransmits > 0) note(`${second}: new ${result} ${retransmits}`)
      const echo = await app.echo('long')
      if (echo !== 'open') note(`${second}: long ${echo}`)
      const again = await app.connect({ address: long, port: 443 }, ALLOWED_MS)
      if (again !== 'open') note(`${second}: again ${again}`)
      const elements = (await node.ruleset()).match(/10\.1\.0\.2 \. 198\.19\./g)?.length ?? 0
      most = Math.max(most, elements)
      await delay(1000)
    }
    t.strictSame(wrong, [])
    t.comment(`${SECONDS} s, at most ${most} elements`)
    // What a minute of answers adds until the next collection: 8 per second.
    t.ok(most <= 100 + 200 + 2 * 60 * 8, `${most} elements`)
  },
)
