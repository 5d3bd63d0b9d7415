import t from 'tap'
import { RecordSet } from '../../src/peering/record-set.ts'
import { buildSiteRecords } from '../../src/peering/site-records.ts'
import { unpackRecord } from '../../src/records/pack.ts'
import { HOST, shared } from './samples.ts'

t.test('a record of another site has the endpoints that the site reports', async (t) => {
  const probeAt = { address: '', port: 8081 }
  const reported = shared({ site: 'east', targets: ['192.0.2.1'], weight: 7, probeAt })
  const records = buildSiteRecords(HOST, [reported], '', RecordSet.EMPTY)
  t.match(records, [{ record: { key: `peers/${HOST}@east` }, endpoints: [reported] }])
  const { endpoints } = unpackRecord(records[0]!.record.packed)
  t.strictSame(endpoints, [{ ...reported.endpoint, probeAt: undefined }], 'not where it is probed')
})
