import t from 'tap'
import { NO_DRAINS } from '../../src/health/drain/drain.ts'
import { compareServed, type ServedContent } from '../../src/health/served-addresses.ts'
import { packRecord } from '../../src/records/pack.ts'
import { validateResource } from '../../src/records/validate/resource.ts'

interface Given {
  /** `dnsName type target,target [weight]`, each. */
  readonly endpoints: readonly string[]
  readonly down?: readonly string[]
}

function recordOf({ endpoints, down = [] }: Given): ServedContent {
  const resource = validateResource({
    apiVersion: 'kuadrant.io/v1alpha1',
    kind: 'DNSRecord',
    metadata: { name: 'app' },
    spec: {
      rootHost: 'app.k.test',
      endpoints: endpoints.map((text, i) => {
        const [dnsName = '', recordType = '', targets = '', weight] = text.split(' ')
        return {
          dnsName,
          recordType,
          targets: targets.split(','),
          setIdentifier: weight === undefined ? '' : `${i}`,
          providerSpecific: weight === undefined ? [] : [{ name: 'weight', value: weight }],
        }
      }),
    },
  })
  if (resource.kind !== 'record') throw new Error(JSON.stringify(resource))
  return { packed: packRecord(resource.record), down, drains: NO_DRAINS }
}

for (const { name, given, want } of [
  {
    name: 'addresses of both families, in canonical form',
    given: { endpoints: ['app.k.test A 192.0.2.1,192.0.2.2', 'app.k.test AAAA 2001:DB8:0:0::1'] },
    want: ['192.0.2.1', '192.0.2.2', '2001:db8::1'],
  },
  {
    name: 'a CNAME within the record stands for what it leads to',
    given: {
      endpoints: [
        'app.k.test CNAME one.app.k.test 10',
        'app.k.test CNAME LB.example.net 20',
        'one.app.k.test A 192.0.2.1',
      ],
    },
    want: ['192.0.2.1', 'lb.example.net'],
  },
  {
    name: 'what is down is not served, however it is written',
    given: {
      endpoints: [
        'app.k.test CNAME a.example.net 10',
        'app.k.test CNAME b.example.net 10',
        'one.app.k.test A 192.0.2.1,192.0.2.2',
        'one.app.k.test AAAA 2001:db8::1',
      ],
      down: ['192.0.2.2', '2001:0db8::0001', 'B.example.net'],
    },
    want: ['192.0.2.1', 'a.example.net'],
  },
  {
    name: 'text is no address',
    given: { endpoints: ['app.k.test TXT 192.0.2.1'] },
    want: [],
  },
]) {
  t.test(name, async (t) => {
    t.strictSame([...compareServed(recordOf(given), recordOf(given)).are].sort(), want)
  })
}

t.test('down addresses are compared in the same form', async (t) => {
  const down = ['2001:0DB8::0001', 'B.example.net', 'no name at all']
  const record = recordOf({ endpoints: ['app.k.test A 192.0.2.1'], down })
  const { wereOut } = compareServed(record, record)
  t.strictSame([...wereOut], ['2001:db8::1', 'b.example.net', 'no name at all'])
})

t.test('an address that no CNAME leads to any more is not served', async (t) => {
  const east = 'east.app.k.test A 192.0.2.1'
  const west = ['app.k.test CNAME west.app.k.test 10', 'west.app.k.test A 192.0.2.2']
  const without = recordOf({ endpoints: [east, ...west] })
  const whole = recordOf({ endpoints: ['app.k.test CNAME east.app.k.test 10', east, ...west] })
  const { were, are, isWeighted } = compareServed(without, whole)
  t.strictSame([...were], ['192.0.2.2'])
  t.strictSame([...are].sort(), ['192.0.2.1', '192.0.2.2'])
  t.equal(isWeighted, true)
  t.strictSame([...compareServed(whole, without).are], ['192.0.2.2'])
})

t.test('weights are those after the change', async (t) => {
  const plain = recordOf({ endpoints: ['app.k.test A 192.0.2.1'] })
  const weighted = recordOf({ endpoints: ['app.k.test A 192.0.2.1 10'] })
  t.equal(compareServed(weighted, plain).isWeighted, false)
  t.equal(compareServed(plain, weighted).isWeighted, true)
})

t.test('CNAMEs in a circle end', async (t) => {
  const endpoints = ['app.k.test CNAME a.app.k.test', 'a.app.k.test CNAME b.app.k.test']
  const circle = recordOf({ endpoints: [...endpoints, 'b.app.k.test CNAME a.app.k.test'] })
  t.equal(compareServed(circle, circle).are.size, 0)
})
