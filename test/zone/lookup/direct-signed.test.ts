import { createHash } from 'node:crypto'
import fc from 'fast-check'
import t from 'tap'
import { runWhole } from '../../../src/base/slices.ts'
import { RRType } from '../../../src/dns/iana/types.ts'
import { compose, uncompressedOctets } from '../../../src/dns/message/compose.ts'
import { parseMessage } from '../../../src/dns/message/parse-message.ts'
import { Protocol, type Query } from '../../../src/dns/message/query.ts'
import { Response } from '../../../src/dns/message/response.ts'
import { compareNames } from '../../../src/dns/name/name.ts'
import { encodeDirectory } from '../../../src/zone/image/signature-directory.ts'
import { ZoneImage } from '../../../src/zone/image/writer.ts'
import { ZoneAnswerer } from '../../../src/zone/lookup/answer.ts'
import { runs } from '../../support/runs.ts'
import { question, wire } from '../../support/zone-names.ts'

/*
 * Random signed zones: an answer of the direct form has the same records as that of `ZoneAnswerer`, which the other
 * tests compare with the RFCs.
 */

interface Form {
  readonly denial: 'none' | 'nsec' | 'nsec3' | 'opt-out'
  /** Signatures of each RRset; their octets. */
  readonly signatures: number
  readonly signatureOctets: number
  readonly hasDirectory: boolean
}

interface Content {
  readonly labels: readonly string[]
  readonly kind: 'A' | 'TXT' | 'CNAME' | 'OUT' | 'NS' | 'DS' | 'BARE'
  readonly count: number
  readonly target: Name
}

/** The name of the record with that number, or a random one. */
type Name = number | readonly string[]

const APEX = 'zone.example.'
const BASE32HEX = '0123456789abcdefghijklmnopqrstuv'
const nameOf = (labels: readonly string[]): string => [...labels, APEX].join('.')
const labelsOf = (name: Name, records: readonly Content[]): readonly string[] => {
  return typeof name === 'number' ? (records[name]?.labels ?? []) : name
}

function hashOf(name: string): string {
  const bits = [...createHash('sha1').update(wire(name)).digest()]
    .map((octet) => octet.toString(2).padStart(8, '0'))
    .join('')
  return bits
    .match(/.{5}/g)!
    .map((five) => BASE32HEX[Number.parseInt(five, 2)])
    .join('')
}

/** By owner and type: rdata. */
type Sets = Map<string, Map<number, Uint8Array[]>>

function contentOf(records: readonly Content[]): Sets {
  const sets: Sets = new Map()
  const numbers = new Uint8Array(20).fill(7)
  const soa = Uint8Array.of(...wire(`ns.${APEX}`), ...wire(`box.${APEX}`), ...numbers)
  sets.set(APEX, new Map([[RRType.SOA, [soa]]]))
  sets.get(APEX)!.set(RRType.NS, [wire('ns.invalid.')])
  sets.get(APEX)!.set(RRType.DNSKEY, [new Uint8Array(68).fill(1)])
  for (const { labels, kind, count, target: name } of records) {
    const target = labelsOf(name, records)
    const of = new Map<number, Uint8Array[]>()
    const each = (make: (i: number) => Uint8Array): Uint8Array[] =>
      Array.from({ length: count }, (_, i) => make(i))
    if (kind === 'A')
      of.set(
        RRType.A,
        each((i) => Uint8Array.of(192, 0, 2, i)),
      )
    if (kind === 'TXT')
      of.set(
        RRType.TXT,
        each((i) => Uint8Array.of(2, 65, i)),
      )
    if (kind === 'CNAME') of.set(RRType.CNAME, [wire(nameOf(target))])
    if (kind === 'OUT') of.set(RRType.CNAME, [wire('other.example.')])
    if (kind === 'NS' || kind === 'DS') of.set(RRType.NS, [wire(nameOf(['ns', ...target]))])
    if (kind === 'DS') of.set(RRType.DS, [new Uint8Array(36).fill(2)])
    if (of.size > 0) sets.set(nameOf(labels), of)
  }
  return sets
}

function addDenial(sets: Sets, { denial }: Form): void {
  if (denial === 'none') return
  const bitmap = Uint8Array.of(0, 1, 0x40)
  if (denial === 'nsec') {
    const owners = [...sets.keys()].sort((a, b) => compareNames(wire(a), wire(b)))
    for (const [i, owner] of owners.entries()) {
      const next = wire(owners[(i + 1) % owners.length]!)
      sets.get(owner)!.set(RRType.NSEC, [Uint8Array.of(...next, ...bitmap)])
    }
    return
  }
  const names = new Set<string>()
  for (const [owner, of] of sets) {
    const isUnsigned = owner !== APEX && of.has(RRType.NS) && !of.has(RRType.DS)
    if (isUnsigned && denial === 'opt-out') continue
    for (let at = owner; at !== APEX; at = at.slice(at.indexOf('.') + 1)) names.add(at)
    names.add(APEX)
  }
  sets.get(APEX)!.set(RRType.NSEC3PARAM, [Uint8Array.of(1, 0, 0, 0, 0)])
  for (const name of names) {
    const rdata = Uint8Array.of(1, 0, 0, 0, 0, 20, ...new Uint8Array(20), ...bitmap)
    sets.set(nameOf([hashOf(name)]), new Map([[RRType.NSEC3, [rdata]]]))
  }
}

/** The signatures of a name, in the order of types, or mixed if no directory finds them. */
function signaturesOf(types: readonly number[], form: Form): Uint8Array[] {
  const made: Uint8Array[] = []
  for (const type of types) {
    for (let i = 0; i < form.signatures; i++) {
      const head = [type >> 8, type, 13, i, ...new Uint8Array(14)]
      const octets = new Uint8Array(form.signatureOctets).fill(type ^ i)
      made.push(Uint8Array.of(...head, ...wire(APEX), ...octets))
    }
  }
  return form.hasDirectory ? made : made.sort((a, b) => a[3]! - b[3]!)
}

function imageOf(records: readonly Content[], form: Form): ZoneImage {
  const sets = contentOf(records)
  addDenial(sets, form)
  const image = new ZoneImage()
  const zone = image.addZone(wire(APEX))
  for (const [owner, of] of sets) {
    for (const [type, rdata] of of)
      image.putRRset(zone, wire(owner), { type, ttlSeconds: 60 + type, rdata })
    if (form.signatures === 0) continue
    const types = [...of.keys()].sort((a, b) => a - b)
    const steering = encodeDirectory(
      types.map((type, i) => ({
        type,
        signaturesPerAnswer: form.signatures,
        default: { signature: i * form.signatures, ttlSeconds: 60, rdataIndexes: [] },
        answers: [],
      })),
    )
    image.putRRset(zone, wire(owner), {
      type: RRType.RRSIG,
      ttlSeconds: 60,
      rdata: signaturesOf(types, form),
      ...(form.hasDirectory ? { steering } : {}),
    })
  }
  runWhole(image.updateChain(zone))
  image.publish()
  return image
}

function ask(name: string, qtype: number, payloadOctets: number): Query {
  const query = question(name, qtype)
  const end = 12 + query.qnameOctets
  query.packet = new Uint8Array(end + 4)
  query.packet.set(query.qname.subarray(0, query.qnameOctets), 12)
  query.packet.set([qtype >> 8, qtype, 0, 1], end)
  query.packetOctets = end + 4
  query.questionOctets = query.qnameOctets + 4
  query.hasEdns = true
  query.dnssecOk = true
  query.payloadOctets = payloadOctets
  query.protocol = Protocol.Udp
  return query
}

interface Reply {
  readonly octets: number
  readonly wholeOctets: number
  readonly text: string
}

function replyOf(query: Query, response: Response): Reply {
  const wholeOctets = uncompressedOctets(query, response)
  const out = new Uint8Array(65_535)
  const octets = compose(query, response, out, query.payloadOctets)
  const message = parseMessage(out.subarray(0, octets))
  const text = JSON.stringify(message, (_, value: unknown) => {
    return value instanceof Uint8Array ? Buffer.from(value).toString('hex') : value
  })
  return { octets, wholeOctets, text }
}

const label = fc.constantFrom('a', 'b', '*', '*', '!', 'a!')
const relative = fc.array(label, { minLength: 1, maxLength: 3 })
const name: fc.Arbitrary<Name> = fc.oneof(relative, fc.nat(11), fc.nat(11))
const contents: fc.Arbitrary<Content[]> = fc.array(
  fc.record({
    labels: relative,
    kind: fc.constantFrom('A', 'A', 'A', 'TXT', 'CNAME', 'CNAME', 'OUT', 'NS', 'DS', 'BARE'),
    count: fc.integer({ min: 1, max: 12 }),
    target: name,
  }),
  { minLength: 6, maxLength: 12 },
)
const forms: fc.Arbitrary<Form> = fc.record({
  denial: fc.constantFrom('nsec', 'nsec', 'nsec3', 'opt-out', 'none'),
  signatures: fc.constantFrom(0, 1, 1, 2),
  signatureOctets: fc.constantFrom(64, 256),
  hasDirectory: fc.boolean(),
})
const questions = fc.array(
  fc.tuple(
    fc.oneof(name, fc.array(label, { maxLength: 4 })),
    fc.constantFrom(
      RRType.A,
      RRType.A,
      RRType.A,
      RRType.TXT,
      RRType.AAAA,
      RRType.SOA,
      RRType.DNSKEY,
      RRType.MX,
    ),
    fc.constantFrom(512, 900, 1232, 4096, 65_535),
  ),
  { minLength: 30, maxLength: 30 },
)

t.test('signed answers of the direct form have the records of the general one', (t) => {
  const counts = { direct: 0, proved: 0, wildcards: 0, aliases: 0, truncated: 0 }
  fc.assert(
    fc.property(contents, forms, questions, (records, form, asked) => {
      const reader = imageOf(records, form).reader()
      const answerer = new ZoneAnswerer(reader)
      for (const [asking, qtype, payloadOctets] of asked) {
        const labels = labelsOf(asking, records)
        const query = ask(nameOf(labels), qtype, payloadOctets)
        const general = new Response()
        general.reset(query)
        answerer.answer(query, general)
        const response = new Response()
        response.reset(query)
        const zone = reader.matchZone(query, 0)
        const { direct } = response
        if (answerer.direct!.answer(query, response, zone, labels.length, true, true)) {
          counts.direct++
          if (direct.proofCount > 0) counts.proved++
          if (direct.proofCount > 0 && direct.soaOffset === 0) counts.wildcards++
          if (direct.aliasCount > 0) counts.aliases++
        } else answerer.answer(query, response)
        const hasProofs = direct.proofCount > 0
        const want = replyOf(query, general)
        const got = replyOf(query, response)
        if (response.truncated) counts.truncated++
        if (got.text !== want.text || got.wholeOctets !== want.wholeOctets) {
          throw new Error(`${nameOf(labels)} ${qtype}: ${got.text}, wanted ${want.text}`)
        }
        // Owners of proofs are only compressed with the qname.
        const isLong = got.octets > (hasProofs ? payloadOctets : want.octets)
        if (isLong || got.octets < want.octets) {
          throw new Error(`${nameOf(labels)} ${qtype}: ${got.octets} octets, wanted ${want.octets}`)
        }
      }
    }),
    { numRuns: runs(1500) },
  )
  for (const [name, count] of Object.entries(counts)) t.ok(count > 50, `${name}: ${count}`)
  t.end()
})
