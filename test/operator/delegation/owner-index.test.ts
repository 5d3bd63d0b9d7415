import t from 'tap'
import type { ApiObject } from '../../../src/kube/api.ts'
import type { InformerListener } from '../../../src/kube/informer.ts'
import { OwnerIndex } from '../../../src/operator/delegation/owner-index.ts'
import { DnsRecordView } from '../../../src/operator/record/record-view.ts'
import { AUTHORITATIVE } from '../../support/delegation-fixture.ts'
import { dnsRecord } from '../../support/operator-objects.ts'

/** The records of a cluster, which the test changes. */
class ToyRecords {
  readonly #records = new Map<string, ApiObject>()
  #listener: InformerListener = {}

  subscribe(listener: InformerListener): () => void {
    this.#listener = listener
    return () => {
      this.#listener = {}
    }
  }

  objects(): Iterable<ApiObject> {
    return this.#records.values()
  }

  put(key: string, record: ApiObject): void {
    const before = this.#records.get(key)
    this.#records.set(key, record)
    if (before === undefined) this.#listener.onAdd?.(key, record, false)
    else this.#listener.onUpdate?.(key, record, before, false)
  }

  delete(key: string): void {
    const before = this.#records.get(key)!
    this.#records.delete(key)
    this.#listener.onDelete?.(key, before)
  }
}

interface Parts {
  readonly uid: string
  readonly second?: number
  readonly spec?: ApiObject
}

function record({ uid, second = 0, spec = {} }: Parts): ApiObject {
  const metadata = { creationTimestamp: `2026-01-01T00:00:0${second}Z` }
  return dnsRecord({ uid, metadata, spec: { delegate: true, ownerID: 'the-same', ...spec } })
}

t.test('of several records with one owner id, the oldest one is the owner', async (t) => {
  const table = [
    { name: 'an older one', other: record({ uid: 'b' }), rival: 'a/app of cluster boston' },
    { name: 'a younger one', other: record({ uid: 'b', second: 2 }), rival: '' },
    {
      name: 'one as old, of a lower UID',
      other: record({ uid: 'A', second: 1 }),
      rival: 'a/app of cluster boston',
    },
    { name: 'one as old, of a higher UID', other: record({ uid: 'z', second: 1 }), rival: '' },
    {
      name: 'another owner id',
      other: record({ uid: 'b', spec: { ownerID: 'other-id' } }),
      rival: '',
    },
    {
      name: 'another host',
      other: record({ uid: 'b', spec: { rootHost: 'b.example.com' } }),
      rival: '',
    },
    {
      name: 'the same host, as a wildcard',
      other: record({ uid: 'b', spec: { rootHost: '*.k.example.com' } }),
      rival: 'a/app of cluster boston',
    },
    {
      name: 'one that does not delegate',
      other: record({ uid: 'b', spec: { delegate: false } }),
      rival: '',
    },
    {
      name: 'itself, as another cluster has it',
      other: record({ uid: 'ours', second: 1 }),
      rival: '',
    },
  ]
  for (const { name, other, rival } of table) {
    const book = new OwnerIndex()
    const [here, boston] = [new ToyRecords(), new ToyRecords()]
    book.watch(here, '')
    book.watch(boston, 'boston')
    const ours = record({ uid: 'ours', second: 1 })
    here.put('a/app', ours)
    boston.put('a/app', other)
    t.equal(book.rivalOf(new DnsRecordView(ours)), rival, name)
  }
})

t.test('a removed owner has no rivals, and its former rivals are notified', async (t) => {
  const book = new OwnerIndex()
  const [here, boston, milan] = [new ToyRecords(), new ToyRecords(), new ToyRecords()]
  book.watch(here, '')
  book.watch(boston, 'boston')
  const endMilan = book.watch(milan, 'milan')
  const gone: string[] = []
  const end = book.onGone((key) => gone.push(key))
  const ours = record({ uid: 'ours', second: 3 })
  here.put('a/app', ours)
  boston.put('a/app', record({ uid: 'b', second: 1 }))
  milan.put('a/app', record({ uid: 'm', second: 2 }))
  t.equal(book.rivalOf(new DnsRecordView(ours)), 'a/app of cluster boston')
  boston.put('a/app', record({ uid: 'b', second: 1, spec: { ownerID: 'other-id' } }))
  t.equal(book.rivalOf(new DnsRecordView(ours)), 'a/app of cluster milan')
  boston.delete('a/app')
  t.strictSame(gone, [`a/${AUTHORITATIVE}`])
  endMilan()
  t.equal(book.rivalOf(new DnsRecordView(ours)), '', 'a cluster that is not followed any more')
  end()
  here.delete('a/app')
  t.strictSame(gone, [`a/${AUTHORITATIVE}`])
})
