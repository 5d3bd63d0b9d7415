import t from 'tap'
import { RRType } from '../../src/dns/iana/types.ts'
import { scanName } from '../../src/dns/name/name.ts'
import { RecordSet } from '../../src/peering/record-set.ts'
import { buildSiteRecords } from '../../src/peering/site-records.ts'
import { ALIAS_TYPE } from '../../src/records/dns-record.ts'
import { HEALTH_CHECK_DEFAULTS, type HealthCheck } from '../../src/records/health-check.ts'
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

t.test('our health check is that of a record whose addresses we resolve ourselves', async (t) => {
  const check = HEALTH_CHECK_DEFAULTS
  const cases: readonly (readonly [type: number, isChecked: boolean])[] = [
    [RRType.A, false],
    [RRType.CNAME, true],
    [ALIAS_TYPE, true],
  ]
  for (const [type, want] of cases) {
    const one = shared({ site: 'east', targets: ['192.0.2.1'] })
    const rdata = type === RRType.A ? one.endpoint.rdata : [scanName('lb.example.')!]
    const reported = { ...one, endpoint: { ...one.endpoint, type, rdata } }
    const build = (own?: HealthCheck) =>
      buildSiteRecords(HOST, [reported], '', RecordSet.EMPTY, { check: own })[0]!.record
    t.strictSame(unpackRecord(build(check).packed).healthCheck, want ? check : undefined)
    t.equal(unpackRecord(build().packed).healthCheck, undefined)
  }
})
