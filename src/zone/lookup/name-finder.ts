import * as types from '../../dns/iana/types.ts'
import type { HashedName } from '../image/hashed-name.ts'
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

/** How a name was found in a zone (RFC 1034 section 4.3.2, step 3). */
export const Match = {
  /** The name itself: `body`. */
  Name: 0,
  /** The wildcard of its closest encloser, `body`, stands in for it (RFC 4592 section 3.3). */
  Wildcard: 1,
  /** No such name. */
  None: 2,
  /** It is at or below a zone cut: `body`, which is the name from `label` on. */
  Cut: 3,
  /** It is below the owner of a DNAME: `body`, which is the name from `label` on. */
  Dname: 4,
} as const
export type Match = (typeof Match)[keyof typeof Match]

/** Finds what stands for a name in a zone. Reused; its fields hold the outcome of the last call. */
export class NameFinder {
  readonly #reader: ZoneReader
  body = 0
  /** The label that `body` is at; after None and Wildcard that of the closest encloser. */
  label = 0

  constructor(reader: ZoneReader) {
    this.#reader = reader
  }

  /** `zoneLabel`: the label of `name` that the zone's apex is at. @hot */
  find(zone: number, name: HashedName, zoneLabel: number, qtype: number): Match {
    const reader = this.#reader
    if (reader.words[zone + ZONE_DELEGATES] === 0) {
      // No cut and no DNAME above the name can hide it.
      this.body = this.#findBody(zone, name, 0, zoneLabel)
      this.label = 0
      if (this.body !== 0) return Match.Name
    }
    return this.#descend(zone, name, zoneLabel, qtype)
  }

  /**
   * Body that may hold addresses of a target, 0 if there is none: unlike `find` it looks below zone
   * cuts, for glue (RFC 9471), but not below DNAMEs, and not at wildcards. @hot
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

  /** As `ZoneReader.findBody`, without names that exist as owners of NSEC3 records alone. @hot */
  #findBody(zone: number, name: HashedName, label: number, zoneLabel: number): number {
    const body = this.#reader.findBody(zone, name, label, zoneLabel)
    return (this.#reader.words[body + BODY_STATE]! & FLAG_HASHED) === 0 ? body : 0
  }

  /**
   * From the apex downwards: names below a cut or a DNAME are never reached, and a long name that
   * does not exist costs one probe more than its closest encloser is deep.
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
