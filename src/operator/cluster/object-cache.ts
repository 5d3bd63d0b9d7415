import type { Clock } from '../../base/clock.ts'
import { type ApiObject, textOf } from '../../kube/api.ts'
import type { Informer } from '../../kube/informer.ts'
import { keyOf } from '../../kube/object-key.ts'
import { FIELD_MANAGER, isManaged, metadataOf } from '../record/fields.ts'

/** How long our own write takes precedence over the informer, which may never report it. */
const WRITTEN_MS = 60_000

/** The API's response to one of our writes. */
interface Written {
  /** undefined = it was deleted. */
  readonly object: ApiObject | undefined
  readonly uid: string
  /** Resource version of the object; for a deleted object the last known one. */
  readonly version: number
  readonly untilMs: number
}

/**
 * The objects of one kind: from the informer, and, until the informer reports them, from the API's
 * responses to our own writes. This prevents a second write of the same change.
 */
export class ObjectCache {
  readonly #informer: Informer
  readonly #clock: Clock
  readonly #written = new Map<string, Written>()
  /**
   * Objects whose deletion the informer reported, by UID, and until when. The response to a write
   * from before the deletion may arrive after it; the object would then seem to exist.
   */
  readonly #deleted = new Map<string, number>()

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

  /** Stores the API's response `object`. */
  noteWritten(object: ApiObject): void {
    if (this.#deleted.has(uidOf(object))) return
    this.#note(keyOf(object), {
      object: trimObject(object),
      uid: uidOf(object),
      version: versionOf(object),
    })
  }

  /**
   * Stores that the API has deleted `object`. If the informer reports it at a later version, it
   * exists.
   */
  noteDeleted(object: ApiObject): void {
    const key = keyOf(object)
    const uid = uidOf(object)
    const known = this.#informer.get(key)
    const isSame = known !== undefined && uidOf(known) === uid
    const version = Math.max(versionOf(object), isSame ? versionOf(known) : 0)
    this.#note(key, { object: undefined, uid, version })
  }

  /** True if `object` is the API's response to our own write, so the writer already knows it. */
  isEcho(key: string, object: ApiObject): boolean {
    const written = this.#written.get(key)?.object
    return written !== undefined && versionOf(written) === versionOf(object)
  }

  /**
   * Stores a response, unless the informer reported that version before: the entry would never be
   * removed.
   */
  #note(key: string, answered: Omit<Written, 'untilMs'>): void {
    const written = { ...answered, untilMs: this.#clock.monotonic() + WRITTEN_MS }
    if (isCaughtUp(this.#informer.get(key), written)) this.#written.delete(key)
    else this.#written.set(key, written)
  }

  #drop(key: string, uid: string): void {
    const nowMs = this.#clock.monotonic()
    for (const [other, untilMs] of this.#deleted) {
      if (untilMs > nowMs) break
      this.#deleted.delete(other)
    }
    this.#deleted.set(uid, nowMs + WRITTEN_MS)
    if (this.#written.get(key)?.uid === uid) this.#written.delete(key)
  }
}

/**
 * The part of an object that is cached. `managedFields` is reduced to whether we are among the
 * managers.
 */
export function trimObject(object: ApiObject): ApiObject {
  const { managedFields, ...metadata } = metadataOf(object)
  if (managedFields === undefined) return object
  const ours = isManaged(object) ? { managedFields: [{ manager: FIELD_MANAGER }] } : {}
  return { ...object, metadata: { ...metadata, ...ours } }
}

function isCaughtUp(known: ApiObject | undefined, { object, uid, version }: Written): boolean {
  if (object !== undefined) return known !== undefined && versionOf(known) >= version
  return known === undefined || uidOf(known) !== uid || versionOf(known) > version
}

/**
 * Resource versions of one kind are increasing numbers (Kubernetes API concepts, "Resource
 * versions").
 */
function versionOf(object: ApiObject): number {
  return Number(textOf(metadataOf(object), 'resourceVersion'))
}

function uidOf(object: ApiObject): string {
  return textOf(metadataOf(object), 'uid')
}
