import { nameKey } from '../dns/name/name.ts'
import type { ZoneVersion } from '../xfr/journal/version-view.ts'

/** An RRset, by where it is. */
export interface SetKey {
  /** Lower-case wire form. */
  readonly owner: Uint8Array
  readonly type: number
}

/** A version that came into force, or an apex without one. */
export interface VersionChange {
  readonly zone: Uint8Array
  readonly version: ZoneVersion | undefined
  /** What differs from the version before, at least; undefined = anything may. */
  readonly changed: readonly SetKey[] | undefined
}

type Listener = (change: VersionChange) => void

/** What one directive puts its versions into. On the control thread alone. */
export interface VersionSource {
  put(version: ZoneVersion, changed?: readonly SetKey[]): void
  /** The zone is no longer served, or has nothing to serve. */
  remove(zone: Uint8Array): void
}

/**
 * The zones of one server block as they are in force, from the directives that own them to `transfer`.
 * Of two directives with one zone that counts which asked for its source first: it stands above.
 */
export class ZoneVersions {
  readonly #sources: Map<string, ZoneVersion>[] = []
  readonly #listeners: Listener[] = []

  /** True if anybody wants to know what changed. */
  get isWatched(): boolean {
    return this.#listeners.length > 0
  }

  source(): VersionSource {
    const versions = new Map<string, ZoneVersion>()
    this.#sources.push(versions)
    return {
      put: (version, changed) => {
        const key = nameKey(version.zone)
        versions.set(key, version)
        if (this.#find(key) !== version) return
        this.#tell({ zone: version.zone, version, changed })
      },
      remove: (zone) => {
        const key = nameKey(zone)
        const gone = versions.get(key)
        const wasInForce = gone !== undefined && this.#find(key) === gone
        versions.delete(key)
        if (wasInForce) this.#tell({ zone, version: this.#find(key), changed: undefined })
      },
    }
  }

  /** The version in force of the zone with this very apex. */
  find(zone: Uint8Array): ZoneVersion | undefined {
    return this.#find(nameKey(zone))
  }

  /** `listener` is told of every change from now on. */
  subscribe(listener: Listener): void {
    this.#listeners.push(listener)
  }

  #find(key: string): ZoneVersion | undefined {
    for (const versions of this.#sources) {
      const version = versions.get(key)
      if (version !== undefined) return version
    }
    return undefined
  }

  #tell(change: VersionChange): void {
    for (const listener of this.#listeners) listener(change)
  }
}
