import * as types from '../../dns/iana/types.ts'
import type { HashedName } from '../../dns/name/hashed-name.ts'
import * as layout from '../image/layout.ts'
import type { ZoneReader } from '../image/reader.ts'

// Bound in this module: V8 folds its constants, but looks up and checks an import at every use.
const { RRType } = types
const {
  BODY_STATE,
  FLAG_CHILDREN,
  FLAG_CUT,
  FLAG_DNAME,
  FLAG_HASHED,
  FLAG_WILDCARD,
  ZONE_DELEGATES,
} = layout

/** How the finder found a name in a zone (RFC 1034 section 4.3.2, step 3). */
export const Match = {
  /** The name itself exists: `body`. */
  Name: 0,
  /** The wildcard of its closest encloser, `body`, matches it (RFC 4592 section 3.3). */
  Wildcard: 1,
  /** The name does not exist. */
  None: 2,
  /** The name is at or below the zone cut `body`, which is the name from `label` on. */
  Cut: 3,
  /** The name is below the DNAME owner `body`, which is the name from `label` on. */
  Dname: 4,
} as const
export type Match = (typeof Match)[keyof typeof Match]

/** Finds the node that answers for a name in a zone. Reused; its fields hold the result of the last call. */
export class NameFinder {
  readonly #reader: ZoneReader
  body = 0
  /** The label of `body`; after None and Wildcard that of the closest encloser. */
  label = 0

  constructor(reader: ZoneReader) {
    this.#reader = reader
  }

  /** `zoneLabel`: the label of `name` where the zone's apex starts. @hot */
  find(zone: number, name: HashedName, zoneLabel: number, qtype: number): Match {
    const reader = this.#reader
    if (reader.words[zone + ZONE_DELEGATES] === 0) {
      // The zone has no cut and no DNAME that could hide the name.
      this.body = this.#findBody(zone, name, 0, zoneLabel)
      this.label = 0
      if (this.body !== 0) return Match.Name
    }
    return this.#descend(zone, name, zoneLabel, qtype)
  }

  /**
   * Returns the body that may hold addresses of a target, or 0. Unlike `find` it searches below
   * zone cuts, for glue (RFC 9471), but not below DNAMEs, and ignores wildcards. @hot
   */
  findTarget(zone: number, name: HashedName, zoneLabel: number): number {
    const reader = this.#reader
    if (reader.words[zone + ZONE_DELEGATES] !== 0) {
      for (let label = zoneLabel; label > 0; label--) {
        const body = this.#findBody(zone, name, label, zoneLabel)
        if (body === 0 || (reader.words[body + BODY_STATE]! & FLAG_DNAME) !== 0) return 0
      }
    }
    return this.#findBody(zone, name, 0, zoneLabel)
  }

  /** Finds the body as `ZoneReader.findBody` does, but skips names that only own NSEC3 records. @hot */
  #findBody(zone: number, name: HashedName, label: number, zoneLabel: number): number {
    const body = this.#reader.findBody(zone, name, label, zoneLabel)
    return (this.#reader.words[body + BODY_STATE]! & FLAG_HASHED) === 0 ? body : 0
  }

  /**
   * Walks down from the apex, so that it stops at a cut or a DNAME. For a name that does not exist,
   * the number of probes is the depth of the closest encloser plus one.
   */
  #descend(zone: number, name: HashedName, zoneLabel: number, qtype: number): Match {
    const reader = this.#reader
    let label = zoneLabel
    let body = this.#findBody(zone, name, label, zoneLabel)
    let state = 0
    for (;;) {
      this.body = body
      this.label = label
      state = reader.words[body + BODY_STATE]!
      // The parent side of a cut owns its DS (RFC 4035 section 3.1.4.1).
      if ((state & FLAG_CUT) !== 0 && (label !== 0 || qtype !== RRType.DS)) return Match.Cut
      if (label === 0) return Match.Name
      if ((state & FLAG_DNAME) !== 0) return Match.Dname
      if ((state & FLAG_CHILDREN) === 0) return Match.None
      body = this.#findBody(zone, name, label - 1, zoneLabel)
      if (body === 0) break
      label--
    }
    if ((state & FLAG_WILDCARD) === 0) return Match.None
    this.body = reader.findWildcard(zone, name, label, zoneLabel)
    return this.body === 0 ? Match.None : Match.Wildcard
  }
}
