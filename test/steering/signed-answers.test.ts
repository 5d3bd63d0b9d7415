import fc from 'fast-check'
import t from 'tap'
import { Random } from '../../src/base/random.ts'
import { Rcode } from '../../src/dns/iana/rcodes.ts'
import { RRType, scanType } from '../../src/dns/iana/types.ts'
import type { Query } from '../../src/dns/message/query.ts'
import { Response } from '../../src/dns/message/response.ts'
import { Section } from '../../src/dns/message/section.ts'
import { compareNames } from '../../src/dns/name/name.ts'
import { printRdata } from '../../src/dns/rdata/index.ts'
import { scanAddress } from '../../src/dns/text/address.ts'
import { scanGeoCode } from '../../src/geo/code.ts'
import type { Candidate } from '../../src/steering/candidate.ts'
import type { FailoverList } from '../../src/steering/failover.ts'
import { type SetRules, STICKY_DEFAULT } from '../../src/steering/rules.ts'
import { stickySeed } from '../../src/steering/sticky.ts'
import type { SteeringTable } from '../../src/steering/table.ts'
import { ZoneImage } from '../../src/zone/image/writer.ts'
import { ZoneAnswerer } from '../../src/zone/lookup/answer.ts'
import { runs } from '../support/runs.ts'
import { hashOf, hexOf, readSignature, type Signed, signToyZone } from '../support/toy-signer.ts'
import { question, text, wire } from '../support/zone-names.ts'
import { CLIENTS, createTable } from './stage.ts'

/*
 * Random steered sets in a signed zone: whatever a client gets, each RRset of the reply is exactly what its signatures
 * sign, and if steering chose no records, the proof says so.
 */

const APEX = 'e.'
const RDATA_MAX = 4
/** Per random zone. */
const QUERIES = 300

const CODES = ['GEO-NA', 'US', 'US-CA', '*'] as const
const endpoints = fc.array(
  fc.record({
    code: fc.option(fc.constantFrom(...CODES), { nil: undefined }),
    weight: fc.option(fc.constantFrom(0, 1, 3), { nil: undefined }),
    ttlSeconds: fc.constantFrom(30, 60),
    rdataIndexes: fc.uniqueArray(fc.nat(RDATA_MAX - 1), { minLength: 1, maxLength: 2 }),
  }),
  { minLength: 1, maxLength: 5 },
)
const setArbitrary = fc.record({
  endpoints,
  answers: fc.constantFrom(undefined, undefined, 1, 2, 3),
  sticky: fc.constantFrom(undefined, STICKY_DEFAULT),
  shift: fc.constantFrom(undefined, undefined, 30),
  /** The clients whose list of endpoints is exhausted; '' = those without a code. */
  closed: fc.constantFrom(undefined, undefined, '', 'US', 'all'),
})
type ToySet = typeof setArbitrary extends fc.Arbitrary<infer S> ? S : never

const TYPES = ['A', 'AAAA', 'TXT', 'CNAME', 'HTTPS'] as const
/** `owner type` of the steered sets. */
const STEERED = [
  `${APEX} A`,
  `${APEX} TXT`,
  ...[`a.${APEX} A`, `a.${APEX} AAAA`, `a.${APEX} TXT`],
  ...[`*.w.${APEX} A`, `*.w.${APEX} TXT`],
  ...[`c.${APEX} CNAME`, `d.${APEX} CNAME`, `*.z.${APEX} CNAME`],
  `h.${APEX} HTTPS`,
  `deep.ent.${APEX} A`,
]
const TARGETS = [`a.${APEX}`, `x.w.${APEX}`, `d.${APEX}`, `nowhere.${APEX}`].map(wire)
const RDATA: Record<(typeof TYPES)[number], readonly Uint8Array[]> = {
  A: [1, 2, 3, 4].map((i) => Uint8Array.of(192, 0, 2, i)),
  AAAA: [1, 2, 3, 4].map((i) => Uint8Array.of(...new Array(15).fill(0), i)),
  TXT: [1, 2, 3, 4].map((i) => Uint8Array.of(1, i)),
  CNAME: TARGETS,
  HTTPS: [0, 1, 1, 1].map((priority, i) => {
    return Uint8Array.of(0, priority, ...(i === 3 ? wire('.') : TARGETS[i]!))
  }),
}
const NAMES = ['', 'a.', 'q.w.', 'x.y.w.', '*.w.', 'c.', 'd.', 'q.z.', 'm.', 'h.', 'deep.ent.']
const QNAMES = [...NAMES, 'ent.', 'w.', 'no.', 'no.a.'].map((name) => `${name}${APEX}`)
const QTYPES = [...TYPES, 'MX', 'NSEC', 'RRSIG', 'ANY', 'SOA'] as const

function candidatesOf(owner: string, { endpoints, shift }: ToySet): Candidate[] {
  return endpoints.map(({ code, ...endpoint }, i) => ({
    ...endpoint,
    code: code === undefined ? undefined : scanGeoCode(code)!,
    isDefault: code === '*',
    seed: stickySeed(wire(owner), `${i}`),
    shift: shift === undefined ? undefined : { isTarget: i % 2 === 0, percent: shift },
  }))
}

/** Failover lists that leave some clients without records. */
function rulesOf({ answers, sticky, closed }: ToySet): SetRules {
  const listOf = (code: string): FailoverList => {
    const groups = ['x', 'y'].map((name) => ({ name, isIdentifier: true, members: [] }))
    return { code: code === '' ? undefined : scanGeoCode(code)!, groups }
  }
  const codes = closed === 'all' ? ['', 'GEO-NA', 'US', 'US-CA'] : [closed!]
  const failover = closed === undefined ? undefined : { lists: codes.map(listOf), exhausted: [] }
  return { answers, sticky, failover }
}

interface World {
  readonly sets: readonly ToySet[]
  readonly policy: { readonly keys: number; readonly isHashed: boolean }
}

async function buildZone(table: SteeringTable, { sets, policy }: World): Promise<ZoneImage> {
  const image = new ZoneImage()
  const zone = image.addZone(wire(APEX))
  const put = (owner: string, type: number, rdata: readonly Uint8Array[]): void => {
    image.putRRset(zone, wire(owner), { type, ttlSeconds: 60, rdata })
  }
  put(APEX, RRType.SOA, [new Uint8Array(22).fill(60, 21)])
  put(APEX, RRType.NS, [wire(`a.${APEX}`)])
  put(`m.${APEX}`, RRType.MX, [Uint8Array.of(0, 1, ...TARGETS[0]!)])
  for (const [i, name] of STEERED.entries()) {
    const [owner, type] = name.split(' ') as [string, (typeof TYPES)[number]]
    const number = scanType(type)!
    const steering = table.compose(candidatesOf(owner, sets[i]!), number, rulesOf(sets[i]!))
    // A name can have only one CNAME.
    const rdata = type === 'CNAME' && steering === undefined ? [TARGETS[0]!] : RDATA[type]
    image.putRRset(zone, wire(owner), { type: number, ttlSeconds: 60, rdata, steering })
  }
  await table.built()
  image.publish()
  signToyZone({ image, zone, apex: APEX }, policy)
  return image
}

interface Found {
  readonly owner: string
  readonly type: number
  readonly ttlSeconds: number
  readonly rdata: Uint8Array
}

function recordsOf(response: Response, section: Section): Found[] {
  const found: Found[] = []
  for (let i = 0; i < response.count; i++) {
    if (response.section[i] !== section) continue
    const at = response.rdataOffset[i]!
    found.push({
      owner: text(response.ownerBytes[i]!, response.ownerOffset[i]),
      type: response.type[i]!,
      ttlSeconds: response.ttlSeconds[i]!,
      rdata: response.rdataBytes[i]!.slice(at, at + response.rdataOctets[i]!),
    })
  }
  return found
}

/** True if `owner` in a reply can have a signature for `signed`: it is that name, or it matches that wildcard. */
function matches(owner: string, signed: string): boolean {
  return owner === signed || (signed.startsWith('*.') && owner.endsWith(signed.slice(1)))
}

/** Returns what is wrong with the signatures of a section; '' = nothing. */
function faultOf(found: readonly Found[], keys: number): string {
  const signatures = found
    .filter(({ type }) => type === RRType.RRSIG)
    .map((record) => {
      return { record, signed: readSignature(record.rdata) }
    })
  const sets = new Map<string, Found[]>()
  for (const record of found) {
    if (record.type === RRType.RRSIG) continue
    const key = `${record.owner} ${record.type}`
    sets.set(key, [...(sets.get(key) ?? []), record])
  }
  let used = 0
  for (const [key, records] of sets) {
    const { owner, type, ttlSeconds } = records[0]!
    const own = signatures.filter(({ record, signed }) => {
      return record.owner === owner && signed.type === type
    })
    used += own.length
    const rdata = records.map((record) => hexOf(record.rdata)).sort()
    const isSigned = ({ signed, record }: { signed: Signed; record: Found }): boolean =>
      signed.rdata.join() === rdata.join() &&
      // The SOA of a negative answer has a lower TTL.
      signed.ttlSeconds >= ttlSeconds &&
      (signed.ttlSeconds === ttlSeconds || type === RRType.SOA) &&
      record.ttlSeconds === ttlSeconds &&
      matches(owner, signed.owner)
    const byKey = new Set(own.map(({ signed }) => signed.key))
    if (own.length !== keys || byKey.size !== keys || !own.every(isSigned)) {
      return `${key}: ${rdata} has ${JSON.stringify(own.map(({ signed }) => signed))}`
    }
  }
  return used === signatures.length ? '' : `${signatures.length - used} signatures of nothing`
}

/** Types in the bitmap, and the next name, of an NSEC or NSEC3. */
function linkOf({ type, rdata }: Found): { next: string; types: string[] } {
  const fields = printRdata(type, rdata).split(' ')
  const at = type === RRType.NSEC ? 0 : 4
  return { next: fields[at]!.toLowerCase(), types: fields.slice(at + 1) }
}

/** Returns why the authority section does not prove that `name` has no records of `qtype`; '' = it does. */
function unproved(
  authority: readonly Found[],
  name: string,
  qtype: string,
  image: ZoneImage,
): string {
  const links = authority.filter(({ type }) => type === RRType.NSEC || type === RRType.NSEC3)
  const owners = new Set(links.map(({ owner }) => owner))
  if (owners.size !== links.length) return 'two records of one owner'
  const isHashed = links.some(({ type }) => type === RRType.NSEC3)
  const keyOf = (of: string): string => (isHashed ? `${hashOf(of)}.${APEX}` : of)
  const covers = (of: string): boolean =>
    links.some((link) => {
      const { next } = linkOf(link)
      const end = isHashed ? `${next}.${APEX}` : next
      const isAfter = compareNames(wire(link.owner), wire(keyOf(of))) < 0
      const isBefore = compareNames(wire(keyOf(of)), wire(end)) < 0
      const isLast = compareNames(wire(end), wire(link.owner)) <= 0
      return isLast ? isAfter || isBefore : isAfter && isBefore
    })
  const lacks = (of: string): boolean => {
    const link = links.find(({ owner }) => owner === keyOf(of))
    const types = link === undefined ? [] : linkOf(link).types
    return link !== undefined && !types.includes(qtype) && !types.includes('CNAME')
  }
  const reader = image.reader()
  const query = question(name, 1)
  reader.matchZone(query, 0)
  if (lacks(name)) return ''
  // An empty non-terminal, or a wildcard.
  const parent = name.slice(name.indexOf('.') + 1)
  for (
    let encloser = parent;
    encloser.endsWith(APEX);
    encloser = encloser.slice(encloser.indexOf('.') + 1)
  ) {
    if (lacks(`*.${encloser}`) && covers(closerTo(encloser, name, isHashed))) return ''
    if (encloser === APEX) break
  }
  const isBelow = links.some((link) => linkOf(link).next.endsWith(`.${name}`))
  return !isHashed && isBelow && covers(name)
    ? ''
    : `not proved by ${JSON.stringify(links.map(linkOf))}`
}

/** The name that must not exist for the wildcard of `encloser` to match `name`. */
function closerTo(encloser: string, name: string, isHashed: boolean): string {
  if (!isHashed) return name
  const labels = name.slice(0, -encloser.length - 1).split('.')
  return `${labels.at(-1)}.${encloser}`
}

/** Follows the CNAMEs of an answer. */
function lastName(answer: readonly Found[], qname: string): string {
  let name = qname
  for (const { owner, type, rdata } of answer) {
    if (type === RRType.CNAME && owner === name) name = text(rdata)
  }
  return name
}

class Site {
  readonly #image: ZoneImage
  readonly #answerer: ZoneAnswerer
  readonly #keys: number

  constructor(image: ZoneImage, answerer: ZoneAnswerer, keys: number) {
    this.#image = image
    this.#answerer = answerer
    this.#keys = keys
  }

  /** Returns what is wrong with the reply to a query; '' = nothing. */
  fault(query: Query, qname: string, qtype: string, isDirect: boolean): string {
    const response = new Response()
    response.reset(query)
    this.#answer(query, response, isDirect)
    const [answer, authority, additional] = [
      Section.Answer,
      Section.Authority,
      Section.Additional,
    ].map((section) => recordsOf(response, section)) as [Found[], Found[], Found[]]
    if (qtype === 'RRSIG' && answer.length > 0) return this.#faultOfDefault(answer)
    for (const section of [answer, authority, additional]) {
      const fault = faultOf(section, this.#keys)
      if (fault !== '') return fault
    }
    const name = lastName(answer, qname)
    const isNegative = authority.some(({ type }) => type === RRType.SOA)
    if (response.rcode === Rcode.NXDOMAIN || !isNegative) return ''
    return unproved(authority, name, qtype, this.#image)
  }

  #answer(query: Query, response: Response, isDirect: boolean): void {
    const { direct, reader } = this.#answerer
    reader.refresh()
    const zone = reader.matchZone(query, 0)
    if (isDirect && direct!.answer(query, response, zone, reader.zoneLabel, true, true)) {
      response.expand(query)
    } else {
      this.#answerer.answer(query, response)
    }
  }

  /** A query for RRSIG has one answer of each set. */
  #faultOfDefault(answer: readonly Found[]): string {
    const signed = answer.map(({ rdata }) => readSignature(rdata))
    const perType = new Map<number, number>()
    for (const { type } of signed) perType.set(type, (perType.get(type) ?? 0) + 1)
    const isHidden = perType.has(RRType.NSEC3)
    const isWhole = [...perType.values()].every((count) => count === this.#keys)
    const isTimed = answer.every(({ ttlSeconds }, i) => ttlSeconds === signed[i]!.ttlSeconds)
    return !isHidden && isWhole && isTimed ? '' : `signatures ${JSON.stringify(signed)}`
  }
}

t.test('the signatures of a reply sign its records, for all clients and names', async (t) => {
  const { table } = createTable()
  const world = fc.record({
    sets: fc.array(setArbitrary, { minLength: STEERED.length, maxLength: STEERED.length }),
    policy: fc.record({ keys: fc.integer({ min: 1, max: 3 }), isHashed: fc.boolean() }),
  })
  const seen = new Set<string>()
  const clients = Object.values(CLIENTS)
  const property = fc.asyncProperty(world, fc.nat(), async (one, seed) => {
    const image = await buildZone(table, one)
    const answerer = new ZoneAnswerer(image.reader(), table.steerer(new Random(seed)))
    const site = new Site(image, answerer, one.policy.keys)
    const pick = new Random(seed)
    for (let i = 0; i < QUERIES; i++) {
      const client = clients[pick.below(clients.length)]!
      const qname = QNAMES[pick.below(QNAMES.length)]!
      const qtype = QTYPES[pick.below(QTYPES.length)]!
      const query = question(qname, scanType(qtype)!)
      query.clientFamily = 1
      query.clientAddress.set(scanAddress(client)!.bytes)
      query.clientBits = 32
      query.dnssecOk = true
      const fault = site.fault(query, qname, qtype, pick.below(2) === 0)
      if (fault !== '') throw new Error(`${qname} ${qtype} of ${client}: ${fault}`)
      seen.add(qtype)
    }
  })
  await fc.assert(property, { numRuns: runs(60) })
  t.equal(seen.size, QTYPES.length)
})
