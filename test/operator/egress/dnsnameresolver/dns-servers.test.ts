import t from 'tap'
import { printHostPort } from '../../../../src/dns/host-port.ts'
import {
  serversOf,
  trimSlice,
} from '../../../../src/operator/egress/dnsnameresolver/dns-servers.ts'

const DNS = { name: 'dns', protocol: 'UDP', port: 5353 }
const slice = (
  addressType: string,
  endpoints: readonly object[],
  ports: readonly object[] = [DNS],
) => trimSlice({ metadata: { name: 's' }, addressType, endpoints, ports } as never)
const endpoint = (address: string, more: object = {}) => ({ addresses: [address], ...more })

const TABLE: { name: string; slices: ReturnType<typeof slice>[]; want: readonly string[] }[] = [
  { name: 'no slices', slices: [], want: [] },
  {
    name: 'ready, and of unknown state',
    slices: [
      slice('IPv4', [
        endpoint('10.0.0.1'),
        endpoint('10.0.0.2', { conditions: { ready: true } }),
        endpoint('10.0.0.3', { conditions: { ready: false } }),
        endpoint('10.0.0.4', { conditions: {} }),
      ]),
    ],
    want: ['10.0.0.1:5353', '10.0.0.2:5353', '10.0.0.4:5353'],
  },
  {
    name: 'a Pod with both families is asked once, by IPv4',
    slices: [
      slice('IPv6', [endpoint('fd00::1', { targetRef: { uid: 'a' } })]),
      slice('IPv4', [endpoint('10.0.0.1', { targetRef: { uid: 'a' } })]),
      slice('IPv6', [endpoint('fd00::2', { targetRef: { uid: 'b' } })]),
    ],
    want: ['10.0.0.1:5353', '[fd00::2]:5353'],
  },
  {
    name: 'the UDP port with the name dns, else the first UDP port',
    slices: [
      slice(
        'IPv4',
        [endpoint('10.0.0.1')],
        [
          { name: 'dns-tcp', protocol: 'TCP', port: 1 },
          { name: 'x', protocol: 'UDP', port: 2 },
          DNS,
        ],
      ),
      slice('IPv4', [endpoint('10.0.0.2')], [{ name: '', protocol: 'UDP', port: 53 }]),
      slice('IPv4', [endpoint('10.0.0.3')], [{ name: 'dns', protocol: 'TCP', port: 53 }]),
    ],
    want: ['10.0.0.1:5353', '10.0.0.2:53'],
  },
  {
    name: 'other kinds of endpoints, and parts that are missing',
    slices: [
      slice('FQDN', [endpoint('dns.example.com')]),
      slice('IPv4', [{}, endpoint('10.0.0.1')]),
      trimSlice({ addressType: 'IPv4', endpoints: null, ports: null }),
    ],
    want: ['10.0.0.1:5353'],
  },
]

t.test('the servers of EndpointSlices', async (t) => {
  for (const { name, slices, want } of TABLE) {
    t.strictSame(serversOf(slices).map(printHostPort), want, name)
  }
})
