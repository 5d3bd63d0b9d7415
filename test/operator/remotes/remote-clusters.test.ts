import t from 'tap'
import { Random } from '../../../src/base/random.ts'
import type { ApiObject } from '../../../src/kube/api.ts'
import { Cluster } from '../../../src/operator/cluster.ts'
import { OwnerBook } from '../../../src/operator/delegation/owner-book.ts'
import { Turns } from '../../../src/operator/delegation/turns.ts'
import { CLUSTERS_MAX, RemoteClusters } from '../../../src/operator/remotes/remote-clusters.ts'
import { createLogger } from '../../../src/telemetry/log.ts'
import { ApiDouble, listBody, type Stream, turns } from '../../support/api-double.ts'
import { secret } from '../../support/operator-objects.ts'
import { FakeClock, FakeTimers } from '../../support/setup.ts'

function serverOf(index: number): string {
  return `https://c${index}.example:6443`
}

/** The Secret of a cluster. */
function clusterSecret(index: number, resourceVersion = '1'): ApiObject {
  const kubeconfig = JSON.stringify({
    'current-context': 'c',
    clusters: [{ name: 'c', cluster: { server: serverOf(index) } }],
    users: [{ name: 'c', user: { token: resourceVersion } }],
    contexts: [{ name: 'c', context: { cluster: 'c', user: 'c' } }],
  })
  const { metadata, ...object } = secret('system', `c${index}`, { kubeconfig }, { type: 'Opaque' })
  return { ...object, metadata: { ...Object(metadata), uid: `uid${index}`, resourceVersion } }
}

t.test('of more clusters than are followed each has its turn once there is room', async (t) => {
  const api = new ApiDouble()
  const log = createLogger(
    '',
    () => {},
    () => false,
  )
  const timers = new FakeTimers()
  const means = { api, log, clock: new FakeClock(), timers, random: new Random(1), namespaces: [] }
  const local = new Cluster(means, 'one')
  const servers: string[] = []
  const clusters = new RemoteClusters({
    local,
    writer: { write: async () => {} },
    turns: new Turns(),
    owners: new OwnerBook(),
    bounds: { minMs: 5000, maxMs: 60_000 },
    settings: { secretNamespace: 'system', secretLabel: 'x', leaveMs: 60_000 },
    mayWrite: () => true,
    connect: async ({ server }) => {
      servers.push(server)
      return new ApiDouble()
    },
    metrics: { countRemoteLook() {}, forgetRemote() {}, forgetRemoteCluster() {} },
  })
  t.teardown(async () => {
    await clusters.close()
    local.close()
  })
  const indexes = Array.from({ length: CLUSTERS_MAX + 2 }, (_, i) => i)
  let watch: Stream | undefined
  const answer = async (): Promise<void> => {
    for (let i = 0; i < 5; i++) {
      await turns()
      await timers.advance(10)
      await turns()
      for (const asked of api.asked.splice(0)) {
        if (asked.isWatch) watch = asked.stream()
        else if (asked.path.endsWith('/namespaces/kube-system'))
          asked.reply(200, { metadata: { name: 'kube-system', uid: 'own' } })
        else if (asked.path.endsWith('/secrets'))
          asked.reply(
            200,
            listBody(
              '1',
              indexes.map((index) => clusterSecret(index)),
            ),
          )
        else asked.reply(201, {})
      }
    }
  }
  clusters.start()
  await answer()
  const first = indexes.slice(0, CLUSTERS_MAX).map(serverOf)
  t.strictSame(servers.splice(0), first)
  t.match(clusters.note, new RegExp(`cluster c${CLUSTERS_MAX}: there are more than`))

  watch?.event('MODIFIED', clusterSecret(0, '2'))
  await answer()
  t.strictSame(servers.splice(0), [serverOf(0)], 'one that is followed keeps its place')

  watch?.event('DELETED', clusterSecret(1, '3'))
  await answer()
  t.strictSame(servers.splice(0), [serverOf(CLUSTERS_MAX)], 'the next one has the place of another')
  t.match(clusters.note, new RegExp(`cluster c${CLUSTERS_MAX + 1}: there are more than`))
})
