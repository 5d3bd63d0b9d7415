import { type ApiObject, isObject, textOf } from '../../../src/kube/api.ts'
import { keyOf } from '../../../src/kube/object-key.ts'
import type { EndpointDocument } from '../../../src/records/record-document.ts'
import type {
  ObjectKind,
  ObjectReader,
  ObjectRecords,
  ObjectReference,
} from '../../../src/sources/objects/object-kind.ts'
import { recordNameOf } from '../../../src/sources/objects/record-name.ts'

export const WIDGETS = { group: 'example.org', version: 'v1', plural: 'widgets', kind: 'Widget' }
/** Of `kind` as well; few clusters have them. */
export const EXTRAS = { ...WIDGETS, plural: 'extras', kind: 'Extra' }

/** A target of each host: an address, or the name of a CNAME. `ID=TARGET` has a set identifier. */
export type Hosts = Readonly<Record<string, string>>

/** A Widget as the API has it. */
export function widget(namespace: string, name: string, hosts: Hosts, more: ApiObject = {}) {
  return { metadata: { namespace, name, ...more }, spec: { hosts } }
}

/** A kind whose objects have a list of hosts. Without the list they are invalid; `note` is a problem. */
export function widgetKind(word = 'widget', resource = WIDGETS): ObjectKind {
  return { word, resources: [resource, EXTRAS], open: () => new WidgetReader(word, resource) }
}

class WidgetReader implements ObjectReader {
  readonly #word: string
  readonly #resource: typeof WIDGETS
  readonly #objects = new Map<string, ApiObject>()
  readonly #changed = new Map<string, ObjectRecords>()

  constructor(word: string, resource: typeof WIDGETS) {
    this.#word = word
    this.#resource = resource
  }

  put(plural: string, object: ApiObject): void {
    if (plural !== this.#resource.plural) return
    this.#objects.set(keyOf(object), object)
    this.#changed.set(keyOf(object), recordsOf(this.#word, this.#resource, object))
  }

  remove(plural: string, key: string): void {
    const object = this.#objects.get(key)
    if (plural !== this.#resource.plural || object === undefined) return
    this.#objects.delete(key)
    const of = referenceOf(this.#resource, object)
    this.#changed.set(key, { of, records: [], problems: [] })
  }

  keys(plural: string): Iterable<string> {
    return plural === this.#resource.plural ? this.#objects.keys() : []
  }

  settle(): readonly ObjectRecords[] {
    const changed = [...this.#changed.values()]
    this.#changed.clear()
    return changed
  }
}

function recordsOf(word: string, resource: typeof WIDGETS, object: ApiObject): ObjectRecords {
  const of = referenceOf(resource, object)
  const spec = isObject(object.spec) ? object.spec : {}
  const { hosts } = spec
  const note = textOf(spec, 'note')
  const problems = note === '' ? [] : [{ of, path: ['spec', 'note'], message: note }]
  if (!isObject(hosts)) return { of, records: undefined, problems }
  const creationTimestamp = textOf(object.metadata, 'creationTimestamp')
  const records = Object.entries(hosts).map(([host, target]) => ({
    apiVersion: 'kuadrant.io/v1alpha1' as const,
    kind: 'DNSRecord' as const,
    metadata: {
      name: recordNameOf(word, of.name, host),
      namespace: of.namespace,
      creationTimestamp,
    },
    spec: { rootHost: host, endpoints: [endpointOf(host, String(target))] },
  }))
  return { of, records, problems }
}

function endpointOf(dnsName: string, text: string): EndpointDocument {
  const [setIdentifier = '', target = text] = text.includes('=') ? text.split('=') : ['unnamed']
  const recordType = /^[\d.]+$/.test(target) ? 'A' : 'CNAME'
  return { dnsName, recordType, targets: [target], setIdentifier }
}

function referenceOf({ group, version, kind }: typeof WIDGETS, object: ApiObject): ObjectReference {
  const { metadata } = object
  return {
    apiVersion: `${group}/${version}`,
    kind,
    namespace: textOf(metadata, 'namespace'),
    name: textOf(metadata, 'name'),
    uid: textOf(metadata, 'uid'),
  }
}
