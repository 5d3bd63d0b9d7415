import type { Clock } from '../base/clock.ts'
import { type ApiObject, textOf } from '../kube/api.ts'
import type { Informer } from '../kube/informer.ts'
import { keyOf } from '../kube/object-key.ts'
import { FIELD_MANAGER, isManaged, metadataOf } from './object.ts'

/** What we wrote counts for this long, whatever the cluster tells: it may never tell of it. */
const WRITTEN_MS = 60_000

/** What the API answered to a write of ours. */
interface Written {
  /** undefined = it is gone. */
  readonly object: ApiObject | undefined
  readonly uid: string
  /** Of it; of what is gone that which it had last, as far as we know. */
  readonly version: number
  readonly untilMs: number
}

/**
 * The DNSRecords of the cluster as they are known: as the informer has them, and beyond that as the API answered to our own
 * writes, until the informer has heard of them. So what was just written is not written again.
 */
export class RecordCache {
  readonly #informer: Informer
  readonly #clock: Clock
  readonly #written = new Map<string, Written>()

  constructor(informer: Informer, clock: Clock) {
    this.#informer = informer
    this.#clock = clock
    informer.subscribe({ onDelete: (key, before) => this.#drop(key, uidOf(before)) })
  }

  get(key: string): ApiObject | undefined {
    const known = this.#informer.get(key)
    const written = this.#written.get(key)
    if (written === undefined) return known
    if (this.#clock.monotonic() < written.untilMs && !isCaughtUp(known, written)) {
      return written.object
    }
    this.#written.delete(key)
    return known
  }

  /** The API answered with `object`. */
  noteWritten(object: ApiObject): void {
    this.#note(keyOf(object), {
      object: trimRecord(object),
      uid: uidOf(object),
      version: versionOf(object),
    })
  }

  /** The API says that `object` is gone. If it is told of at a later version after all, it is there. */
  noteDeleted(object: ApiObject): void {
    const key = keyOf(object)
    const uid = uidOf(object)
    const known = this.#informer.get(key)
    const isSame = known !== undefined && uidOf(known) === uid
    const version = Math.max(versionOf(object), isSame ? versionOf(known) : 0)
    this.#note(key, { object: undefined, uid, version })
  }

  /** True if `object` is what the API answered to us: whoever wrote it knows. */
  isEcho(key: string, object: ApiObject): boolean {
    const written = this.#written.get(key)?.object
    return written !== undefined && versionOf(written) === versionOf(object)
  }

  /** What the informer told of before the API answered is nothing to remember: it would never go. */
  #note(key: string, answered: Omit<Written, 'untilMs'>): void {
    const written = { ...answered, untilMs: this.#clock.monotonic() + WRITTEN_MS }
    if (isCaughtUp(this.#informer.get(key), written)) this.#written.delete(key)
    else this.#written.set(key, written)
  }

  #drop(key: string, uid: string): void {
    if (this.#written.get(key)?.uid === uid) this.#written.delete(key)
  }
}

/** What is kept of a record: of `managedFields` only whether we are among the managers. */
export function trimRecord(object: ApiObject): ApiObject {
  const { managedFields, ...metadata } = metadataOf(object)
  if (managedFields === undefined) return object
  const ours = isManaged(object) ? { managedFields: [{ manager: FIELD_MANAGER }] } : {}
  return { ...object, metadata: { ...metadata, ...ours } }
}

function isCaughtUp(known: ApiObject | undefined, { object, uid, version }: Written): boolean {
  if (object !== undefined) return known !== undefined && versionOf(known) >= version
  return known === undefined || uidOf(known) !== uid || versionOf(known) > version
}

/** Versions of one kind are numbers that grow (Kubernetes API concepts, "Resource versions"). */
function versionOf(object: ApiObject): number {
  return Number(textOf(metadataOf(object), 'resourceVersion'))
}

function uidOf(object: ApiObject): string {
  return textOf(metadataOf(object), 'uid')
}
