import { DECLARED_NAME } from '../../zone/image/replacement.ts'
import type { ZoneId } from '../../zone/image/types.ts'
import type { OwnerSet } from '../build/owner-set.ts'
import type { RRsetSink } from '../build/record-zone-options.ts'
import type { ImageSink } from './image-sink.ts'
import type { Leftovers } from './leftovers.ts'
import type { OfferedVersions } from './offered-versions.ts'
import type { ZoneSignatures } from './signing/zone-signatures.ts'

interface ContentSinkParts {
  readonly sink: ImageSink
  readonly versions: OfferedVersions
  readonly leftovers: Leftovers
  /** Undefined = the zone is not signed. */
  readonly signatures: ZoneSignatures | undefined
}

/** Puts the RRsets of a zone into the image, and notes each change where versions and signatures need it. */
export class ContentSink implements Required<RRsetSink> {
  readonly #zone: ZoneId
  readonly #parts: ContentSinkParts

  constructor(zone: ZoneId, parts: ContentSinkParts) {
    this.#zone = zone
    this.#parts = parts
  }

  put(owner: Uint8Array, set: OwnerSet): void {
    const isChanged = this.#parts.sink.put(owner, set)
    if (isChanged) this.#note(owner, set.type)
    this.#settle(owner, set.type)
  }

  rename(owner: Uint8Array, set: OwnerSet, before: OwnerSet): void {
    if (this.#parts.sink.rename(owner, set, before)) this.#parts.signatures?.note(owner, set.type)
  }

  remove(owner: Uint8Array, type: number): void {
    this.#parts.sink.remove(owner, type)
    this.#parts.signatures?.refused.forget(owner, type)
    this.#note(owner, type)
    this.#settle(owner, type)
  }

  declare(owner: Uint8Array, isDeclared: boolean): void {
    this.#parts.sink.declare(owner, isDeclared)
    this.#parts.signatures?.note(owner, DECLARED_NAME)
    this.#settle(owner, DECLARED_NAME)
  }

  #note(owner: Uint8Array, type: number): void {
    this.#parts.versions.note(this.#zone, owner, type)
    this.#parts.signatures?.note(owner, type)
  }

  #settle(owner: Uint8Array, type: number): void {
    this.#parts.leftovers.settle({ zone: this.#zone, owner, type })
  }
}
