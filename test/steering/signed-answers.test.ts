import fc from 'fast-check'
import t from 'tap'
import { Random } from '../../src/base/random.ts'
import type { SigningKey } from '../../src/dns/dnssec/dnskey.ts'
import { coveredType, originalTtlOf, tagOf, verifySet } from '../../src/dns/dnssec/rrsig.ts'
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
import { KSK, SigningStage, ZSK } from '../signing/zone/signing-stage.ts'
import { runs } from '../support/runs.ts'
import { hashOf, hexOf, readSignature, signToyZone } from '../support/toy-signer.ts'
import { question, text, wire } from '../support/zone-names.ts'
import { CLIENTS, createTable } from './stage.ts'

/*
 * Random steered sets in a signed zone: whatever a client gets, each RRset of the reply is exactly what its signatures
 * sign, and if steering chose no records, the proof says so.
 */

const APEX = 'example.'
const RDATA_MAX = 4
/** Of one version of a random zone. */
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
const PLACES = Object.values(CLIENTS)
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

type PutSet = (
  owner: string,
  type: number,
  rdata: readonly Uint8Array[],
  words?: Uint32Array,
) => void

/** Puts all RRsets of a zone but the SOA. `sets`: those of STEERED. */
async function putSets(table: SteeringTable, sets: readonly ToySet[], put: PutSet): Promise<void> {
  put(APEX, RRType.NS, [wire(`a.${APEX}`)])
  put(`m.${APEX}`, RRType.MX, [Uint8Array.of(0, 1, ...TARGETS[0]!)])
  for (const [i, name] of STEERED.entries()) {
    const [owner, type] = name.split(' ') as [string, (typeof TYPES)[number]]
    const number = scanType(type)!
    const steering = table.compose(candidatesOf(owner, sets[i]!), number, rulesOf(sets[i]!))
    // A name can have only one CNAME.
    const rdata = type === 'CNAME' && steering === undefined ? [TARGETS[0]!] : RDATA[type]
    put(owner, number, rdata, steering)
  }
  await table.built()
}

/** How a test reads the signatures of a zone. */
interface Signatures {
  /** Signatures of each answer of an RRset of that type. */
  keys(type: number): number
  typeOf(rrsig: Uint8Array): number
  /** Identifies the signing key. */
  keyOf(rrsig: Uint8Array): number
  ttlOf(rrsig: Uint8Array): number
  /** True if it signs exactly these records, apart from their TTL. */
  signs(rrsig: Uint8Array, records: readonly Found[]): boolean
}

function toySignatures(keys: number): Signatures {
  return {
    keys: () => keys,
    typeOf: (rrsig) => readSignature(rrsig).type,
    keyOf: (rrsig) => readSignature(rrsig).key,
    ttlOf: (rrsig) => readSignature(rrsig).ttlSeconds,
    signs: (rrsig, records) => {
      const signed = readSignature(rrsig)
      const rdata = records.map((record) => hexOf(record.rdata)).sort()
      return signed.rdata.join() === rdata.join() && matches(records[0]!.owner, signed.owner)
    },
  }
}

/** The keys of the stage that sign RRsets of that type. */
function signersOf(type: number): readonly SigningKey[] {
  if (type === RRType.DNSKEY) return [KSK]
  return type === RRType.CDS || type === RRType.CDNSKEY ? [KSK, ZSK] : [ZSK]
}

/** Verifies each signature of a set once. */
function realSignatures(): Signatures {
  const known = new Map<string, boolean>()
  return {
    keys: (type) => signersOf(type).length,
    typeOf: coveredType,
    keyOf: tagOf,
    ttlOf: originalTtlOf,
    signs: (rrsig, records) => {
      const { owner, type, ttlSeconds } = records[0]!
      const rdata = records.map((record) => record.rdata)
      const key = [owner, hexOf(rrsig), ...rdata.map(hexOf).sort()].join()
      const set = { owner: wire(owner), type, ttlSeconds, rdata }
      const isRight =
        known.get(key) ?? signersOf(type).some(({ dnskey }) => verifySet(set, rrsig, dnskey))
      known.set(key, isRight)
      return isRight
    },
  }
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
function faultOf(found: readonly Found[], signatures: Signatures): string {
  const all = found.filter(({ type }) => type === RRType.RRSIG)
  const sets = new Map<string, Found[]>()
  for (const record of found) {
    if (record.type === RRType.RRSIG) continue
    const key = `${record.owner} ${record.type}`
    sets.set(key, [...(sets.get(key) ?? []), record])
  }
  let used = 0
  for (const [key, records] of sets) {
    const { owner, type, ttlSeconds } = records[0]!
    const own = all.filter((one) => one.owner === owner && signatures.typeOf(one.rdata) === type)
    used += own.length
    const isRight = ({ rdata, ttlSeconds: ttl }: Found): boolean => {
      const signedTtl = signatures.ttlOf(rdata)
      // The SOA of a negative answer has a lower TTL.
      const isTimed = signedTtl === ttlSeconds || (type === RRType.SOA && signedTtl > ttlSeconds)
      return isTimed && ttl === ttlSeconds && signatures.signs(rdata, records)
    }
    const byKey = new Set(own.map(({ rdata }) => signatures.keyOf(rdata)))
    if (own.length !== signatures.keys(type) || byKey.size !== own.length || !own.every(isRight)) {
      return `${key}: ${records.map(({ rdata }) => hexOf(rdata))} has ${own.length} signatures`
    }
  }
  return used === all.length ? '' : `${all.length - used} signatures of nothing`
}

/** Types in the bitmap, and the next name, of an NSEC or NSEC3. */
function linkOf({ type, rdata }: Found): { next: string; types: string[] } {
  const fields = printRdata(type, rdata).split(' ')
  const at = type === RRType.NSEC ? 0 : 4
  return { next: fields[at]!.toLowerCase(), types: fields.slice(at + 1) }
}

/** Returns why the authority section does not prove that `name` has no records of `qtype`; '' = it does. */
function unproved(authority: readonly Found[], name: string, qtype: string): string {
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
  readonly #answerer: ZoneAnswerer
  readonly #signatures: Signatures

  constructor(answerer: ZoneAnswerer, signatures: Signatures) {
    this.#answerer = answerer
    this.#signatures = signatures
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
      const fault = faultOf(section, this.#signatures)
      if (fault !== '') return fault
    }
    const name = lastName(answer, qname)
    const isNegative = authority.some(({ type }) => type === RRType.SOA)
    if (response.rcode === Rcode.NXDOMAIN || !isNegative) return ''
    return unproved(authority, name, qtype)
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
    const { keys, typeOf, ttlOf } = this.#signatures
    const perType = new Map<number, number>()
    for (const { rdata } of answer) {
      perType.set(typeOf(rdata), (perType.get(typeOf(rdata)) ?? 0) + 1)
    }
    const isHidden = perType.has(RRType.NSEC3)
    const isWhole = [...perType].every(([type, count]) => count === keys(type))
    const isTimed = answer.every(({ ttlSeconds, rdata }) => ttlSeconds === ttlOf(rdata))
    return !isHidden && isWhole && isTimed ? '' : `signatures of ${[...perType]}`
  }

  /** Sends random queries of random clients. @throws Error that names a wrong reply. */
  test(random: Random): void {
    for (let i = 0; i < QUERIES; i++) {
      const client = PLACES[random.below(PLACES.length)]!
      const qname = QNAMES[random.below(QNAMES.length)]!
      const qtype = QTYPES[random.below(QTYPES.length)]!
      const query = question(qname, scanType(qtype)!)
      query.clientFamily = 1
      query.clientAddress.set(scanAddress(client)!.bytes)
      query.clientBits = 32
      query.dnssecOk = true
      const fault = this.fault(query, qname, qtype, random.below(2) === 0)
      if (fault !== '') throw new Error(`${qname} ${qtype} of ${client}: ${fault}`)
    }
  }
}

const someSets = fc.array(setArbitrary, { minLength: STEERED.length, maxLength: STEERED.length })

t.test('the signatures of a reply sign its records, for all clients and names', async (t) => {
  const { table } = createTable()
  const policy = fc.record({ keys: fc.integer({ min: 1, max: 3 }), isHashed: fc.boolean() })
  const property = fc.asyncProperty(someSets, policy, fc.nat(), async (sets, policy, seed) => {
    const image = new ZoneImage()
    const zone = image.addZone(wire(APEX))
    const put: PutSet = (owner, type, rdata, steering) => {
      image.putRRset(zone, wire(owner), { type, ttlSeconds: 60, rdata, steering })
    }
    put(APEX, RRType.SOA, [new Uint8Array(22).fill(60, 21)])
    await putSets(table, sets, put)
    image.publish()
    signToyZone({ image, zone, apex: APEX }, policy)
    const answerer = new ZoneAnswerer(image.reader(), table.steerer(new Random(seed)))
    new Site(answerer, toySignatures(policy.keys)).test(new Random(seed))
  })
  await fc.assert(property, { numRuns: runs(32) })
  t.end()
})

t.test('so do those of the signer, also after changes', async (t) => {
  const { table } = createTable()
  const denial = fc.constantFrom('nsec' as const, 'nsec3' as const)
  const versions = fc.array(someSets, { minLength: 1, maxLength: 3 })
  const property = fc.asyncProperty(versions, denial, fc.nat(), async (all, denial, seed) => {
    const stage = new SigningStage({ denial })
    const answerer = new ZoneAnswerer(stage.image.reader(), table.steerer(new Random(seed)))
    const site = new Site(answerer, realSignatures())
    for (const [i, sets] of all.entries()) {
      await putSets(table, sets, (owner, type, rdata, steering) => {
        stage.put(owner, type, rdata, 60, steering)
      })
      await stage.publish()
      site.test(new Random(seed + i))
    }
  })
  await fc.assert(property, { numRuns: runs(12) })
  t.end()
})
