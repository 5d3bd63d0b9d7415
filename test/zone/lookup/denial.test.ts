import { createHash } from 'node:crypto'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { runWhole } from '../../../src/base/slices.ts'
import { Rcode } from '../../../src/dns/iana/rcodes.ts'
import { printType, RRType, scanType } from '../../../src/dns/iana/types.ts'
import { Response } from '../../../src/dns/message/response.ts'
import { Section } from '../../../src/dns/message/section.ts'
import {
  compareNames,
  isSubdomain,
  lowerName,
  parentName,
  printName,
  scanName,
} from '../../../src/dns/name/name.ts'
import { scanRdata } from '../../../src/dns/rdata/index.ts'
import { ZoneImage } from '../../../src/zone/image/writer.ts'
import { ZoneAnswerer } from '../../../src/zone/lookup/answer.ts'
import { runs } from '../../support/runs.ts'
import { question } from '../../support/zone-names.ts'

/*
 * An oracle for proofs, written from RFC 4035 section 5.4 and RFC 5155 section 8: random zones get a chain, and every
 * negative answer must have all the records that a validator looks for, and no other.
 */

interface Toy {
  readonly apex: string
  /** Owner to types, as the authority has them; glue is left out. */
  readonly names: ReadonlyMap<string, readonly string[]>
}

interface Kind {
  readonly nsec3: boolean
  readonly optOut: boolean
}

const wire = (text: string): Uint8Array => lowerName(scanName(text)!)
const above = (text: string): string => printName(parentName(wire(text)))
const star = (text: string): string => (text === '.' ? '*.' : `*.${text}`)

function hashOf(name: string): string {
  const digest = createHash('sha1').update(wire(name)).digest()
  let bits = ''
  for (const octet of digest) bits += octet.toString(2).padStart(8, '0')
  return bits
    .match(/.{5}/g)!
    .map((five) => Number.parseInt(five, 2).toString(32))
    .join('')
}

/** All names that exist, empty non-terminals included. */
function existing({ apex, names }: Toy): Set<string> {
  const all = new Set([apex])
  for (const name of names.keys()) {
    for (let at = name; at !== apex; at = above(at)) all.add(at)
  }
  return all
}

/** Names that own a link, in order, with the name of each link. */
function linksOf(toy: Toy, { nsec3, optOut }: Kind): [link: string, name: string][] {
  if (!nsec3) {
    const owners = [...toy.names.keys()].sort((a, b) => compareNames(wire(a), wire(b)))
    return owners.map((name) => [name, name])
  }
  const secure = new Map(
    [...toy.names].filter(([name, types]) => {
      const isCut = name !== toy.apex && types.includes('NS') && !types.includes('DS')
      return !(optOut && isCut)
    }),
  )
  const hashed = [...existing({ ...toy, names: secure })].map((name): [string, string] => {
    return [hashOf(name), name]
  })
  return hashed.sort(([a], [b]) => (a < b ? -1 : 1))
}

function imageOf(toy: Toy, kind: Kind): ZoneImage {
  const image = new ZoneImage()
  const zone = image.addZone(wire(toy.apex))
  const put = (owner: string, type: number, text: string): void => {
    const fields = text.split(' ').map((field) => ({ text: field, quoted: false }))
    const rdata = scanRdata(type, fields, wire('.'))
    if (rdata instanceof Error) throw rdata
    image.putRRset(zone, wire(owner), { type, ttlSeconds: 60, rdata: [rdata as Uint8Array] })
  }
  const data: Record<string, [number, string]> = {
    A: [RRType.A, '192.0.2.1'],
    NS: [RRType.NS, 'ns.invalid.'],
    DS: [RRType.DS, `1 13 2 ${'00'.repeat(32)}`],
    SOA: [RRType.SOA, 'a. b. 1 2 3 4 60'],
  }
  for (const [name, types] of toy.names) for (const type of types) put(name, ...data[type]!)
  const links = linksOf(toy, kind)
  const suffix = toy.apex === '.' ? '' : toy.apex
  for (const [i, [link, name]] of links.entries()) {
    const [next] = links[(i + 1) % links.length]!
    const types = [...(toy.names.get(name) ?? []), 'RRSIG'].join(' ')
    if (!kind.nsec3) put(link, RRType.NSEC, `${next} ${types} NSEC`)
    else put(`${link}.${suffix}`, RRType.NSEC3, `1 ${kind.optOut ? 1 : 0} 0 - ${next} ${types}`)
  }
  if (kind.nsec3) put(toy.apex, RRType.NSEC3PARAM, '1 0 0 -')
  runWhole(image.updateChain(zone))
  image.publish()
  return image
}

/** Owners of the links that a complete and minimal proof has. */
function wanted(toy: Toy, kind: Kind, qname: string, qtype: string): Set<string> {
  const links = linksOf(toy, kind)
  const proof = new Set<string>()
  const suffix = toy.apex === '.' ? '' : toy.apex
  const matches = (name: string): boolean => links.some(([, other]) => other === name)
  const add = (name: string): void => {
    const key = kind.nsec3 ? hashOf(name) : name
    const before = links.filter(([link]) => {
      return kind.nsec3 ? link <= key : compareNames(wire(link), wire(key)) <= 0
    })
    const [link] = before.at(-1) ?? links.at(-1)!
    proof.add(kind.nsec3 ? `${link}.${suffix}` : link)
  }
  const all = existing(toy)
  const addEncloser = (from: string): string => {
    let encloser = from
    let closer = ''
    while (!matches(encloser)) {
      closer = encloser
      encloser = above(encloser)
    }
    for (let at = qname; at !== encloser; at = above(at)) closer = at
    add(encloser)
    add(closer)
    return encloser
  }
  const addMissing = (name: string): void => {
    if (!kind.nsec3 || matches(name)) add(name)
    else if (has(addEncloser(name)) && qtype !== 'DS') proof.clear()
  }
  /** Whether the proof shows the wildcard of a name, which a validator then takes for the one that answers. */
  const has = (encloser: string): boolean => proof.has(`${hashOf(star(encloser))}.${suffix}`)
  const cut = cutOf(toy, qname, qtype)
  if (cut !== undefined) {
    if (toy.names.get(cut)!.includes('DS')) return proof
    if (!kind.nsec3 || matches(cut)) add(cut)
    else addEncloser(cut)
    return proof
  }
  if (all.has(qname)) {
    if (!(toy.names.get(qname) ?? []).includes(qtype)) addMissing(qname)
    return proof
  }
  let encloser = qname
  while (!all.has(encloser)) encloser = above(encloser)
  const wildcard = star(encloser)
  const hasWildcard = all.has(wildcard)
  const isAnswered = hasWildcard && (toy.names.get(wildcard) ?? []).includes(qtype)
  if (!kind.nsec3) {
    add(qname)
    if (!isAnswered) add(wildcard)
  } else if (isAnswered) {
    let closer = qname
    while (above(closer) !== encloser) closer = above(closer)
    add(closer)
  } else {
    // Where unsigned delegations made them, neither encloser nor wildcard has a record.
    const provable = addEncloser(encloser)
    if (hasWildcard && matches(wildcard)) add(wildcard)
    else if (hasWildcard && has(provable) && qtype !== 'DS') proof.clear()
    else if (!hasWildcard && !matches(star(provable))) add(star(provable))
    // Nothing can prove that the wildcard higher up does not stand for the name.
    else if (!hasWildcard) proof.clear()
  }
  return proof
}

function cutOf(toy: Toy, qname: string, qtype: string): string | undefined {
  const path: string[] = []
  for (let at = qname; at !== toy.apex; at = above(at)) path.unshift(at)
  return path.find((name) => {
    const isCut = (toy.names.get(name) ?? []).includes('NS')
    return isCut && !(name === qname && qtype === 'DS')
  })
}

const label: fc.Arbitrary<string> = fc.constantFrom('a', 'b', '*', 'm', '!', '~')
const relative = fc.array(label, { minLength: 1, maxLength: 4 })
const types: fc.Arbitrary<string[]> = fc.constantFrom(['A'], ['A'], ['NS'], ['NS', 'DS'])
const qtypes: fc.Arbitrary<string> = fc.constantFrom('A', 'TXT', 'DS')
const apexes: fc.Arbitrary<string> = fc.constantFrom('.', 'example.', 'b.example.')
const content = fc.array(fc.tuple(relative, types), { maxLength: 8 })

function toyOf(
  apex: string,
  records: readonly (readonly [readonly string[], readonly string[]])[],
): Toy {
  const suffix = apex === '.' ? '' : apex
  const names = new Map<string, readonly string[]>([[apex, ['NS', 'SOA']]])
  for (const [labels, of] of records) {
    // A wildcard that delegates is of no use, and what is below a cut is no data of the zone.
    const isWild = labels[0] === '*'
    names.set(`${labels.join('.')}.${suffix}`, isWild ? ['A'] : of)
  }
  for (const name of [...names.keys()]) if (isBelowCut(names, name, apex)) names.delete(name)
  return { apex, names }
}

function isBelowCut(
  names: ReadonlyMap<string, readonly string[]>,
  name: string,
  apex: string,
): boolean {
  for (const [other, of] of names) {
    const isCut = other !== apex && of.includes('NS') && other !== name
    if (isCut && isSubdomain(wire(name), wire(other))) return true
  }
  return false
}

function proofOf(
  answerer: ZoneAnswerer,
  qname: string,
  qtype: string,
): { rcode: number; owners: string[]; authority: string[] } {
  const query = question(qname, scanType(qtype)!)
  query.dnssecOk = true
  const response = new Response()
  response.reset(query)
  answerer.answer(query, response)
  const owners: string[] = []
  const authority: string[] = []
  for (let i = 0; i < response.count; i++) {
    const type = printType(response.type[i]!)
    if (response.section[i] !== Section.Authority) continue
    authority.push(type)
    if (!/^NSEC3?$/.test(type)) continue
    owners.push(printName(response.ownerBytes[i]!, response.ownerOffset[i]!))
  }
  return { rcode: response.rcode, owners: owners.sort(), authority }
}

/** A wildcard that only an unsigned delegation has made, below one that has data: their names may meet in one proof. */
const OPTED_OUT_WILDCARDS: [string, [string[], string[]][], [string[], string][]][] = [
  'a',
  'b',
  'm',
  '!',
  '~',
].map((name) => [
  'example.',
  [
    [['*'], ['A']],
    [['x', '*', name], ['NS']],
  ],
  [
    [['q', name], 'A'],
    [['q', name], 'DS'],
  ],
])

const KINDS: Readonly<Record<string, Kind>> = {
  NSEC: { nsec3: false, optOut: false },
  NSEC3: { nsec3: true, optOut: false },
  'NSEC3 with opt-out': { nsec3: true, optOut: true },
}
for (const [name, kind] of Object.entries(KINDS)) {
  t.test(`proofs are complete and minimal: ${name}`, (t: Test) => {
    const asks = fc.array(fc.tuple(relative, qtypes), {
      minLength: 20,
      maxLength: 20,
    })
    let denied = 0
    fc.assert(
      fc.property(apexes, content, asks, (apex, records, questions) => {
        const toy = toyOf(apex, records)
        const answerer = new ZoneAnswerer(imageOf(toy, kind).reader())
        for (const [labels, qtype] of questions) {
          const qname = `${labels.join('.')}.${apex === '.' ? '' : apex}`
          const { rcode, owners, authority } = proofOf(answerer, qname, qtype)
          if (rcode === Rcode.NXDOMAIN) denied++
          if (owners.length === 0 && authority.includes('SOA')) {
            throw new Error(`${qname} ${qtype}: a SOA without a proof is bogus for BIND`)
          }
          const want = [...wanted(toy, kind, qname, qtype)].sort()
          if (owners.join() !== want.join()) {
            throw new Error(
              `${qname} ${qtype}: has ${owners}, wanted ${want}, names ${JSON.stringify([...toy.names])}`,
            )
          }
        }
      }),
      { numRuns: runs(200), examples: OPTED_OUT_WILDCARDS },
    )
    t.ok(denied > 100, `${denied} names were denied`)
    t.end()
  })
}
