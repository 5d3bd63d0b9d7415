import { copyOctets } from '../base/octets.ts'
import { RRClass } from '../dns/iana/classes.ts'
import { Opcode } from '../dns/iana/opcodes.ts'
import { RRType } from '../dns/iana/types.ts'
import type { Query } from '../dns/message/query.ts'
import type { AnswerSource } from '../zone/lookup/answer-source.ts'
import type { DirectAnswers } from '../zone/lookup/direct-answers.ts'
import type { PlannedBlock } from './chain-plan.ts'
import type { RoutingTable } from './routing.ts'

/**
 * The zone that the last query was in. If no other block and no other image has a zone below it, the
 * image alone knows the zone of a name below: a comparison or a search of the image replaces routing.
 */
export class ZoneMemo {
  readonly #routing: RoutingTable<PlannedBlock>
  /** The block of the zone found last. */
  block: PlannedBlock | undefined = undefined
  answers: DirectAnswers | undefined = undefined
  source: AnswerSource | undefined = undefined
  /** Offset of the zone in the image; 0 = `find` has found no zone. */
  zone = 0
  /** Label of the query's name at which that zone starts. */
  zoneLabel = 0
  #holder: object | undefined = undefined
  readonly #apex: Uint8Array = new Uint8Array(new ArrayBuffer(260))
  readonly #apexView: DataView = new DataView(this.#apex.buffer)
  #apexOctets = 0
  #apexHash = 0
  /** Labels of the apex; -1 if another block or image has zones below, so that each query looks its zone up. */
  #apexLabels = -1
  /** No zone of the image is longer: all names below are in this zone. */
  #isDeepest = false
  #version = -1
  #buffer: SharedArrayBuffer | undefined = undefined

  constructor(routing: RoutingTable<PlannedBlock>) {
    this.#routing = routing
  }

  /** True if no other block or image has a zone below the one found last. */
  get hasAllBelow(): boolean {
    return this.#apexLabels !== -1
  }

  /**
   * Finds block and zone of the query, if they are the same for all clients. Returns false if the
   * routing table must find the block, or if the block's answers do not come from zones alone. @hot
   */
  find(query: Query): boolean {
    // The DS of a zone is data of the zone above, which another block may serve.
    if (query.qclass !== RRClass.IN || query.opcode !== Opcode.QUERY) return false
    if (query.qtype === RRType.DS) return false
    const label = query.labelCount - this.#apexLabels
    if (this.#apexLabels === -1 || label < 0 || !this.#isIn(query, label))
      return this.#findAnew(query)
    this.zoneLabel = label
    return true
  }

  /**
   * Whether the query is in the zone found last, and that state is still valid. `label`: where the apex starts if so.
   */
  #isIn(query: Query, label: number): boolean {
    if (query.suffixHash[label] !== this.#apexHash) return false
    if (this.source!.holder !== this.#holder) return false
    const { reader } = this.answers!
    reader.refresh()
    if (reader.version !== this.#version || reader.handle.buffer !== this.#buffer) return false
    if (!this.#isDeepest && reader.isInZoneBelow(query, label)) return false
    const start = query.labelOffset[label]!
    const octets = this.#apexOctets
    if (query.qnameOctets - start !== octets) return false
    const { nameView } = query
    const apex = this.#apexView
    let i = 0
    for (; i + 4 <= octets; i += 4) {
      if (nameView.getInt32(start + i, true) !== apex.getInt32(i, true)) return false
    }
    // Octets behind the names do not count.
    const mask = (1 << ((octets & 3) << 3)) - 1
    return ((nameView.getInt32(start + i, true) ^ apex.getInt32(i, true)) & mask) === 0
  }

  #findAnew(query: Query): boolean {
    this.#apexLabels = -1
    const block = this.#routing.findUnconditional(query)
    const source = block?.plan.source
    const answers = source?.find(query)?.direct
    if (source === undefined || answers === undefined) return false
    const { reader } = answers
    reader.refresh()
    const zone = reader.matchZone(query, 0)
    if (zone === 0) return false
    this.block = block
    this.answers = answers
    this.zone = zone
    this.zoneLabel = reader.zoneLabel
    this.source = source
    this.#holder = source.holder
    this.#version = reader.version
    this.#buffer = reader.handle.buffer
    const labels = query.labelCount - this.zoneLabel
    const deepest = Math.max(this.#routing.deepestAround(query), source.deepestAround(query))
    if (labels >= deepest) this.#apexLabels = labels
    this.#isDeepest = labels >= reader.deepest
    this.#storeApex(query)
    return true
  }

  #storeApex(query: Query): void {
    const start = query.labelOffset[this.zoneLabel]!
    this.#apexOctets = query.qnameOctets - start
    copyOctets(query.qname, start, this.#apex, 0, this.#apexOctets)
    this.#apexHash = query.suffixHash[this.zoneLabel]!
  }
}
