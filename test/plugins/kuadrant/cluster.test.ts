import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { Rcode } from '../../../src/dns/iana/rcodes.ts'
import { RRType } from '../../../src/dns/iana/types.ts'
import { kuadrant } from '../../../src/plugins/kuadrant/setup.ts'
import { PublisherGroup } from '../../../src/publish/publisher-group.ts'
import { SetUp } from '../../support/setup.ts'
import { temporaryDirectory } from '../../support/temporary-directory.ts'
import { transaction } from '../../support/transaction.ts'
import { until } from '../../support/until.ts'
import { ApiServer } from '../api-server.ts'

// Long: it starts many servers.

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
  const directory = temporaryDirectory(t)
  writeFileSync(join(directory, 'kubeconfig'), api.kubeconfig)
  const block = (properties = ''): SetUp => {
    const corefile = `kuadrant {\n kubeconfig ${join(directory, 'kubeconfig')}\n${properties}\n}`
    const setUp = new SetUp(kuadrant, corefile, [ZONE])
    t.teardown(() => setUp.stop())
    return setUp
  }
  const point = (to: ApiServer): void => writeFileSync(join(directory, 'kubeconfig'), to.kubeconfig)
  return { api, block, point, snapshot: `snapshot ${join(directory, 'snapshot')} 1s` }
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

const unready = (setUp: SetUp): string => setUp.readiness[0]!.check()
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
    t.equal(unready(reloaded), '')

    api.isAway = false
    api.objects.set('dnsrecords', [record('a', 2)])
    await until(() => ask(reloaded, 'a') === 2, 'the records')
  },
)

t.test(
  'a start does not wait for ever for a cluster, a reload leaves what serves alone',
  async (t) => {
    const { api, block } = await place(t)
    api.isAway = true
    const first = block()
    await first.start()
    t.equal(ask(first, 'a'), 'SERVFAIL')
    t.match(
      first.lines.join('\n'),
      /records are not read yet: .*; queries get SERVFAIL until the records are read/,
    )
    const second = block()
    await second.start()
    t.equal(ask(second, 'a'), 'SERVFAIL', 'where nothing is served a reload loses nothing')
    await first.stop()
    api.isAway = false
    await until(() => ask(second, 'a') === 1, 'the records', 30_000)
    t.equal(unready(second), '')

    const other = await place(t)
    other.api.isAway = true
    const reloaded = other.block()
    await t.rejects(reloaded.start(), {
      name: 'InputError',
      message:
        /^Corefile:2 - Error during parsing: records are not read yet: dnsrecords in all namespaces: /,
    })
    await reloaded.stop()
    t.equal(ask(second, 'a'), 1)
  },
)

t.test('a reload takes up an edited kubeconfig, and waits for what it leads to', async (t) => {
  const { block, point, snapshot } = await place(t)
  const first = block(snapshot)
  await first.start()
  const elsewhere = await ApiServer.start(t)
  elsewhere.objects.set('dnsrecords', [record('a', 7)])
  elsewhere.isAway = true
  point(elsewhere)
  const early = block(snapshot)
  await t.rejects(early.start(), { message: /records are not read yet/ }, 'what serves goes on')
  await early.stop()
  t.equal(ask(first, 'a'), 1)
  elsewhere.isAway = false
  const second = block(snapshot)
  await second.start()
  await first.stop()
  t.equal(ask(second, 'a'), 7)

  const same = block(snapshot)
  elsewhere.objects.set('dnsrecords', [record('a', 9)])
  await same.start()
  await second.stop()
  t.equal(ask(same, 'a'), 7, 'one that was not edited is read once')
})

t.test('blocks over one dead cluster wait together', async (t) => {
  const blocks = new PublisherGroup()
  const patienceMs = blocks.patienceMs
  // Sums of clock readings are rounded: the first value may be above 5000 by a hair.
  t.equal(Math.round(patienceMs), 5000)
  await until(() => blocks.patienceMs < patienceMs, 'time to pass')
  t.equal(new PublisherGroup().patienceMs > blocks.patienceMs, true, 'another Corefile has its own')
})
