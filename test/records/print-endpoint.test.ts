import t from 'tap'
import { type EndpointObject, printSteered } from '../../src/records/print-endpoint.ts'
import { validateEndpoint } from '../../src/records/validate/dns-record.ts'

const HOST = 'k.example.com'

function endpoint(recordType: string, targets: readonly string[]): EndpointObject {
  return { dnsName: HOST, recordType, targets, recordTTL: 60 }
}

/** Each as it prints. */
const SAME: readonly EndpointObject[] = [
  endpoint('A', ['192.0.2.1', '192.0.2.2']),
  endpoint('AAAA', ['2001:db8::1']),
  endpoint('CNAME', ['_x.k@y.example.net']),
  endpoint('NS', ['ns1.k.example.com']),
  endpoint('PTR', ['host.k.example.com']),
  endpoint('MX', ['10 mx1.k.example.com.']),
  endpoint('SRV', ['1 2 5060 sip.k.example.com.']),
  endpoint('CAA', ['0 issue "ca.example.net"']),
  endpoint('HTTPS', ['1 . alpn="h2" ipv4hint=192.0.2.1']),
  endpoint('TXT', ['v=spf1 -all', '"two" "strings"', '""', '"\\195\\169"', '"a\\"b\\\\"']),
  { ...endpoint('A', ['192.0.2.1']), dnsName: '*.k.example.com' },
  {
    ...endpoint('A', ['192.0.2.1']),
    setIdentifier: 'x',
    providerSpecific: [
      { name: 'weight', value: '0' },
      { name: 'geo-code', value: 'DE,GEO-EU' },
      { name: 'default', value: 'true' },
    ],
  },
  {
    ...endpoint('A', ['192.0.2.1']),
    setIdentifier: 'default',
    providerSpecific: [{ name: 'geo-code', value: 'GEO-EU' }],
  },
  { ...endpoint('A', ['192.0.2.1']), providerSpecific: [{ name: 'geo-code', value: '*' }] },
]

t.test('an endpoint prints as it would stand in a record, and reads back', async (t) => {
  for (const given of SAME) {
    const checked = validateEndpoint(JSON.parse(JSON.stringify(given)), HOST)
    if ('problem' in checked) throw new Error(checked.problem.message)
    t.strictSame(printSteered(checked.endpoint), given, given.recordType)
  }
})

t.test('an endpoint by itself is held to its root host', async (t) => {
  const given = { ...endpoint('A', ['192.0.2.1']), dnsName: 'evilk.example.com' } as const
  const object = JSON.parse(JSON.stringify(given))
  t.match(validateEndpoint(object, HOST), {
    problem: { message: /invalid endpoint/, path: ['dnsName'] },
  })
  t.match(validateEndpoint(object, 'nodots'), { problem: { message: /"nodots" is not a domain/ } })
  t.match(validateEndpoint(object, '*.example.com'), { endpoint: { type: 1 } })
})
