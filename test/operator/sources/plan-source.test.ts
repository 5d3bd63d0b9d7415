import t from 'tap'
import { type ApiObject, isObject } from '../../../src/kube/api.ts'
import { DnsRecordView } from '../../../src/operator/record/record-view.ts'
import {
  documentOf,
  planUnwanted,
  planWanted,
  sourceOf,
} from '../../../src/operator/sources/plan-source.ts'
import { recordDocument } from '../../../src/records/record-document.ts'

const OF = { apiVersion: 'v1', kind: 'Service', namespace: 'a', name: 'web', uid: 'uid-1' }
const HOST = 'shop.k.example.com'
const HEALTH = { protocol: 'HTTP', port: 80, path: '/ready' }
const DOCUMENT = recordDocument(
  { name: 'web-service-1', namespace: 'a', annotations: { 'sextant.io/sticky': 'true' } },
  {
    rootHost: HOST,
    endpoints: [{ dnsName: HOST, recordType: 'A', targets: ['192.0.2.1'] }],
    healthCheck: HEALTH,
  },
)
const WANTED = { word: 'service', of: OF, document: DOCUMENT }
const PLAIN = { ...WANTED, document: recordDocument({ name: 'web-service-1' }, DOCUMENT.spec) }

/** What was created for WANTED, as the API has it, with changes. */
function existing(change: { metadata?: ApiObject; spec?: ApiObject } = {}): DnsRecordView {
  const write = planWanted(WANTED, undefined)
  if (write.kind !== 'create') throw new Error(write.kind)
  const { metadata, spec } = write.object
  if (!isObject(metadata) || !isObject(spec)) throw new Error('no mapping')
  return new DnsRecordView({
    ...write.object,
    metadata: { ...metadata, uid: 'uid-2', resourceVersion: '7', ...change.metadata },
    spec: {
      ...spec,
      // The API server adds defaults.
      healthCheck: { ...HEALTH, failureThreshold: 5, interval: '5m' },
      ...change.spec,
    },
  })
}

const OWNER = { apiVersion: 'v1', kind: 'Service', name: 'web', uid: 'uid-1' }
const DELETE = { kind: 'delete', uid: 'uid-2', resourceVersion: '7' }

const CASES: readonly {
  name: string
  change?: { metadata?: ApiObject; spec?: ApiObject }
  wanted?: typeof WANTED
  write: object
}[] = [
  { name: 'in place', write: { kind: 'none' } },
  {
    name: 'annotations, labels and finalizers of others stay',
    change: {
      metadata: {
        annotations: { 'sextant.io/sticky': 'true', other: 'x' },
        labels: { 'sextant.io/source': 'service', team: 'x' },
        finalizers: ['kuadrant.io/dns-record'],
      },
    },
    write: { kind: 'none' },
  },
  {
    name: 'an edited target, and a provider',
    change: {
      spec: {
        endpoints: [{ dnsName: HOST, recordType: 'A', targets: ['192.0.2.9'] }],
        providerRef: { name: 'other' },
      },
    },
    write: {
      kind: 'patch',
      patch: {
        metadata: { uid: 'uid-2' },
        spec: { providerRef: null, endpoints: DOCUMENT.spec.endpoints },
      },
    },
  },
  {
    name: 'an edited health check',
    change: { spec: { healthCheck: { ...HEALTH, port: 81, failureThreshold: 9, interval: '5m' } } },
    write: {
      kind: 'patch',
      patch: {
        metadata: { uid: 'uid-2' },
        spec: { healthCheck: { failureThreshold: 5, port: 80 } },
      },
    },
  },
  {
    name: 'a removed health check',
    change: { spec: { healthCheck: null } },
    write: {
      kind: 'patch',
      patch: {
        metadata: { uid: 'uid-2' },
        spec: { healthCheck: { ...HEALTH, failureThreshold: 5, interval: '5m' } },
      },
    },
  },
  {
    name: 'another setting, and one that the object does not have',
    change: {
      metadata: { annotations: { 'sextant.io/sticky': 'false', 'sextant.io/drain': 'by hand' } },
    },
    write: {
      kind: 'patch',
      patch: {
        metadata: {
          uid: 'uid-2',
          annotations: { 'sextant.io/sticky': 'true', 'sextant.io/drain': null },
        },
      },
    },
  },
  {
    name: 'the object has lost its setting',
    wanted: PLAIN,
    write: {
      kind: 'patch',
      patch: { metadata: { uid: 'uid-2', annotations: { 'sextant.io/sticky': null } } },
    },
  },
  {
    name: 'an object of the same name with another uid',
    change: { metadata: { ownerReferences: [{ ...OWNER, uid: 'uid-0' }] } },
    write: {
      kind: 'patch',
      patch: { metadata: { uid: 'uid-2', ownerReferences: [OWNER] } },
    },
  },
  {
    name: 'without our label it is not ours',
    change: { metadata: { labels: {} } },
    write: { kind: 'foreign' },
  },
  {
    name: 'of another kind it is not ours',
    change: { metadata: { labels: { 'sextant.io/source': 'ingress' } } },
    write: { kind: 'foreign' },
  },
  {
    name: 'of another object it is not ours',
    change: { metadata: { ownerReferences: [{ ...OWNER, name: 'other' }] } },
    write: { kind: 'foreign' },
  },
  {
    name: 'it is being deleted: written again when it is gone',
    change: { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } },
    write: { kind: 'none' },
  },
  {
    name: 'the root host is immutable',
    change: { spec: { rootHost: 'other.k.example.com' } },
    write: DELETE,
  },
]

for (const { name, change, wanted = WANTED, write } of CASES) {
  t.test(name, async (t) => {
    t.strictSame(planWanted(wanted, existing(change)), write)
  })
}

t.test('a DNSRecord that is not wanted', async (t) => {
  t.strictSame(planUnwanted(existing()), DELETE)
  const deleting = existing({ metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } })
  t.strictSame(planUnwanted(deleting), { kind: 'none' })
})

t.test('the object that a DNSRecord was written for', async (t) => {
  const kindOf = (word: string) => (word === 'service' ? 'Service' : undefined)
  t.strictSame(sourceOf(existing(), kindOf), { word: 'service', name: 'web', uid: 'uid-1' })
  t.equal(sourceOf(existing({ metadata: { labels: {} } }), kindOf), undefined)
  t.equal(sourceOf(existing({ metadata: { ownerReferences: [] } }), kindOf), undefined)
  const unknown = existing({ metadata: { labels: { 'sextant.io/source': 'other' } } })
  t.equal(sourceOf(unknown, kindOf), undefined)
})

t.test('the document of a DNSRecord is in place', async (t) => {
  const record = existing({ metadata: { annotations: { 'sextant.io/sticky': 'true', x: 'y' } } })
  t.strictSame(planWanted({ ...WANTED, document: documentOf(record) }, record), { kind: 'none' })
})
