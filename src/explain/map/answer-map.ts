import type { Clock } from '../../base/clock.ts'
import { InputError } from '../../base/errors.ts'
import { runInSlices } from '../../base/slices.ts'
import type { EventLog } from '../../base/telemetry/event-log.ts'
import { printType, RRType, scanType } from '../../dns/iana/types.ts'
import { lowerName, nameKey, printName, ROOT_NAME, scanName } from '../../dns/name/name.ts'
import type { Address } from '../../dns/text/address.ts'
import type { AnswerMap, MapQuestion } from '../../plugin/admin-map.ts'
import type { ExplainableIndex } from '../../publish/explainable.ts'
import type { PreviewIndex } from '../../publish/preview/preview-index.ts'
import type { ListenPlan } from '../../server/listen-plan.ts'
import type { Replay } from '../../server/replay.ts'
import type { ZoneReader } from '../../zone/image/reader.ts'
import { buildSet } from '../endpoints.ts'
import { type FoundRRset, findRRset } from '../find-rrset.ts'
import { openChangePreview } from './change-preview.ts'
import { openEventPreview } from './event-preview.ts'
import { MapGraph } from './map-graph.ts'
import type { MapPreview } from './map-preview.ts'
import { emptySet, type MapSet, servedSet } from './map-set.ts'
import { ANSWERS_MAX, sumPlaces } from './place-shares.ts'
import { isCountry, PlacedCells } from './placed-cells.ts'
import { placeGraph } from './placed-graph.ts'

const LOOPBACK: Address = { family: 1, bytes: new Uint8Array([127, 0, 0, 1]) }
const CACHED_MAX = 16
/** A map without a zone of its own change is made again, because reasons of health may change. */
const CACHED_MS = 10_000

interface MapParts {
  readonly replay: Replay
  readonly index: ExplainableIndex
  readonly previews: PreviewIndex
  /** Undefined = changes are not logged. */
  readonly events: () => EventLog | undefined
  readonly clock: Clock
}

/** An RRset that a name leads to. */
interface FoundSet {
  readonly found: FoundRRset
  readonly set: MapSet
  readonly serial: number | undefined
}

/** A map, and the state of the data that it was made from. */
interface MadeMap {
  readonly map: AnswerMap
  readonly madeMs: number
  readonly isSame: () => boolean
}

/** Computes for whole countries what the server answers. */
export class AnswerMaps {
  readonly #parts: MapParts
  readonly #cells = new PlacedCells()
  /** By name and type, the last one that was made last. */
  readonly #cache = new Map<string, MadeMap>()

  constructor(parts: MapParts) {
    this.#parts = parts
  }

  close(): void {
    this.#cells.close()
    this.#cache.clear()
  }

  /**
   * Resolves to the map of a name: of the answers of the zone image, with the classes and tiers that serve. Rejects
   * with InputError if the question is invalid, or no zone of the server has the name.
   */
  async map(question: MapQuestion): Promise<AnswerMap> {
    const name = scanName(question.name, ROOT_NAME)
    if (name === undefined) throw fault(`invalid name: "${question.name}"`)
    const type = scanType(question.type ?? 'A')
    if (type === undefined) throw fault(`unknown record type: "${question.type}"`)
    const preview = await this.#openPreview(question)
    const key = `${type} ${nameKey(name)}`
    const known = preview === undefined ? this.#cache.get(key) : undefined
    const nowMs = this.#parts.clock.monotonic()
    if (known !== undefined && nowMs - known.madeMs < CACHED_MS && known.isSame()) return known.map
    const made = await this.#make(name, type, preview)
    if (preview !== undefined) return made.map
    this.#cache.delete(key)
    this.#cache.set(key, made)
    for (const first of this.#cache.keys()) {
      if (this.#cache.size > CACHED_MAX) this.#cache.delete(first)
    }
    return made.map
  }

  async #openPreview(question: MapQuestion): Promise<MapPreview | undefined> {
    const { previews, events, clock } = this.#parts
    const { name: _, type: __, event, ...order } = question
    const isChange = Object.keys(order).length > 0
    if (event !== undefined && isChange) throw fault('an event and a change exclude each other')
    if (event !== undefined) return openEventPreview(event, events())
    return isChange ? openChangePreview(order, previews, clock) : undefined
  }

  async #make(name: Uint8Array, type: number, preview: MapPreview | undefined): Promise<MadeMap> {
    const qname = lowerName(name)
    const plan = this.#planOf(qname, type)
    const versions = new Map<ZoneReader, number>()
    const find = (owner: Uint8Array, wanted: number): FoundSet | undefined => {
      const set = this.#findSet(plan, owner, wanted, preview)
      if (set !== undefined) versions.set(set.found.reader, set.found.reader.version)
      return set
    }
    const root = find(qname, type)
    if (root === undefined) throw fault(`no zone of this server has ${printName(name)}`)
    const madeMs = this.#parts.clock.monotonic()
    const graph = new MapGraph(root.set, type, (owner, wanted) => find(owner, wanted)?.set)
    const { cells, tierOf, isSameTable } = await placeGraph(
      graph,
      this.#cells,
      preview !== undefined,
    )
    const work = sumPlaces(graph, cells, tierOf)
    const { groups, places } = await runInSlices(work, this.#parts.clock)
    const map: AnswerMap = {
      name: printName(name),
      type: printType(type),
      server: plan.address,
      zone: printName(root.found.apex),
      serial: root.serial ?? null,
      preview: preview?.text ?? '',
      names: graph.nodes.map(({ set }) => printName(set.owner)),
      isByPlace: graph.nodes.some(({ set }) => set.keys.length > 0),
      answerCount: Math.max(...graph.nodes.map(({ set }) => set.answers)),
      answers: graph.answers.slice(0, ANSWERS_MAX),
      answersOmitted: Math.max(0, graph.answers.length - ANSWERS_MAX),
      groups,
      countries: places.filter(({ code }) => isCountry(code)),
      others: places.filter(({ code }) => !isCountry(code)),
      notes: [...(preview?.isPast === true ? [] : notesOf(graph)), ...(preview?.notes ?? [])],
    }
    const isSame = (): boolean => isSameTable() && areSame(versions)
    return { map, madeMs, isSame }
  }

  /** The address whose clients the map is for: the first one that serves the name. */
  #planOf(qname: Uint8Array, type: number): ListenPlan {
    const { replay } = this.#parts
    const serves = (plan: ListenPlan): boolean => {
      return replay.findSources(plan, LOOPBACK, qname, type) !== undefined
    }
    const plan = replay.plans.find(serves)
    if (plan === undefined) throw fault(`no server block serves ${printName(qname)}`)
    return plan
  }

  #findSet(
    plan: ListenPlan,
    name: Uint8Array,
    type: number,
    preview: MapPreview | undefined,
  ): FoundSet | undefined {
    const { replay, index } = this.#parts
    const sources = replay.findSources(plan, LOOPBACK, name, type) ?? []
    const all = [type, RRType.CNAME].flatMap((wanted) => {
      return sources.flatMap((source) => {
        const found = findRRset(source, name, wanted)
        return found === undefined ? [] : [{ found, wanted }]
      })
    })
    const [first] = all
    if (first === undefined) return undefined
    const { found, wanted } = all.find((one) => one.found.rrset !== 0) ?? first
    const { owner, reader, apex, rrset } = found
    const zones = index.find(reader.words.buffer)
    const zone = zones?.zone(apex)
    const set =
      rrset === 0
        ? emptySet(owner, wanted, zones, zone && buildSet(zone, owner, wanted))
        : servedSet(found, wanted, zones, zone)
    const shown =
      preview === undefined || zone === undefined ? set : preview.setOf(name, type, set, zone)
    return { found, set: shown, serial: zone?.serial }
  }
}

function areSame(versions: ReadonlyMap<ZoneReader, number>): boolean {
  return [...versions].every(([reader, version]) => {
    reader.refresh()
    return reader.version === version
  })
}

function notesOf({ nodes }: MapGraph): string[] {
  const notes: string[] = []
  for (const { set } of nodes) {
    const { built, zones, owner } = set
    const name = printName(owner)
    if (zones !== undefined && set.labels === undefined && built === undefined) {
      notes.push(`${name}: its records have changed since the answers were built`)
    }
    if (built?.set?.allDown !== undefined) notes.push(`${name}: all targets are down or drained`)
    const { shift } = built?.set ?? {}
    if (shift !== undefined) notes.push(`${name}: shift to ${shift.to}: ${shift.text}`)
    if (built?.set?.sticky !== undefined) {
      notes.push(`${name}: choices are sticky: each client keeps its endpoint`)
    }
  }
  return notes
}

function fault(message: string): InputError {
  return new InputError(undefined, message)
}
