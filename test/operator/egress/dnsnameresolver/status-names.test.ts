import t from 'tap'
import type { ApiObject } from '../../../../src/kube/api.ts'
import {
  readStatusNames,
  withoutRemoved,
} from '../../../../src/operator/egress/dnsnameresolver/status-names.ts'

const TIME = '2026-01-01T00:00:00Z'
const MS = Date.parse(TIME)
const timed = (ip: string, ttlSeconds: number) => ({ ip, ttlSeconds, lastLookupTime: TIME })
const RESOLVER: ApiObject = {
  status: {
    resolvedNames: [
      {
        dnsName: 'a.example.com.',
        resolvedAddresses: [timed('192.0.2.1', 30), timed('2001:db8::1', 60)],
        resolutionFailures: 2,
        conditions: [{ type: 'Degraded', status: 'True' }],
        future: { field: 1 },
      },
      { dnsName: 'b.example.com.', resolvedAddresses: [timed('192.0.2.1', 30)] },
    ],
    more: 'kept',
  },
}
const DRAFT: ApiObject = {
  status: {
    resolvedNames: [
      { dnsName: 'a.example.com.', ips: ['192.0.2.1', '192.0.2.2'], ttl: 30, lastLookupTime: TIME },
    ],
  },
}

const removal = (addresses: Record<string, readonly string[]>, ...names: readonly string[]) => ({
  addresses: new Map(Object.entries(addresses).map(([name, ips]) => [name, new Set(ips)])),
  names: new Set(names),
  unanswered: 0,
  nextMs: 0,
})

t.test('both forms are read', async (t) => {
  t.strictSame(readStatusNames(RESOLVER), [
    {
      dnsName: 'a.example.com.',
      addresses: [
        { ip: '192.0.2.1', endMs: MS + 30_000 },
        { ip: '2001:db8::1', endMs: MS + 60_000 },
      ],
    },
    { dnsName: 'b.example.com.', addresses: [{ ip: '192.0.2.1', endMs: MS + 30_000 }] },
  ])
  t.strictSame(readStatusNames(DRAFT), [
    {
      dnsName: 'a.example.com.',
      addresses: [
        { ip: '192.0.2.1', endMs: MS + 30_000 },
        { ip: '192.0.2.2', endMs: MS + 30_000 },
      ],
    },
  ])
})

t.test('times and TTLs that are none have ended; TTLs are bounded', async (t) => {
  const read = (ttlSeconds: unknown, lastLookupTime: unknown) => {
    const resolvedAddresses = [{ ip: '192.0.2.1', ttlSeconds, lastLookupTime }]
    const status = { resolvedNames: [{ dnsName: 'a.', resolvedAddresses }] }
    return readStatusNames({ status } as ApiObject)[0]!.addresses[0]!.endMs
  }
  t.equal(read(30, 'soon'), 0)
  t.equal(read(30, undefined), 0)
  t.equal(read('30', TIME), MS)
  t.equal(read(-30, TIME), MS)
  t.equal(read(2 ** 31, TIME), MS + 7 * 24 * 3_600_000)
  for (const status of [
    undefined,
    null,
    {},
    { resolvedNames: 'x' },
    { resolvedNames: [1, null] },
  ]) {
    t.strictSame(readStatusNames({ status } as ApiObject), [])
  }
})

t.test('dead addresses and names are left out, all else is kept', async (t) => {
  const { resolvedNames } = RESOLVER.status as { resolvedNames: readonly ApiObject[] }
  t.strictSame(withoutRemoved(RESOLVER, removal({ 'a.example.com.': ['192.0.2.1'] })), [
    { ...resolvedNames[0], resolvedAddresses: [timed('2001:db8::1', 60)] },
    resolvedNames[1],
  ])
  const all = { 'b.example.com.': ['192.0.2.1'] }
  t.strictSame(withoutRemoved(RESOLVER, removal(all)), [
    resolvedNames[0],
    { dnsName: 'b.example.com.', resolvedAddresses: [] },
  ])
  t.strictSame(withoutRemoved(RESOLVER, removal(all, 'b.example.com.')), [resolvedNames[0]])
  t.strictSame(withoutRemoved(DRAFT, removal({ 'a.example.com.': ['192.0.2.1', '192.0.2.2'] })), [
    { dnsName: 'a.example.com.', ips: [], ttl: 30, lastLookupTime: TIME },
  ])
})
