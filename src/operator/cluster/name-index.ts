import type { ApiObject } from '../../kube/api.ts'
import type { Informer } from '../../kube/informer.ts'
import { isSame, metadataOf } from '../record/fields.ts'
import { DnsRecordView } from '../record/record-view.ts'
import { NameTree } from './name-tree.ts'

/** The records that are served by name of their endpoints: those that no other record represents. */
export class NameIndex {
  readonly #keys = new Map<string, Set<string>>()
  readonly #tree = new NameTree()

  /**
   * Indexes the records of an informer. When the endpoints or annotations of a record change, `onEvent` is called
   * with the other records that share a name with it. The returned function unsubscribes.
   */
  watch(records: Pick<Informer, 'subscribe'>, onEvent: (key: string) => void): () => void {
    return records.subscribe({
      onAdd: (key, object) => this.#change(key, [], namesOf(object), onEvent),
      onUpdate: (key, object, before) => {
        const [after, earlier] = [namesOf(object), namesOf(before)]
        if (isChanged(object, before) || after.length !== earlier.length)
          this.#change(key, earlier, after, onEvent)
      },
      onDelete: (key, before) => this.#change(key, namesOf(before), [], onEvent),
    })
  }

  /** Keys of the other records that share a name with a record. */
  sharing(key: string, object: ApiObject): ReadonlySet<string> {
    const keys = new Set(namesOf(object).flatMap((name) => [...this.keysOf(name)]))
    keys.delete(key)
    return keys
  }

  /** Keys of the records with an endpoint of that name: lower case, without the final dot. */
  keysOf(name: string): Iterable<string> {
    return this.#keys.get(name) ?? []
  }

  /** Keys of the records with endpoints below a name. */
  *keysBelow(name: string): Generator<string> {
    for (const other of this.#tree.below(name)) yield* this.keysOf(other)
  }

  #change(
    key: string,
    before: readonly string[],
    after: readonly string[],
    onEvent: (key: string) => void,
  ): void {
    const others = new Set([...before, ...after].flatMap((name) => [...this.keysOf(name)]))
    for (const name of before) {
      const keys = this.#keys.get(name)
      keys?.delete(key)
      if (keys?.size !== 0) continue
      this.#keys.delete(name)
      this.#tree.remove(name)
    }
    for (const name of after) {
      const keys = this.#keys.get(name)
      if (keys !== undefined) {
        keys.add(key)
        continue
      }
      this.#keys.set(name, new Set([key]))
      this.#tree.add(name)
    }
    for (const other of others) if (other !== key) onEvent(other)
  }
}

/** Annotations drain a record, and describe the parts of an authoritative one. */
function isChanged(object: ApiObject, before: ApiObject): boolean {
  const [now, old] = [metadataOf(object), metadataOf(before)]
  return now.generation !== old.generation || !isSame(now.annotations, old.annotations)
}

/** Names of a record's endpoints. Derived and delegating records are represented by others. */
export function namesOf(object: ApiObject): readonly string[] {
  const { role, isDeleting, endpoints } = new DnsRecordView(object)
  if (role === 'derived' || role === 'delegating' || isDeleting) return []
  return [...new Set(endpoints.map(({ dnsName }) => dnsName))]
}
