import { lazyKey } from '../base/shared-values.ts'
import { nameKey } from '../dns/name/name.ts'
import type { ZoneVersion } from './journal/version-view.ts'

/** Identifies an RRset by owner and type. */
export interface SetKey {
  /** Lower-case wire form. */
  readonly owner: Uint8Array
  readonly type: number
}

/** A version that came into force, or an apex whose version was removed. */
export interface VersionChange {
  readonly zone: Uint8Array
  readonly version: ZoneVersion | undefined
  /** The RRsets that differ from the version before, perhaps with others; undefined = any may differ. */
  readonly changed: readonly SetKey[] | undefined
}

type Listener = (change: VersionChange) => void

/** Receives the versions of one directive. On the control thread only. */
export interface VersionSource {
  put(version: ZoneVersion, changed?: readonly SetKey[]): void
  /** The zone is no longer served, or has no version. */
  remove(zone: Uint8Array): void
}

/**
 * The versions in force of the zones of one server block, passed from the directives that own them
 * to `transfer`. If two directives have the same zone, the first one that requested its source
 * counts: it is higher in the chain.
 */
export class ZoneVersions {
  readonly #sources: Map<string, ZoneVersion>[] = []
  readonly #listeners: Listener[] = []

  /** True if a subscriber needs to know what changed. */
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
        this.#notify({ zone: version.zone, version, changed })
      },
      remove: (zone) => {
        const key = nameKey(zone)
        const gone = versions.get(key)
        const wasInForce = gone !== undefined && this.#find(key) === gone
        versions.delete(key)
        if (wasInForce) this.#notify({ zone, version: this.#find(key), changed: undefined })
      },
    }
  }

  /** The version in force of the zone with exactly this apex. */
  find(zone: Uint8Array): ZoneVersion | undefined {
    return this.#find(nameKey(zone))
  }

  /** Calls `listener` with every change from now on. */
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

  #notify(change: VersionChange): void {
    for (const listener of this.#listeners) listener(change)
  }
}

/** The versions in force of the zones that directives of a server block own. */
export const ZONE_VERSIONS = lazyKey('zone versions', () => new ZoneVersions())
