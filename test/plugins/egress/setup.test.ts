import { join } from 'node:path'
import t from 'tap'
import { Rcode } from '../../../src/dns/iana/index.ts'
import { NodeService } from '../../../src/plugins/egress/node-service.ts'
import { egress } from '../../../src/plugins/egress/setup.ts'
import { putFile } from '../../support/server.ts'
import { FakeTimers, SetUp } from '../../support/setup.ts'
import { temporaryDirectory } from '../../support/temporary-directory.ts'
import { transaction } from '../../support/transaction.ts'

const POD = '10.1.0.2'
const OBJECTS = `apiVersion: v1
kind: Pod
metadata: { name: app, namespace: a, uid: u, labels: { app: app } }
status: { podIPs: [{ ip: ${POD} }] }
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

t.test('the address has room for the queries that clients may have in progress', async (t) => {
  for (const [property, room] of [
    ['', 4096],
    ['concurrency 100 per-client 10', 100],
    ['concurrency 0', 0],
  ] as const) {
    const c = new SetUp(egress, `egress {\npolicies p\ndry_run\napi off\n${property}\n}`, ['.'])
    t.equal(c.block.waitingMax, room, property)
  }
})

t.test('an instance that ends keeps its agent for the queries in progress', async (t) => {
  for (const [what, end] of [
    ['until they have answers', async (_, answer) => answer(Rcode.NOERROR)],
    ['for a limited time', async (timers) => timers.advance(5000)],
  ] as [string, (timers: FakeTimers, answer: (rcode: number) => void) => Promise<void>][]) {
    const directory = temporaryDirectory(t)
    putFile(directory, 'objects.yaml', OBJECTS)
    const timers = new FakeTimers()
    const properties = [`policies ${join(directory, 'objects.yaml')}`, 'dry_run', 'api off']
    const corefile = `egress {\n${properties.join('\n')}\n}`
    const c = new SetUp(egress, corefile, ['.'], { timers })
    await c.start()
    let answer = (_: number): void => {}
    const below = new Promise<number>((resolve) => {
      answer = resolve
    })
    const handler = c.handler({ name: 'below', serve: () => below })
    const status = handler.serve(transaction({ name: 'www.example.com.', from: POD }))
    let isOver = false
    const stopped = c.stop().then(() => {
      isOver = true
    })
    await new Promise((resolve) => setImmediate(resolve))
    const agents = () => c.resources.withPrefix(NodeService, '').length
    t.strictSame([isOver, agents()], [false, 1], what)
    await end(timers, answer)
    await stopped
    t.equal(agents(), 0)
    answer(Rcode.NOERROR)
    t.equal(await status, Rcode.NOERROR)
  }
})
