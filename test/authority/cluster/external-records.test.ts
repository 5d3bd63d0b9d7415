import t from 'tap'
import { externalRecords } from '../../../src/authority/cluster/external-records.ts'
import { packService, packSlice } from '../../../src/authority/cluster/packed.ts'
import { printType } from '../../../src/dns/iana/index.ts'
import { printName, scanName } from '../../../src/dns/name/name.ts'
import { printRdata } from '../../../src/dns/rdata/index.ts'
import { printAddress } from '../../../src/dns/text/address.ts'
import type { ApiObject } from '../../../src/kube/api.ts'

interface Row {
  readonly name: string
  readonly spec: ApiObject
  /** `status.loadBalancer.ingress`. */
  readonly ingress?: readonly ApiObject[]
  readonly endpoints?: readonly ApiObject[]
  readonly isHeadless?: boolean
  /** `owner TYPE rdata`; `@` = web.shop.example.com. */
  readonly want: readonly string[]
  readonly pointers?: readonly string[]
}

const BASE = 'web.shop.example.com.'
const zone = scanName('example.com.')!
const ports = [{ name: 'http', protocol: 'TCP', port: 80 }]
const ONE = ['@ A 192.0.2.1', '@ SRV 0 100 80 @', '_http._tcp.@ SRV 0 100 80 @']
const endpoints = [{ addresses: ['10.1.0.1'], hostname: 'db-0' }, { addresses: ['10.1.0.2'] }]

const rows: readonly Row[] = [
  { name: 'no external address', spec: { clusterIPs: ['10.3.0.1'], ports }, want: [] },
  {
    name: 'an external address',
    spec: { clusterIPs: ['10.3.0.1'], externalIPs: ['192.0.2.1'], ports },
    want: ONE,
    pointers: ['192.0.2.1 @'],
  },
  {
    name: 'a load balancer',
    spec: { ports },
    ingress: [{ ip: '192.0.2.1', hostname: 'lb.example.net' }],
    want: ONE,
    pointers: ['192.0.2.1 @'],
  },
  {
    name: 'both, and one address twice',
    spec: { externalIPs: ['192.0.2.1', '2001:db8::1'], ports },
    ingress: [{ ip: '192.0.2.1' }],
    want: ['@ A 192.0.2.1', '@ AAAA 2001:db8::1', '@ SRV 0 33 80 @', '_http._tcp.@ SRV 0 33 80 @'],
    pointers: ['192.0.2.1 @', '2001:db8::1 @', '192.0.2.1 @'],
  },
  {
    name: 'a load balancer with a host name',
    spec: { ports },
    ingress: [{ hostname: 'LB.example.net' }],
    want: ['@ CNAME lb.example.net.', '_http._tcp.@ SRV 0 100 80 lb.example.net.'],
  },
  {
    name: 'two host names: one CNAME, both in SRV',
    spec: { ports },
    ingress: [{ hostname: 'b.example.net' }, { hostname: 'a.example.net.' }],
    want: [
      '@ CNAME a.example.net.',
      '_http._tcp.@ SRV 0 50 80 a.example.net.',
      '_http._tcp.@ SRV 0 50 80 b.example.net.',
    ],
  },
  {
    name: 'an address and a host name: no CNAME',
    spec: { externalIPs: ['192.0.2.1'], ports },
    ingress: [{ hostname: 'lb.example.net' }],
    want: [
      '@ A 192.0.2.1',
      '@ SRV 0 50 80 @',
      '@ SRV 0 50 80 lb.example.net.',
      '_http._tcp.@ SRV 0 50 80 @',
      '_http._tcp.@ SRV 0 50 80 lb.example.net.',
    ],
    pointers: ['192.0.2.1 @'],
  },
  {
    name: 'an address as host name is an address',
    spec: { ports },
    ingress: [{ hostname: '192.0.2.1' }],
    want: ONE,
    pointers: ['192.0.2.1 @'],
  },
  {
    name: 'what is neither address nor host name is left out',
    spec: { externalIPs: ['192.0.2.256', '', 'a..b', 7, '.', '*.example.net'], ports },
    ingress: [
      { ip: '192.0.2.1' },
      { hostname: `${'a'.repeat(64)}.net` },
      { hostname: `${'a'.repeat(500_000)}!` },
      { hostname: 'a b.net' },
      { hostname: 'a\\.b.net' },
      {},
    ],
    want: ONE,
    pointers: ['192.0.2.1 @'],
  },
  {
    name: 'nothing that can be used',
    spec: { externalIPs: ['300.1.1.1', ':::'], ports },
    ingress: [{ ip: 'x y' }],
    want: [],
  },
  {
    name: 'an address without ports',
    spec: { externalIPs: ['192.0.2.1'] },
    want: ['@ A 192.0.2.1'],
    pointers: ['192.0.2.1 @'],
  },
  { name: 'a headless Service', spec: { clusterIP: 'None', ports }, endpoints, want: [] },
  {
    name: 'a headless Service, if wanted',
    spec: { clusterIP: 'None', ports },
    endpoints,
    isHeadless: true,
    want: [
      '10-1-0-2.@ A 10.1.0.2',
      '@ A 10.1.0.1',
      '@ A 10.1.0.2',
      '@ SRV 0 50 80 10-1-0-2.@',
      '@ SRV 0 50 80 db-0.@',
      '_http._tcp.@ SRV 0 50 80 10-1-0-2.@',
      '_http._tcp.@ SRV 0 50 80 db-0.@',
      'db-0.@ A 10.1.0.1',
    ],
  },
  {
    name: 'external addresses of a headless Service take precedence',
    spec: { clusterIP: 'None', externalIPs: ['192.0.2.1'], ports },
    endpoints,
    isHeadless: true,
    want: ONE,
    pointers: ['192.0.2.1 @'],
  },
  {
    name: 'endpoints of other Services have no names',
    spec: { clusterIP: '10.3.0.1', ports },
    endpoints,
    isHeadless: true,
    want: [],
  },
]

const short = (text: string): string => text.replaceAll(BASE, '@')

t.test('records of a Service outside of its cluster', async (t) => {
  for (const { name, spec, ingress = [], endpoints = [], isHeadless = false, ...want } of rows) {
    const status = { loadBalancer: { ingress: [...ingress] } }
    const state = {
      namespace: 'shop',
      name: 'web',
      service: packService({ spec, status }),
      slices: [packSlice({ ports, endpoints: [...endpoints] })],
    }
    const options = { zone, podNames: false, headless: isHeadless }
    const { sets, pointers, endpoints: found } = externalRecords(state, options)
    const records = sets.flatMap(({ owner, type, rdata }) => {
      return rdata.map((octets) => {
        return short(`${printName(owner)} ${printType(type)} ${printRdata(type, octets)}`)
      })
    })
    t.strictSame(records.sort(), want.want, name)
    const leads = pointers.map(({ address: { bytes, family }, target }) => {
      return short(`${printAddress(bytes, family)} ${printName(target)}`)
    })
    t.strictSame(leads, want.pointers ?? [], `${name}: pointers`)
    t.equal(found.length, endpoints.length, `${name}: endpoints`)
  }
})

t.test('a status that is malformed', async (t) => {
  const state = { namespace: 'shop', name: 'web', slices: [] }
  for (const status of [7, {}, { loadBalancer: [] }, { loadBalancer: { ingress: [null, 1] } }]) {
    const service = packService({ spec: {}, status } as ApiObject)
    const options = { zone, podNames: false, headless: true }
    t.strictSame(externalRecords({ ...state, service }, options).sets, [])
  }
  t.strictSame(
    externalRecords(
      { ...state, name: 'a.b', service: packService({}) },
      {
        zone,
        podNames: false,
        headless: true,
      },
    ).sets,
    [],
  )
})
