import { printLatin1 } from '../base/latin1.ts'
import { printType, RRType } from '../dns/iana/types.ts'
import type { Message, ResourceRecord } from '../dns/message/message.ts'
import { NameBuffer } from '../dns/name/hashed-name.ts'
import { equalNames, lowerName, printName } from '../dns/name/name.ts'
import { printRdata } from '../dns/rdata/index.ts'
import type { Location } from '../geo/location.ts'
import type { Locator } from '../geo/locator.ts'
import { printCoordinates } from '../geo/point.ts'
import type { AllDown, Contribution } from '../publish/build/owner-set.ts'
import type { ExplainableZones, Origin } from '../publish/explainable.ts'
import { ALIAS_TYPE } from '../records/dns-record.ts'
import type { ListenPlan } from '../server/listen-plan.ts'
import type { ReplayedReply } from '../server/replay.ts'
import { CLOSED, OPEN } from '../steering/rules.ts'
import type { TracedChoice } from '../steering/trace.ts'
import { type JoinedChoice, joinChoice } from './choice.ts'
import { type BuiltSet, buildSet, printDrop, targetsOut } from './endpoints.ts'
import type { ExplainParts, ExplainRequest } from './explain-request.ts'
import type { ExplainedEndpoint, ExplainedLocation, ExplainedStep } from './explanation.ts'
import { type FoundRRset, findRRset } from './find-rrset.ts'
import { notesOnHealth } from './peer-health.ts'
import { printPrefix } from './prefix.ts'

/** Explains the RRsets of one reply. */
export class StepExplainer {
  /** The location database of the first step; undefined = no step has one. */
  locator: Locator | undefined
  readonly #parts: ExplainParts
  readonly #plan: ListenPlan
  readonly #request: ExplainRequest
  readonly #reply: ReplayedReply
  /** Choices that no step has used yet. */
  readonly #choices: TracedChoice[]
  readonly #origins = new Map<ExplainableZones, (contribution: Contribution) => Origin>()

  constructor(
    parts: ExplainParts,
    plan: ListenPlan,
    request: ExplainRequest,
    reply: ReplayedReply,
    choices: readonly TracedChoice[],
  ) {
    this.#parts = parts
    this.#plan = plan
    this.#request = request
    this.#reply = reply
    this.#choices = [...choices]
  }

  /** Returns a step for each RRset of the answer, and one for the name without the wanted type. */
  explain({ question, answer, authority }: Message): ExplainedStep[] {
    const sets = groupSets(answer)
    const steps = sets.map((records) => this.#step(records[0]!.owner, records[0]!.type, records))
    const last = sets.at(-1)?.[0]
    const type = question?.type ?? 0
    const isNegative = authority.some((record) => record.type === RRType.SOA)
    if (!isNegative || question === undefined) return steps
    const name = last?.type === RRType.CNAME ? last.rdata : question.name
    return [...steps, this.#step(name, this.#deniedType(name, type), [])]
  }

  /** The type that the name has no data of: CNAME, if it has one that the choice left empty. */
  #deniedType(name: Uint8Array, type: number): number {
    const isAlias = (this.#find(lowerName(name), RRType.CNAME)?.rrset ?? 0) !== 0
    return isAlias ? RRType.CNAME : type
  }

  #step(name: Uint8Array, type: number, records: readonly ResourceRecord[]): ExplainedStep {
    const source = this.#find(lowerName(name), type)
    const zones = source && this.#parts.index.find(source.reader.words.buffer)
    const other = this.#otherSource(source, name, records)
    const zone = source && zones?.zone(source.apex)
    const [first] = records
    const base = {
      name: printName(name),
      owner: printName(source?.owner ?? name),
      type: printType(type),
      zone: source === undefined ? '' : printName(source.apex),
      rdata: records.map(({ rdata }) => printRdata(type, rdata)),
      ttlSeconds: first?.ttlSeconds ?? 0,
    }
    const isOther = other !== ''
    if (source === undefined || zones === undefined || zone === undefined || isOther) {
      const ttlReason = isOther ? `set by ${this.#author()}` : 'TTL of the RRset in its zone'
      return {
        ...base,
        serial: serialOf(source),
        ttlReason: first === undefined ? '' : ttlReason,
        endpoints: undefined,
        choice: undefined,
        notes: isOther ? [other] : [],
      }
    }
    this.locator ??= zones.locator
    const built = buildSet(zone, source.owner, type)
    const joined = this.#join(source, zones, built, type)
    return {
      ...base,
      serial: zone.serial,
      ttlReason: first === undefined ? '' : explainTtl(built, first.ttlSeconds),
      endpoints: explainEndpoints(built, zones, this.#originsOf(zones), joined, base.rdata),
      choice: joined === 'changed' ? undefined : joined?.choice,
      notes: [
        ...notesOf(built, joined, records.length),
        ...notesOnHealth(zones, source.owner, built, type),
      ],
    }
  }

  #originsOf(zones: ExplainableZones): (contribution: Contribution) => Origin {
    const known = this.#origins.get(zones) ?? zones.origins()
    this.#origins.set(zones, known)
    return known
  }

  /** Joins the steerer's choice for the RRset, if it made one. */
  #join(
    source: FoundRRset,
    zones: ExplainableZones,
    built: BuiltSet,
    type: number,
  ): JoinedChoice | 'changed' | undefined {
    const at = source.rrset === 0 ? -1 : source.reader.steeringStart(source.rrset)
    const index = this.#choices.findIndex(({ buffer, offset }) => {
      return buffer === source.reader.words.buffer && offset === at
    })
    const traced = this.#choices[index]
    if (traced === undefined) return undefined
    this.#choices.splice(index, 1)
    const { trie } = zones.table
    const matching =
      traced.lookup === undefined ? [] : (trie.codesOf[traced.lookup.clientClass] ?? [])
    const { locator } = zones
    const { address, clientFamily } = this.#reply.client
    const location: Location | undefined = locator?.locate(padded(address), clientFamily)
    const texts = matching.map(({ text }) => text)
    return joinChoice(traced, built, type, location, texts) ?? 'changed'
  }

  /**
   * Why the records of a step are not those that the zone has for the name: another directive made
   * or changed them. '' = they are.
   */
  #otherSource(
    source: FoundRRset | undefined,
    name: Uint8Array,
    records: readonly ResourceRecord[],
  ): string {
    const { answeredBy } = this.#reply
    if (source === undefined)
      return `no zone of this server has the name: ${this.#author()} answers`
    const isAsked = equalNames(name, this.#request.name)
    if (isAsked && answeredBy !== '' && answeredBy !== source.directive) {
      return `${answeredBy} answers, not ${source.directive}`
    }
    // A name may have several NSEC records, for clients whose answer is empty (see signature-directory.ts).
    const isPart = this.#isChosen(source) || records[0]?.type === RRType.NSEC
    if (hasRecords(source, records, isPart)) return ''
    return answeredBy === source.directive
      ? 'another directive has changed the name or the records'
      : `the records are not those of the zone: ${this.#author()} answers`
  }

  /** The directive that answered, as far as it is known. */
  #author(): string {
    return this.#reply.answeredBy || 'another directive'
  }

  /** True if the steerer chose among the records of the RRset. */
  #isChosen({ reader, rrset }: FoundRRset): boolean {
    const at = rrset === 0 ? -1 : reader.steeringStart(rrset)
    return this.#choices.some(({ buffer, offset }) => {
      return buffer === reader.words.buffer && offset === at
    })
  }

  /** Finds the RRset of a name as the server does. */
  #find(name: Uint8Array, type: number): FoundRRset | undefined {
    const { replay } = this.#parts
    const sources = replay.findSources(this.#plan, this.#request.source, name, type) ?? []
    const found = sources.flatMap((source) => findRRset(source, name, type) ?? [])
    const { answeredBy } = this.#reply
    return found.find(({ directive }) => directive === answeredBy) ?? found[0]
  }
}

/** True if the records are all of the RRset, or a choice of them. */
function hasRecords(
  { reader, rrset }: FoundRRset,
  records: readonly ResourceRecord[],
  isPart: boolean,
): boolean {
  if (rrset === 0) return records.length === 0
  const start = reader.rdataStart(rrset)
  const count = reader.rdataCount(rrset)
  if (!isPart && records.length !== count) return false
  const texts = new Set<string>()
  for (let i = 0; i < count; i++) {
    const at = reader.rdataAt(rrset, start, i)
    const octets = reader.view.getUint16(at)
    texts.add(printLatin1(reader.bytes.subarray(at + 2, at + 2 + octets)).toLowerCase())
  }
  return records.every(({ rdata }) => texts.has(printLatin1(rdata).toLowerCase()))
}

/** Groups records of one owner and type that follow each other. Signatures are left out. */
function groupSets(records: readonly ResourceRecord[]): ResourceRecord[][] {
  const sets: ResourceRecord[][] = []
  for (const record of records) {
    if (record.type === RRType.RRSIG) continue
    const last = sets.at(-1)
    const [first] = last ?? []
    const isSame = first?.type === record.type && equalNames(first.owner, record.owner)
    if (isSame) last!.push(record)
    else sets.push([record])
  }
  return sets
}

function explainEndpoints(
  built: BuiltSet,
  zones: ExplainableZones,
  originOf: (contribution: Contribution) => Origin,
  joined: JoinedChoice | 'changed' | undefined,
  served: readonly string[],
): ExplainedEndpoint[] {
  return built.endpoints.map(({ contribution, dropped }, i) => {
    const { key, endpoint } = contribution
    const codes = endpoint.codes.map(({ text }) => text)
    const { type, aliasOf } = endpoint
    const targets = endpoint.rdata.map((rdata) => printExplainedTarget(type, rdata))
    const isWhole = joined === undefined && dropped === undefined && served.length > 0
    const isChosen = isWhole || (typeof joined === 'object' && joined.chosen.has(i))
    const origin = originOf(contribution)
    return {
      record: origin.kind === 'corefile' || origin.kind === 'default' ? '' : key,
      origin,
      setIdentifier: endpoint.setIdentifier,
      codes: endpoint.isDefault ? [...codes, '*'] : codes,
      location: endpoint.point?.text ?? '',
      distanceKm: typeof joined === 'object' ? joined.distances.get(i) : undefined,
      weight: endpoint.weight,
      ttlSeconds: endpoint.ttlSeconds,
      targets,
      ...(aliasOf === undefined ? {} : { alias: printName(aliasOf) }),
      out: targetsOut(contribution, zones),
      dropped: printDrop(dropped),
      share: isWhole ? 1 : typeof joined === 'object' ? (joined.shares.get(i) ?? 0) : 0,
      isChosen,
    }
  })
}

function printExplainedTarget(type: number, rdata: Uint8Array): string {
  return type === ALIAS_TYPE ? `alias ${printName(rdata)}` : printRdata(type, rdata)
}

function explainTtl({ set, endpoints }: BuiltSet, ttlSeconds: number): string {
  if (endpoints.length === 0) return 'TTL of the RRset in its zone'
  if (set?.ttlSeconds !== ttlSeconds) return 'changed by another directive'
  const all = endpoints.map(({ contribution }) => contribution)
  const lowest = all.find(({ endpoint }) => endpoint.ttlSeconds === ttlSeconds)
  const isEqual = all.every(({ endpoint }) => endpoint.ttlSeconds === ttlSeconds)
  if (lowest === undefined) return 'the lowest TTL of endpoints of several sites'
  if (isEqual) return all.length === 1 ? 'TTL of the endpoint' : 'TTL of all endpoints'
  const { place, endpoint } = lowest
  const id = endpoint.setIdentifier === '' ? '' : `${endpoint.setIdentifier} of `
  return `the lowest TTL of all endpoints of owner and type, that of ${id}${place}`
}

function printAllDown({ policy, missing, isDrained }: AllDown): string {
  const all = 'all targets are down or drained'
  if (policy === CLOSED) return `${all}, and all-down is closed: NODATA`
  if (isDrained === true) return `${all}, also the fallback endpoint ${policy}: NODATA`
  if (policy !== OPEN) return `${all}: the fallback endpoint ${policy} is served to all clients`
  const why = missing === undefined ? '' : ` (no endpoint has the set identifier ${missing})`
  return `${all}, so health and drains are ignored${why}`
}

function notesOf(
  { set, types, endpoints }: BuiltSet,
  joined: JoinedChoice | 'changed' | undefined,
  recordCount: number,
): string[] {
  const notes: string[] = []
  if (set?.allDown !== undefined) notes.push(printAllDown(set.allDown))
  const { shift } = set ?? {}
  if (shift !== undefined) notes.push(`shift to ${shift.to}: ${shift.text}`)
  if (joined === 'changed') notes.push('the records have changed since the answer was built')
  const isClosed = typeof joined === 'object' && joined.choice.failover?.isClosed === true
  if (isClosed) {
    notes.push('the failover list is exhausted, and all-down is closed: NODATA')
  } else if (recordCount === 0 && set === undefined) {
    const list = types.map(printType).join(', ')
    notes.push(list === '' ? 'no endpoint has this name' : `the name has only ${list}`)
  }
  const served = endpoints.filter(({ dropped }) => dropped === undefined)
  if (joined === undefined && served.length > 1) {
    notes.push('no endpoint has a geo code or a weight: all are served')
  }
  return notes
}

/** Octets of the five numbers at the end of a SOA's rdata, which the serial starts. */
const SOA_NUMBERS_OCTETS = 20

/** Returns the serial of the SOA in the zone image. */
function serialOf(source: FoundRRset | undefined): number | undefined {
  if (source === undefined) return undefined
  const { reader, apex } = source
  const name = new NameBuffer()
  name.set(apex, 0, apex.length)
  const zone = reader.matchZone(name, 0)
  const soa = zone === 0 ? 0 : reader.findRRset(reader.findBody(zone, name, 0, 0), RRType.SOA)
  if (soa === 0) return undefined
  const at = reader.rdataStart(soa)
  return reader.view.getUint32(at + 2 + reader.view.getUint16(at) - SOA_NUMBERS_OCTETS)
}

export function explainLocation(
  locator: Locator | undefined,
  { address, clientFamily }: ReplayedReply['client'],
): ExplainedLocation | undefined {
  if (locator === undefined) return undefined
  const bytes = padded(address)
  const { net, asn, subdivisions, country, continent, coordinates } = locator.locate(
    bytes,
    clientFamily,
  )
  const evidence = locator.evidence?.(bytes, clientFamily) ?? []
  return {
    databases: evidence.map(({ file, type, builtSeconds, family, prefixBits, isIgnored }) => {
      const folded = family === clientFamily ? bytes : bytes.subarray(12)
      const built = builtSeconds === 0 ? '' : new Date(builtSeconds * 1000).toISOString()
      const prefix = printPrefix({ family, bytes: folded, bits: prefixBits })
      return { file, type, built, prefix, isIgnored }
    }),
    net,
    asn: asn === 0 ? '' : `AS${asn}`,
    subdivisions,
    country,
    continent: continent === '' ? '' : `GEO-${continent}`,
    coordinates: printCoordinates(coordinates),
  }
}

/** An address as locators expect it: 16 octets. */
function padded(address: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(16)
  bytes.set(address)
  return bytes
}
