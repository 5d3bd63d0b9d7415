import t from 'tap'
import { printLocalEndpoints } from '../../../src/operator/record/endpoint-text.ts'
import { deriveLocalEndpoints } from '../../../src/records/kdrnt.ts'
import type { EndpointObject } from '../../../src/records/print-endpoint.ts'
import { composeStrings } from '../../../src/records/validate/target.ts'
import { dnsRecord } from '../../peering/records.ts'

const HOST = 'k.example.com'

function endpoint(recordType: string, targets: readonly string[]): EndpointObject {
  return { dnsName: HOST, recordType, targets, recordTTL: 60 }
}

t.test('a local form that is written into a record is served as it was derived', async (t) => {
  const weighted = { setIdentifier: 'a', providerSpecific: [{ name: 'weight', value: '7' }] }
  const endpoints = [
    { ...endpoint('A', ['192.0.2.1']), ...weighted },
    { ...endpoint('A', ['192.0.2.2']), ...weighted, setIdentifier: 'b' },
    endpoint('TXT', ['plain', '"two" "strings"', '"\\255"', 'é']),
    { ...endpoint('CNAME', ['lb.example.net']), dnsName: `x.${HOST}` },
  ]
  const exported = ['v=2', '"quoted"', 'é'].map((text) => {
    return composeStrings([Buffer.from('v=2'), Buffer.from(text), new Uint8Array(0)]) as Uint8Array
  })
  // An endpoint may have 256 targets, and a TXT record more strings.
  const strings = Array.from({ length: 300 }, (_, i) => Buffer.from(`target=198.51.100.${i % 256}`))
  exported.push(composeStrings(strings) as Uint8Array)
  const derived = deriveLocalEndpoints(dnsRecord({ rootHost: HOST, endpoints }), exported)
  const printed = printLocalEndpoints(derived)
  const labels = { 'kuadrant.io/type': 'local', 'kuadrant.io/coredns-zone-name': 'kdrnt' }
  const local = dnsRecord({
    rootHost: `${HOST}.kdrnt`,
    endpoints: printed as unknown as EndpointObject[],
    labels,
  })
  const flat = (list: typeof derived) =>
    list
      .flatMap(({ rdata, ...e }) => rdata.map((r) => [e.owner, e.type, e.ttlSeconds, r]))
      .map(String)
  t.strictSame(flat(local.endpoints).sort(), flat(derived).sort())
})
