import { printType } from '../../src/dns/iana/types.ts'
import { printName, scanName } from '../../src/dns/name/name.ts'
import { printRdata } from '../../src/dns/rdata/index.ts'
import type { ApiObject } from '../../src/kube/api.ts'
import { ObjectSink } from '../../src/kube/object-sink.ts'
import { labelOf, metadataOf } from '../../src/operator/record/fields.ts'
import type { OwnerSet, ZoneSettings } from '../../src/publish/build/owner-set.ts'
import { RecordZone } from '../../src/publish/build/record-zone.ts'
import type { RecordChange, StoredRecord } from '../../src/records/record-source.ts'
import { ClusterStore } from '../../src/sources/kubernetes/cluster-store.ts'
import { TestHealth } from './test-health.ts'

const APEX = scanName('k.example.com.')!
const ZONE_LABEL = 'kuadrant.io/coredns-zone-name'

/** What a nameserver serves of the objects of a cluster: the real store and RRset building. */
export class ClusterServer {
  readonly health = new TestHealth()
  readonly store = new ClusterStore(this.health)
  /** By `owner TYPE`. */
  readonly sets = new Map<string, OwnerSet>()
  readonly conflicts: string[] = []
  readonly refusals: string[] = []
  readonly #zone: RecordZone
  readonly #list = new ObjectSink({
    put: (object) => {
      const refusal = this.store.put('dnsrecords', object)
      if (refusal !== undefined) this.refusals.push(refusal.message)
    },
    remove: (key) => this.store.remove('dnsrecords', key),
    keys: () => this.store.keys('dnsrecords', ''),
  })

  constructor(settings?: ZoneSettings) {
    const ns = { owner: APEX, type: 2, ttlSeconds: 60, setIdentifier: '', weight: undefined }
    const rdata = [scanName('ns1.k.example.com.')!]
    this.#zone = new RecordZone({
      apex: APEX,
      isLocalForm: false,
      fixed: [],
      defaultNs: { ...ns, codes: [], isDefault: false, rdata },
      sink: {
        put: (owner, set) => this.sets.set(keyOf(owner, set.type), set),
        remove: (owner, type) => this.sets.delete(keyOf(owner, type)),
        declare: () => {},
      },
      health: this.health,
      settings,
      onConflict: (text) => this.conflicts.push(text),
      onOut: () => {},
    })
    this.health.subscribe((keys) => {
      const records = [...keys].map((key) => this.store.find(key))
      const known = records.filter((record) => record !== undefined)
      this.#zone.apply(known.map((record) => ({ before: record, after: record })))
    })
  }

  /** Applies all objects of a cluster that the nameserver watches, as one list. */
  apply(objects: Iterable<ApiObject>): readonly RecordChange[] {
    const zoneOf = (object: ApiObject): string => labelOf(object, ZONE_LABEL)
    this.#list.beginList()
    this.#list.put([...objects].filter((object) => !['', 'kdrnt'].includes(zoneOf(object))))
    this.#list.endList()
    const changes = this.store.settle()
    this.#zone.apply(changes)
    this.health.publish()
    return changes
  }

  /** Targets of an RRset, sorted; undefined = it does not exist. */
  targets(key: string): string | undefined {
    const set = this.sets.get(key)
    const texts = set?.rdata.map((rdata) => printRdata(set.type, rdata))
    return texts?.sort().join(' ')
  }

  /** The records that the objects stand for, in order of their keys. */
  records(): readonly StoredRecord[] {
    return [...this.store.records()].sort((a, b) => (a.key < b.key ? -1 : 1))
  }
}

function keyOf(owner: Uint8Array, type: number): string {
  return `${printName(owner)} ${printType(type)}`
}

/** The object with other annotations. */
export function annotated(object: ApiObject, annotations: ApiObject): ApiObject {
  return { ...object, metadata: { ...metadataOf(object), annotations } }
}
