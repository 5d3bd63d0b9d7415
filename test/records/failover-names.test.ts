import t from 'tap'
import { RRType } from '../../src/dns/iana/types.ts'
import type { Endpoint } from '../../src/records/dns-record.ts'
import { idleLines } from '../../src/records/failover-names.ts'
import { validateResource } from '../../src/records/validate/resource.ts'

/** Endpoints as `OWNER CODE`, or `OWNER` without a code. */
const TABLE: readonly {
  name: string
  failover: string
  endpoints: readonly string[]
  want: string
}[] = [
  { name: 'a list of two codes', failover: 'IE: FR', endpoints: ['a IE', 'a FR'], want: '' },
  { name: 'only the code is there', failover: 'IE: FR', endpoints: ['a IE'], want: '' },
  { name: 'only the entry is there', failover: 'IE: FR', endpoints: ['a FR'], want: '' },
  { name: 'a set identifier', failover: 'IE: id0', endpoints: ['a'], want: '' },
  { name: 'another name has the codes', failover: 'IE: FR', endpoints: ['a', 'b IE'], want: '' },
  { name: 'no codes', failover: 'IE: FR', endpoints: ['a'], want: 'IE' },
  { name: 'of two names', failover: 'IE: FR\nES: PT', endpoints: ['a', 'b'], want: 'IE, ES' },
  { name: 'a code is in the record', failover: 'IE: FR', endpoints: ['a', 'b US'], want: '' },
  { name: 'a default', failover: 'IE: FR', endpoints: ['a *'], want: 'IE' },
  { name: 'one of two lists', failover: '*: id0\nUS: CA', endpoints: ['a', 'b'], want: 'US' },
]

t.test('failover lists without an effect', (t) => {
  for (const { name, failover, endpoints, want } of TABLE) {
    const given = endpoints.map((text, i) => {
      const [owner, code] = text.split(' ')
      const providerSpecific = code === undefined ? [] : [{ name: 'geo-code', value: code }]
      const dnsName = `${owner}.k.example.com`
      const rest = { recordType: 'A', targets: [`192.0.2.${i + 1}`], setIdentifier: `id${i}` }
      return { dnsName, ...rest, providerSpecific }
    })
    const resource = validateResource({
      apiVersion: 'kuadrant.io/v1alpha1',
      kind: 'DNSRecord',
      metadata: { name: 'a', annotations: { 'sextant.io/failover': failover } },
      spec: { rootHost: 'k.example.com', endpoints: given },
    })
    if (resource.kind !== 'record') return t.fail(JSON.stringify(resource))
    const codes = idleLines(resource.record).map(({ code }) => code)
    t.equal(codes.join(', '), want, name)
  }
  t.end()
})

t.test('lists are not compared with each name', (t) => {
  const endpoints = Array.from({ length: 100_000 }, (_, i): Endpoint => {
    const owner = Buffer.from(`\x08${String(i).padStart(8, '0')}\0`)
    const rest = { ttlSeconds: 60, rdata: [], setIdentifier: '', weight: undefined }
    return { owner, type: RRType.A, ...rest, codes: [], isDefault: false }
  })
  const failover = Array.from({ length: 60 }, (_, i) => {
    return { code: `AS${i + 1}`, entries: ['a', 'b', 'c'] }
  })
  const started = process.cpuUsage()
  t.equal(idleLines({ endpoints, settings: { failover } }).length, 60)
  t.ok(process.cpuUsage(started).user < 3_000_000, 'milliseconds, not ten seconds')
  t.end()
})
