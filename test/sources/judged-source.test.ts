import t from 'tap'
import { scanName } from '../../src/dns/name/name.ts'
import { packRecord } from '../../src/dnsrecord/pack.ts'
import { StoredRecord } from '../../src/dnsrecord/record-source.ts'
import { SERVED, validateResource } from '../../src/dnsrecord/validate/resource.ts'
import { JudgedSource } from '../../src/sources/judged-source.ts'
import type { OwnedSource } from '../../src/sources/owned-source.ts'
import { ZoneOwnership } from '../../src/sources/zone-ownership.ts'

const HOST = 'app.k.example.com'

function record(namespace: string): StoredRecord {
  const endpoints = [{ dnsName: HOST, recordType: 'A', targets: ['192.0.2.1'] }]
  const got = validateResource(
    {
      apiVersion: 'kuadrant.io/v1alpha1',
      kind: 'DNSRecord',
      metadata: { namespace, name: 'r' },
      spec: { rootHost: HOST, endpoints },
    },
    SERVED,
  )
  if (got.kind !== 'record') throw new Error(JSON.stringify(got))
  return new StoredRecord(`${namespace}/r`, packRecord(got.record))
}

t.test('zones that are added together are judged once', async (t) => {
  const all = [record('a'), record('b')]
  let reads = 0
  const source = {
    records: () => {
      reads++
      return all
    },
    find: (key: string) => all.find((one) => one.key === key),
    subscribe: () => () => {},
  }
  const ownership = new ZoneOwnership()
  const judged = new JudgedSource({ source, ownership } as unknown as OwnedSource, {
    isServed: () => true,
    shares: [],
    onRefused: () => {},
  })
  t.teardown(() => judged.close())
  t.same(
    [...judged.records()].map(({ key }) => key),
    ['a/r'],
  )
  const zones = ['k.example.com.', 'x.example.', 'y.example.'].map((zone) => scanName(zone)!)
  reads = 0
  const release = ownership.claim(zones)
  t.equal(reads, 1)
  release()
  t.equal(reads, 2)
  ownership.claim(zones)()
  t.equal(reads, 4)
})
