import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { Rcode } from '../../../src/dns/iana/rcodes.ts'
import { RRType } from '../../../src/dns/iana/types.ts'
import { kuadrant } from '../../../src/plugins/kuadrant/setup.ts'
import { ApiServer } from '../../support/api-server.ts'
import { SetUp } from '../../support/setup.ts'
import { transaction } from '../../support/transaction.ts'
import { until } from '../../support/until.ts'

const ZONE = 'k.example.com.'

function record(name: string, last: number): object {
  const host = `${name}.k.example.com`
  const labels = { 'kuadrant.io/coredns-zone-name': 'k.example.com' }
  return {
    metadata: { name, namespace: 'team', resourceVersion: '40', labels },
    spec: {
      rootHost: host,
      endpoints: [{ dnsName: host, recordType: 'A', targets: [`192.0.2.${last}`] }],
    },
  }
}

/** A cluster, and the lives of a block over it. */
async function place(t: Test) {
  const api = await ApiServer.start(t)
  api.objects.set('dnsrecords', [record('a', 1)])
  const directory = t.testdir({ kubeconfig: api.kubeconfig })
  const block = (properties = ''): SetUp => {
    const corefile = `kuadrant {\n kubeconfig ${join(directory, 'kubeconfig')}\n${properties}\n}`
    const setUp = new SetUp(kuadrant, corefile, [ZONE])
    t.teardown(() => setUp.stop())
    return setUp
  }
  const write = (text: string) => writeFileSync(join(directory, 'kubeconfig'), text)
  return { api, block, write, snapshot: `snapshot ${join(directory, 'snapshot')} 1s` }
}

/** The last octet of the address; -1 = there is none, SERVFAIL = nothing is loaded. */
function ask(setUp: SetUp, name: string): number | 'SERVFAIL' {
  const tx = transaction({ name: `${name}.${ZONE}`, type: RRType.A })
  const rcode = setUp.handler().serve(tx)
  if (rcode === Rcode.SERVFAIL) return 'SERVFAIL'
  const { response } = tx
  return response.count > 0 && response.type[0] === RRType.A
    ? response.rdataBytes[0]![response.rdataOffset[0]! + 3]!
    : -1
}

const note = (setUp: SetUp): string => setUp.readiness[0]!.note?.() ?? ''

t.test(
  'a reload while the cluster is away does not lose the snapshot that is served',
  async (t) => {
    const { api, block, snapshot } = await place(t)
    const first = block(snapshot)
    await first.start()
    t.equal(ask(first, 'a'), 1)
    await first.exit()

    api.isAway = true
    const second = block(snapshot)
    await second.start()
    await until(() => /dnsrecords/.test(note(second)), 'the source to be opened in vain')
    t.equal(ask(second, 'a'), 1)
    const reloaded = block(snapshot)
    await reloaded.start()
    await second.stop()
    t.equal(ask(reloaded, 'a'), 1)
    t.equal(reloaded.readiness[0]!.check(), '')

    api.isAway = false
    api.objects.set('dnsrecords', [record('a', 2)])
    await until(() => ask(reloaded, 'a') === 2, 'the records')
  },
)
