import type { ApiObject } from '../../kube/api.ts'
import { keyOf } from '../../kube/object-key.ts'
import type { RecordDocument } from '../../records/record-document.ts'
import { ChangedObjects } from './changed-objects.ts'
import { isObjectGone, keysIn } from './object-fields.ts'
import type { ObjectReader, ObjectRecords, ObjectReference, OnProblem } from './object-kind.ts'
import { referenceOf } from './object-reference.ts'

/** Makes the records of an object. Throws RefusedError if it is invalid. */
type ReadObject = (object: ApiObject, onProblem: OnProblem) => readonly RecordDocument[]

/** Reads a kind with one resource: the records of an object depend on no other object. */
export class SingleReader implements ObjectReader {
  readonly #read: ReadObject
  readonly #objects = new Map<string, ObjectReference>()
  readonly #changed = new ChangedObjects()

  constructor(read: ReadObject) {
    this.#read = read
  }

  put(plural: string, object: ApiObject): void {
    const key = keyOf(object)
    if (isObjectGone(object)) {
      this.remove(plural, key)
      return
    }
    const of = referenceOf(object)
    this.#objects.set(key, of)
    this.#changed.make(key, of, (onProblem) => this.#read(object, onProblem))
  }

  remove(_plural: string, key: string): void {
    const of = this.#objects.get(key)
    if (of === undefined) return
    this.#objects.delete(key)
    this.#changed.remove(key, of)
  }

  keys(_plural: string, namespace: string): Iterable<string> {
    return keysIn(this.#objects.keys(), namespace)
  }

  settle(): readonly ObjectRecords[] {
    return this.#changed.take()
  }
}
