import t from 'tap'
import { RRType } from '../../src/dns/iana/types.ts'
import { packRecord, unpackNames, unpackRecord } from '../../src/records/pack.ts'
import { lowerNameKey } from '../../src/records/validate/names.ts'
import { dnsRecord } from '../peering/records.ts'

const HOST = 'k.example.com'
const A = { dnsName: HOST, recordType: 'A', recordTTL: 60, targets: ['192.0.2.1', '192.0.2.2'] }
const CNAME = { ...A, recordType: 'CNAME', targets: [`T.${HOST}`] }
const properties = (pairs: Record<string, string>) => ({
  providerSpecific: Object.entries(pairs).map(([name, value]) => ({ name, value })),
})

t.test('names are read from a packed record as from the whole', async (t) => {
  for (const [name, endpoints, annotations = {}] of [
    ['none', []],
    ['addresses', [A, { ...A, dnsName: `a.${HOST}` }]],
    ['a CNAME', [CNAME, { ...A, dnsName: `t.${HOST}` }]],
    ['every field', [{ ...CNAME, setIdentifier: 'é', ...properties({ weight: '3' }) }, A]],
    ['codes', [{ ...CNAME, ...properties({ 'geo-code': 'GEO-EU,US', default: 'true' }) }, A]],
    ['a place', [{ ...CNAME, ...properties({ location: '53.3,-6.2' }) }, CNAME]],
    ['a probe', [{ ...A, ...properties({ 'health-port': '80' }) }, CNAME]],
    ['settings', [CNAME, A], { 'sextant.io/all-down': 'closed' }],
  ] as const) {
    const packed = packRecord(dnsRecord({ rootHost: HOST, endpoints, annotations }))
    const whole = unpackRecord(packed).endpoints
    const cnames = whole.flatMap(({ type, rdata }, i) => {
      return type === RRType.CNAME ? rdata.map((target) => [lowerNameKey(target), i]) : []
    })
    const owners = whole.map(({ owner }) => lowerNameKey(owner))
    t.strictSame(unpackNames(packed), { owners, cnames }, name)
    t.equal(cnames.length, endpoints.filter(({ recordType }) => recordType === 'CNAME').length)
  }
})
