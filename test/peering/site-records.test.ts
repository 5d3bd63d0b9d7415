import t from 'tap'
import { unpackRecord } from '../../src/dnsrecord/pack.ts'
import { RecordSet } from '../../src/peering/record-set.ts'
import { buildSiteRecords } from '../../src/peering/site-records.ts'
import { printEndpoint } from '../support/print-endpoint.ts'
import { HOST, shared } from './samples.ts'

t.test('an invalid endpoint of another site is refused alone', async (t) => {
  const valid = shared({ site: 'east', targets: ['192.0.2.1'] })
  const invalid = { ...valid, targets: ['192.0.2.256'] }
  const { records, refused } = buildSiteRecords(HOST, [invalid, valid], '', RecordSet.EMPTY)
  t.match(refused, [{ site: 'east', reason: /"192.0.2.256" is not an IPv4 address/ }])
  t.match(records, [{ record: { key: `peers/${HOST}@east` }, endpoints: [valid] }])
  const { endpoints } = unpackRecord(records[0]!.record.packed)
  t.match(endpoints.map(printEndpoint), [{ dnsName: HOST, targets: ['192.0.2.1'] }])
})
