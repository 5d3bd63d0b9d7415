import t from 'tap'
import { thisMoment } from '../../../src/base/moment.ts'
import { peerHealthOf, ToyCluster, ToyPeers } from '../../support/operator-cluster.ts'
import { dnsRecord, secret } from '../../support/operator-objects.ts'
import { FakeClock } from '../../support/setup.ts'
import { toyReconciler } from '../../support/toy-reconciler.ts'

const HOST = 'k.example.com'
const EAST = '192.0.2.53:53'

t.test('an Event says that an address of a peer goes down, and up again', async (t) => {
  const cluster = new ToyCluster()
  const clock = new FakeClock()
  const peers = new ToyPeers()
  cluster.put(secret('a', 'coredns', { ZONES: HOST, NAMESERVERS: EAST }))
  const own = { dnsName: HOST, recordType: 'A', recordTTL: 60, targets: ['192.0.2.1'] }
  cluster.put(dnsRecord({ name: 'one', spec: { endpoints: [own] } }))
  const recorded: string[] = []
  const events = {
    record: ({ name }: { name: string }, details: { reason: string; note: string }) => {
      recorded.push(`${name} ${details.reason}: ${details.note}`)
    },
  }
  const open = () => {
    const peerHealth = peerHealthOf('here', clock, { events })
    return toyReconciler(cluster, clock, { site: 'here', peers, peerHealth })
  }
  let reconciler = open()
  const run = async (...endpoints: { targets: string[]; health: 'up' | 'down' }[]) => {
    for (let i = 0; i < 15; i++) {
      clock.pass(1000)
      peers.say(EAST, 'east', endpoints, thisMoment(clock))
      await reconciler.reconcile('a/one')
    }
    return recorded.splice(0)
  }
  const at = (target: string, health: 'up' | 'down') => ({ targets: [target], health })
  t.strictSame(await run(at('192.0.2.9', 'up')), [])
  const down = 'one AddressDown: 192.0.2.9 of east is down: its site reports it'
  t.strictSame(await run(at('192.0.2.9', 'down')), [down])
  reconciler = open()
  t.strictSame(await run(at('192.0.2.9', 'down')), [], 'the next leader does not repeat it')
  t.strictSame(await run(at('192.0.2.9', 'up')), ['one AddressUp: 192.0.2.9 of east is up'])
  t.strictSame(await run(at('192.0.2.9', 'down')), [down])
  t.strictSame(await run(at('192.0.2.8', 'up')), [], 'the address is gone')
  t.strictSame(await run(at('192.0.2.1', 'down')), [], 'an address of ours is served in any case')
})
