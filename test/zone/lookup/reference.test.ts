import fc from 'fast-check'
import t from 'tap'
import { RRType } from '../../../src/dns/iana/types.ts'
import { Response } from '../../../src/dns/message/response.ts'
import { Section } from '../../../src/dns/message/section.ts'
import { ZoneImage } from '../../../src/zone/image/writer.ts'
import { AnswerStatus, ZoneAnswerer } from '../../../src/zone/lookup/answer.ts'
import { question, text, wire } from '../../support/zone-names.ts'
import {
  lookUpSlowly,
  type ReferenceAnswer,
  type ReferenceRecord,
  type ReferenceZone,
} from './reference-lookup.ts'

// Few labels and deep names, so that random names meet: cuts above data, wildcards above wildcards.
const label = fc.constantFrom('a', 'b', 'c', '*')
const relative = fc.array(label, { maxLength: 4 })
const APEXES = ['example.org.', 'a.example.org.', 'b.a.example.org.', 'example.com.']
const QTYPES = [1, 28, 5, 2, 15, 43, 6, 39, 255]

const name = fc
  .tuple(relative, fc.constantFrom(...APEXES, 'example.net.', 'org.'))
  .map(([labels, apex]) => labels.map((l) => `${l}.`).join('') + apex)

// Long targets of DNAMEs, so that some substitutions exceed 255 octets.
const longName = fc
  .constantFrom(1, 2, 3)
  .map((n) => [...new Array(n).fill('x'.repeat(60)), 'example.org.'].join('.'))

const data = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ type: fc.constantFrom(1, 28), data: fc.constantFrom('1', '2') }),
  },
  { weight: 4, arbitrary: fc.record({ type: fc.constant(5), data: name }) },
  { weight: 2, arbitrary: fc.record({ type: fc.constantFrom(2, 15), data: name }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant(39), data: fc.oneof(name, longName) }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant(43), data: fc.constant('7') }) },
)

const zone = (apex: string) =>
  fc.array(fc.tuple(relative, data), { maxLength: 14 }).map((entries): ReferenceZone => {
    const records: ReferenceRecord[] = [{ owner: apex, type: RRType.SOA, data: '30' }]
    for (const [labels, { type, data }] of entries) {
      const owner = labels.map((l) => `${l}.`).join('') + apex
      const single = type === RRType.CNAME || type === RRType.DNAME
      const same = records.some(
        (r) => r.owner === owner && r.type === type && (single || r.data === data),
      )
      if (!same) records.push({ owner, type, data })
    }
    return { apex, records }
  })

const zones = fc
  .tuple(fc.subarray(APEXES, { minLength: 1 }), fc.tuple(...APEXES.map(zone)))
  .map(([apexes, all]) => all.filter((z) => apexes.includes(z.apex)))

function rdataOf({ type, data }: ReferenceRecord): Uint8Array {
  if (type === RRType.MX) return new Uint8Array([0, 10, ...wire(data)])
  if (type === RRType.NS || type === RRType.CNAME || type === RRType.DNAME) return wire(data)
  if (type === RRType.SOA) return new Uint8Array([0, 0, ...new Array(19).fill(0), Number(data)])
  return new Uint8Array([Number(data)])
}

function dataOf(type: number, rdata: Uint8Array): string {
  if (type === RRType.MX) return text(rdata, 2)
  if (type === RRType.NS || type === RRType.CNAME || type === RRType.DNAME) return text(rdata)
  return String(rdata[rdata.length - 1])
}

function build(zones: readonly ReferenceZone[]): ZoneImage {
  const image = new ZoneImage()
  for (const { apex, records } of zones) {
    const id = image.addZone(wire(apex))
    for (const { owner, type } of records) {
      const rdata = records.filter((r) => r.owner === owner && r.type === type).map(rdataOf)
      image.putRRset(id, wire(owner), { type, ttlSeconds: 60, rdata })
    }
  }
  image.publish()
  return image
}

const STATUS = new Map<AnswerStatus, ReferenceAnswer['status']>([
  [AnswerStatus.Answered, 'answered'],
  [AnswerStatus.NotInZone, 'not-in-zone'],
  [AnswerStatus.ChaseOutside, 'outside'],
  [AnswerStatus.ChainTooLong, 'too-long'],
])

function outcome(
  answerer: ZoneAnswerer,
  response: Response,
  status: AnswerStatus,
): ReferenceAnswer {
  const sections: string[][] = [[], [], []]
  for (let i = 0; i < response.count; i++) {
    const at = response.rdataOffset[i]!
    const rdata = response.rdataBytes[i]!.subarray(at, at + response.rdataOctets[i]!)
    const type = response.type[i]!
    const owner = text(response.ownerBytes[i]!, response.ownerOffset[i])
    sections[response.section[i]!]!.push(`${owner} ${type} ${dataOf(type, rdata)}`)
  }
  return {
    status: STATUS.get(status)!,
    rcode: response.rcode,
    authoritative: response.authoritative,
    answer: sections[Section.Answer]!,
    authority: sections[Section.Authority]!,
    additional: sections[Section.Additional]!.sort(),
    target: status === AnswerStatus.ChaseOutside ? text(answerer.chaseTarget) : '',
  }
}

t.test('lookups agree with a slow and obvious reference on random zones', async (t) => {
  const counts = new Map<string, number>()
  const questions = fc.array(fc.tuple(name, fc.constantFrom(...QTYPES)), {
    minLength: 40,
    maxLength: 40,
  })
  fc.assert(
    fc.property(zones, questions, fc.boolean(), (zones, questions, compacted) => {
      const image = build(zones)
      if (compacted) image.compact()
      const answerer = new ZoneAnswerer(image.reader())
      const response = new Response()
      for (const [qname, qtype] of questions) {
        const query = question(qname, qtype)
        response.reset(query)
        const got = outcome(answerer, response, answerer.answer(query, response))
        const want = lookUpSlowly(zones, qname, qtype)
        if (JSON.stringify(got) !== JSON.stringify(want)) {
          const [g, w] = [JSON.stringify(got), JSON.stringify(want)]
          throw new Error(`${qname} ${qtype}: got ${g}, want ${w}`)
        }
        const kind = `${want.status} ${want.rcode} ${want.authoritative} ${want.answer.length > 0}`
        counts.set(kind, (counts.get(kind) ?? 0) + 1)
      }
    }),
    { numRuns: 400, seed: 20261121 },
  )
  const kinds = [
    'answered 0 true true',
    'answered 0 true false',
    'answered 0 false false',
    'answered 3 true false',
    'answered 3 true true',
    'answered 6 true true',
    'outside 0 true true',
    'too-long 0 true true',
    'not-in-zone 0 false false',
  ]
  for (const kind of kinds) t.ok((counts.get(kind) ?? 0) > 20, `enough cases of: ${kind}`)
})
