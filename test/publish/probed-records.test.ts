import t from 'tap'
import { AddressHealth } from '../../src/health/address-health.ts'
import type { ProbedLeaves } from '../../src/health/record-probing.ts'
import { recordsOfCluster, recordsOfPeers } from '../../src/publish/probed-records.ts'
import { objectRecordKey } from '../../src/records/object-record-key.ts'
import { unpackRecord } from '../../src/records/pack.ts'
import { StoredRecord } from '../../src/records/record-source.ts'
import { ZoneOwnership } from '../../src/sources/zone-ownership.ts'
import { TestSource } from '../health/stage.ts'
import { aliasRecord, aliasStage, wireOf } from './alias/stage.ts'

const RECORD = aliasRecord('a', 'k.test ALIAS lb.example', 'k.test A 192.0.2.1 id=a')
const ALIASED = ['192.0.2.7', '2001:db8::7']

t.test('which addresses this server probes', async (t) => {
  const { aliases, pass } = aliasStage(
    t,
    [RECORD],
    new Map([['lb.example', { addresses: ALIASED }]]),
  )
  await pass(1000)
  const { packed } = aliases.find(RECORD.key)!
  const ownership = new ZoneOwnership()
  const leaves = (leavesOf: ProbedLeaves | undefined, record: StoredRecord): string[] => {
    return leavesOf!(record, unpackRecord(record.packed)).map(({ address }) => address)
  }
  const opened = { open: () => new TestSource(), key: '' }
  const source = new TestSource() as unknown as Parameters<typeof recordsOfCluster>[0]['source']
  const cluster = recordsOfCluster({ source, ownership }, opened)
  const peers = recordsOfPeers(new AddressHealth(), opened)

  const of = { kind: 'Gateway', namespace: 'n', name: 'g' }
  const object = new StoredRecord(objectRecordKey(of, 'k.test'), packed)
  const own = new StoredRecord('n/merged-a', packed, { site: 'us', id: '' }, 'n/a')
  const foreign = new StoredRecord('n/merged-a@eu', packed, { site: 'eu', id: '' })
  t.strictSame(leaves(cluster.leavesOf, object), [], 'outside of our zones')
  ownership.claim([wireOf('k.test.')])
  t.strictSame(leaves(cluster.leavesOf, object), ['192.0.2.1', ...ALIASED])
  for (const one of [own, foreign]) t.strictSame(leaves(cluster.leavesOf, one), ALIASED, one.key)
  t.strictSame(leaves(peers.leavesOf, own), [])
  t.strictSame(leaves(peers.leavesOf, foreign), ALIASED)
})
