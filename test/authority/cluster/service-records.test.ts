import t from 'tap'
import { packService, packSlice } from '../../../src/authority/cluster/packed.ts'
import { serviceRecords } from '../../../src/authority/cluster/service-records.ts'
import { printType } from '../../../src/dns/iana/index.ts'
import { printName, scanName } from '../../../src/dns/name/name.ts'
import { printRdata } from '../../../src/dns/rdata/index.ts'
import { printAddress } from '../../../src/dns/text/address.ts'
import type { ApiObject } from '../../../src/kube/api.ts'

interface Row {
  readonly name: string
  readonly spec: ApiObject
  readonly slices?: readonly ApiObject[]
  readonly podNames?: boolean
  readonly ignoresEmpty?: boolean
  /** `owner TYPE rdata`; `@` = web.shop.svc.cluster.local. */
  readonly want: readonly string[]
  /** `address target`, with `@` as above. */
  readonly pointers?: readonly string[]
}

const BASE = 'web.shop.svc.cluster.local.'
const zone = scanName('cluster.local.')!

const HTTP = { name: 'http', protocol: 'TCP', port: 80 }
const DNS_UDP = { name: 'dns', protocol: 'UDP', port: 53 }
const ready = { conditions: { ready: true } }
const unready = { conditions: { ready: false } }
const headless = (more: ApiObject = {}): ApiObject => ({
  type: 'ClusterIP',
  clusterIP: 'None',
  clusterIPs: ['None'],
  ports: [HTTP],
  ...more,
})

const rows: readonly Row[] = [
  {
    name: 'a cluster IP with a named and an unnamed port',
    spec: {
      type: 'ClusterIP',
      clusterIP: '10.3.0.1',
      clusterIPs: ['10.3.0.1'],
      ports: [HTTP, { protocol: 'TCP', port: 81 }],
    },
    want: ['@ A 10.3.0.1', '@ SRV 0 50 80 @', '@ SRV 0 50 81 @', '_http._tcp.@ SRV 0 100 80 @'],
    pointers: ['10.3.0.1 @'],
  },
  {
    name: 'a cluster IP without clusterIPs, as old servers send it, and upper-case port names',
    spec: { clusterIP: '10.3.0.1', ports: [{ ...DNS_UDP, name: 'DNS' }] },
    want: ['@ A 10.3.0.1', '@ SRV 0 100 53 @', '_dns._udp.@ SRV 0 100 53 @'],
  },
  {
    name: 'dual stack',
    spec: { clusterIPs: ['10.3.0.1', 'fd00::1'], ports: [HTTP] },
    want: ['@ A 10.3.0.1', '@ AAAA fd00::1', '@ SRV 0 50 80 @', '_http._tcp.@ SRV 0 50 80 @'],
    pointers: ['10.3.0.1 @', 'fd00::1 @'],
  },
  {
    name: 'no ports and external addresses, which are not names of the cluster',
    spec: { clusterIPs: ['10.3.0.1'], externalIPs: ['192.0.2.1'], type: 'LoadBalancer' },
    want: ['@ A 10.3.0.1'],
  },
  {
    name: 'endpoints of a cluster IP have names too',
    spec: { clusterIPs: ['10.3.0.1'] },
    slices: [{ ports: [HTTP], endpoints: [{ addresses: ['10.1.0.1'], ...ready }] }],
    want: ['10-1-0-1.@ A 10.1.0.1', '@ A 10.3.0.1'],
    pointers: ['10.3.0.1 @', '10.1.0.1 10-1-0-1.@'],
  },
  {
    name: 'a cluster IP without ready endpoints is ignored if wanted',
    spec: { clusterIPs: ['10.3.0.1'] },
    slices: [{ ports: [HTTP], endpoints: [{ addresses: ['10.1.0.1'], ...unready }] }],
    ignoresEmpty: true,
    want: [],
    pointers: ['10.3.0.1 @'],
  },
  {
    name: 'headless, with and without hostname',
    spec: headless(),
    slices: [
      {
        ports: [HTTP],
        endpoints: [
          { addresses: ['10.1.0.1'], hostname: 'my-pet', ...ready },
          { addresses: ['10.1.0.2'] },
        ],
      },
    ],
    want: [
      '10-1-0-2.@ A 10.1.0.2',
      '@ A 10.1.0.1',
      '@ A 10.1.0.2',
      '@ SRV 0 50 80 10-1-0-2.@',
      '@ SRV 0 50 80 my-pet.@',
      '_http._tcp.@ SRV 0 50 80 10-1-0-2.@',
      '_http._tcp.@ SRV 0 50 80 my-pet.@',
      'my-pet.@ A 10.1.0.1',
    ],
    pointers: ['10.1.0.1 my-pet.@', '10.1.0.2 10-1-0-2.@'],
  },
  {
    name: 'headless, several addresses with one hostname',
    spec: headless({ ports: [] }),
    slices: [
      {
        endpoints: [
          { addresses: ['10.1.0.1'], hostname: 'a', ...ready },
          { addresses: ['10.1.0.2'], hostname: 'a', ...ready },
        ],
      },
    ],
    want: ['@ A 10.1.0.1', '@ A 10.1.0.2', 'a.@ A 10.1.0.1', 'a.@ A 10.1.0.2'],
  },
  {
    name: 'headless, one address in two slices',
    spec: headless(),
    slices: [
      { ports: [HTTP], endpoints: [{ addresses: ['10.1.0.1'], hostname: 'a' }] },
      { ports: [DNS_UDP], endpoints: [{ addresses: ['10.1.0.1'], hostname: 'a' }] },
    ],
    want: [
      '@ A 10.1.0.1',
      '@ SRV 0 50 53 a.@',
      '@ SRV 0 50 80 a.@',
      '_dns._udp.@ SRV 0 100 53 a.@',
      '_http._tcp.@ SRV 0 100 80 a.@',
      'a.@ A 10.1.0.1',
    ],
  },
  {
    name: 'headless, dual stack',
    spec: headless({ ports: [] }),
    slices: [
      { endpoints: [{ addresses: ['10.1.0.1'], ...ready }] },
      { endpoints: [{ addresses: ['fd00::1:0:0'], ...ready }] },
      { endpoints: [{ addresses: ['fd00::'], ...ready }] },
    ],
    want: [
      '10-1-0-1.@ A 10.1.0.1',
      '@ A 10.1.0.1',
      '@ AAAA fd00::',
      '@ AAAA fd00::1:0:0',
      'fd00--0.@ AAAA fd00::',
      'fd00--1-0-0.@ AAAA fd00::1:0:0',
    ],
  },
  {
    name: 'an endpoint without a known state is ready, one that is not is left out',
    spec: headless({ ports: [] }),
    slices: [
      {
        endpoints: [
          { addresses: ['10.1.0.1'], hostname: 'a', conditions: {} },
          { addresses: ['10.1.0.2'], hostname: 'b', ...unready },
        ],
      },
    ],
    want: ['@ A 10.1.0.1', 'a.@ A 10.1.0.1'],
    pointers: ['10.1.0.1 a.@'],
  },
  {
    name: 'publishNotReadyAddresses',
    spec: headless({ ports: [], publishNotReadyAddresses: true }),
    slices: [{ endpoints: [{ addresses: ['10.1.0.2'], hostname: 'b', ...unready }] }],
    want: ['@ A 10.1.0.2', 'b.@ A 10.1.0.2'],
  },
  {
    name: 'names of Pods, if they are labels',
    spec: headless({ ports: [] }),
    podNames: true,
    slices: [
      {
        endpoints: [
          { addresses: ['10.1.0.1'], targetRef: { kind: 'Pod', name: 'web-0' } },
          { addresses: ['10.1.0.2'], targetRef: { kind: 'Pod', name: 'web.node' } },
          { addresses: ['10.1.0.3'], targetRef: { kind: 'Pod', name: 'w'.repeat(64) } },
          { addresses: ['10.1.0.4'], hostname: 'h', targetRef: { kind: 'Pod', name: 'x' } },
          { addresses: ['10.1.0.5'], targetRef: { kind: 'Node', name: 'x' } },
        ],
      },
    ],
    want: [
      '10-1-0-2.@ A 10.1.0.2',
      '10-1-0-3.@ A 10.1.0.3',
      '10-1-0-5.@ A 10.1.0.5',
      '@ A 10.1.0.1',
      '@ A 10.1.0.2',
      '@ A 10.1.0.3',
      '@ A 10.1.0.4',
      '@ A 10.1.0.5',
      'h.@ A 10.1.0.4',
      'web-0.@ A 10.1.0.1',
    ],
  },
  { name: 'headless without endpoints', spec: headless(), want: [], pointers: [] },
  {
    name: 'an external name, whatever its ports',
    spec: { type: 'ExternalName', externalName: 'WWW.example.com', ports: [HTTP] },
    want: ['@ CNAME www.example.com.'],
    pointers: [],
  },
  {
    name: 'an external name that is an address',
    spec: { type: 'ExternalName', externalName: '192.0.2.1' },
    want: [],
  },
  {
    name: 'invalid content',
    spec: headless({ ports: [{ name: 'a b', port: 70_000 }, 'x', { port: 'http' }, null] }),
    slices: [
      {
        ports: [{ name: 'x.y', port: 80, protocol: 'TCP' }],
        endpoints: [
          { addresses: ['300.1.0.1', 7, 'www.example.com'] },
          { addresses: ['10.1.0.1'], hostname: 'a.b' },
          { addresses: 'none' },
          null,
          { addresses: ['10.1.0.2'], hostname: 'b' },
        ],
      },
    ],
    want: ['@ A 10.1.0.2', '@ SRV 0 100 80 b.@', 'b.@ A 10.1.0.2'],
  },
]

for (const { name, spec, slices = [], podNames = false, ignoresEmpty = false, ...row } of rows) {
  t.test(name, async (t) => {
    const state = {
      namespace: 'shop',
      name: 'web',
      service: packService({ spec }),
      slices: slices.map(packSlice),
    }
    const { sets, pointers } = serviceRecords(state, { zone, podNames, ignoresEmpty })
    const short = (text: string) => text.replaceAll(BASE, '@')
    const lines = sets.flatMap(({ owner, type, rdata }) => {
      return rdata.map(
        (octets) => `${printName(owner)} ${printType(type)} ${printRdata(type, octets)}`,
      )
    })
    t.strictSame(lines.map(short).sort(), [...row.want].sort())
    if (row.pointers === undefined) return
    const pointed = pointers.map(({ address, target }) => {
      return `${printAddress(address.bytes, address.family)} ${printName(target)}`
    })
    t.strictSame(pointed.map(short), row.pointers)
  })
}
