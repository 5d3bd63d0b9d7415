import t from 'tap'
import { needsCluster } from '../support/cluster-binary.ts'
import { address, DelegationSite } from '../support/delegation-site.ts'

const ZONE = 'k.example.com'
const HOST = `app.${ZONE}`
const READY = /^True ProviderSuccess: Provider ensured the dns record$/
/** How long a cluster is waited for that is gone for good. */
const LEAVE = '--cluster-leave-time=4s'

/** API servers for all: each takes ten seconds to start. */
t.test('a cluster that publishes for another one', needsCluster(), async (t) => {
  const primary = await DelegationSite.start(t, 'dublin', LEAVE)
  const secondary = await DelegationSite.start(t, 'boston', '--delegation-role=secondary')
  await primary.provide(ZONE)
  await primary.operate()
  await secondary.operate()
  await primary.follow(secondary)

  await t.test('a record of the secondary is served by the primary', async (t) => {
    await secondary.create('app', HOST, [address(HOST, '192.0.2.1')])
    await primary.serves(`${HOST} A 192.0.2.1`)
    await secondary.says('app', READY)
    t.strictSame(await secondary.authoritative(), [])
    const { metadata, status } = await secondary.read('app')
    t.strictSame(metadata.finalizers, ['kuadrant.io/dns-record'])
    t.equal(status.zoneID, undefined, 'it has no zone of its own')
    const [made] = await primary.authoritative()
    t.match(status.remoteRecordStatuses, {
      [primary.uid]: {
        zoneID: made.metadata.name,
        zoneDomainName: HOST,
        domainOwners: [status.ownerID],
        observedGeneration: metadata.generation,
        endpoints: [address(HOST, '192.0.2.1')],
      },
    })
  })

  await t.test('deleted, nothing is left behind', async (t) => {
    await secondary.remove('app')
    await secondary.isGone('app')
    await primary.serves('')
    t.strictSame(await primary.list(), [])
  })
})
