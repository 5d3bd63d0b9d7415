import fc from 'fast-check'
import t from 'tap'
import { runWhole } from '../../../src/base/slices.ts'
import { RRClass, RRType } from '../../../src/dns/iana/index.ts'
import { composeMessage } from '../../../src/dns/message/compose-message.ts'
import { HeaderFlag } from '../../../src/dns/message/header.ts'
import type { Message, ResourceRecord } from '../../../src/dns/message/message.ts'
import { parseMessage } from '../../../src/dns/message/parse-message.ts'
import { scanName } from '../../../src/dns/name/name.ts'
import { type RdataField, scanRdata, splitFields } from '../../../src/dns/rdata/index.ts'
import { StepsPlan } from '../../../src/xfr/in/apply-steps.ts'
import {
  type Received,
  type ReceivedStep,
  TransferFault,
  type TransferFilter,
  TransferReader,
} from '../../../src/xfr/in/transfer-reader.ts'
import { VersionView } from '../../../src/xfr/journal/version-view.ts'
import { runs } from '../../support/runs.ts'
import { imageOf, printView } from '../../support/zone-version.ts'

const STEP_RECORDS_MAX = 5000
const STEP_OCTETS_MAX = 64 * 1024 * 1024

const APEX = 'z.example.'
const zone = scanName(APEX)!
const ID = 7

/** A record as a test writes it: `www A 192.0.2.1`; names are relative to the zone. */
function rr(text: string, ttlSeconds = 60): ResourceRecord {
  const [name, typeName, ...rest] = text.split(' ')
  const type = RRType[typeName as keyof typeof RRType]
  const fields: RdataField[] = splitFields(rest.join(' ')) as RdataField[]
  const rdata = scanRdata(type, fields, zone)
  if (!(rdata instanceof Uint8Array)) throw new Error(`bad rdata: ${text}`)
  return { owner: scanName(name!, zone)!, type, rrclass: RRClass.IN, ttlSeconds, rdata }
}

const soa = (serial: number): ResourceRecord => rr(`@ SOA ns host ${serial} 2 3 4 5`)
const A = rr('www A 192.0.2.1')
const B = rr('www A 192.0.2.2')

const OTHER = rr('www.other. A 192.0.2.1')
const OTHER_SOA = rr('other. SOA ns host 1 2 3 4 5')
const OUTSIDE = `records of names outside of zone ${APEX}, the first is www.other.`

function message(answer: readonly ResourceRecord[], change: Partial<Message> = {}): Message {
  return {
    id: ID,
    opcode: 0,
    flags: HeaderFlag.QR | HeaderFlag.AA,
    rcode: 0,
    question: { name: zone, type: RRType.AXFR, rrclass: RRClass.IN },
    answer,
    authority: [],
    additional: [],
    edns: undefined,
    ...change,
  }
}

/** Messages that a test composes once and reads often. */
const composed = new WeakMap<Message, Uint8Array>()

function octetsOf(message: Message): Uint8Array {
  const octets = composed.get(message) ?? composeMessage(message)
  composed.set(message, octets)
  return octets
}

/** What comes of messages; a text = the fault. */
function read(
  messages: readonly Message[],
  serial?: number,
  filter?: TransferFilter,
): Received | string | undefined {
  const reader = new TransferReader({ zone, id: ID, serial, origin: 'test' }, filter)
  let received: Received | undefined
  try {
    for (const one of messages) received = reader.take(octetsOf(one))
    return received
  } catch (error) {
    if (error instanceof TransferFault) return error.message
    throw error
  }
}

/** What came, in short. */
function show(received: Received | string | undefined): string {
  if (received === undefined) return 'more'
  if (typeof received === 'string') return `fault: ${received}`
  if (received.kind === 'current') return `current ${received.serial}`
  const notes = received.warnings.map(({ message }) => `; ${message}`).join('')
  const { serial } = received
  if (received.kind === 'whole') return `whole ${serial}: ${received.records.recordCount}${notes}`
  const steps = received.steps.map((step) => {
    const counts = `-${step.removed.length}+${step.added.length}`
    return `${step.fromSerial}>${step.toSerial}${counts}`
  })
  return `steps ${serial}: ${steps.join(' ')}${notes}`
}

const TABLE: { name: string; serial?: number; given: ResourceRecord[]; want: string }[] = [
  { name: 'a whole zone', given: [soa(2), A, soa(2)], want: 'whole 2: 2' },
  { name: 'a zone with nothing but its SOA', given: [soa(2), soa(2)], want: 'whole 2: 1' },
  { name: 'an unfinished zone', given: [soa(2), A], want: 'more' },
  { name: 'a SOA alone is no zone', given: [soa(2)], want: 'more' },
  { name: 'no newer version', serial: 2, given: [soa(2)], want: 'current 2' },
  { name: 'an older version', serial: 3, given: [soa(2)], want: 'current 2' },
  { name: 'a newer version is still to come', serial: 1, given: [soa(2)], want: 'more' },
  { name: 'a whole zone for an IXFR', serial: 1, given: [soa(2), A, soa(2)], want: 'whole 2: 2' },
  {
    name: 'an empty zone for an IXFR',
    serial: 1,
    given: [soa(2), soa(2)],
    want: 'whole 2: 1',
  },
  {
    name: 'one difference',
    serial: 1,
    given: [soa(2), soa(1), A, soa(2), B, soa(2)],
    want: 'steps 2: 1>2-1+1',
  },
  {
    name: 'two differences',
    serial: 1,
    given: [soa(3), soa(1), A, soa(2), B, soa(2), B, soa(3), soa(3)],
    want: 'steps 3: 1>2-1+1 2>3-1+0',
  },
  {
    name: 'differences over the end of the circle of serials',
    serial: 0xffffffff,
    given: [soa(1), soa(0xffffffff), soa(1), B, soa(1)],
    want: 'steps 1: 4294967295>1-0+1',
  },
  {
    name: 'differences that do not follow each other',
    serial: 1,
    given: [soa(3), soa(1), A, soa(2), B, soa(9)],
    want: 'fault: the differences are not consecutive',
  },
  { name: 'an unfinished difference', serial: 1, given: [soa(2), soa(1), A, soa(2)], want: 'more' },
  {
    name: 'something behind the end',
    given: [soa(2), soa(2), A],
    want: 'fault: records follow the last SOA',
  },
  { name: 'no SOA first', given: [A, soa(2)], want: 'fault: the first record is not the SOA' },
  {
    name: 'another SOA last',
    given: [soa(2), A, soa(3)],
    want: 'fault: the transfer ends with another SOA',
  },
  {
    name: 'names outside of the zone',
    given: [soa(2), OTHER, A, OTHER_SOA, rr('z.other. NS ns'), B, soa(2)],
    want: `whole 2: 3; ignored 3 ${OUTSIDE}; remove them at the primary`,
  },
  {
    name: 'names outside of the zone in a difference',
    serial: 1,
    given: [soa(2), soa(1), A, OTHER, soa(2), B, OTHER_SOA, soa(2)],
    want: `steps 2: 1>2-1+1; ignored 2 ${OUTSIDE}; remove them at the primary`,
  },
  {
    name: 'a SOA outside of the zone is not the first one',
    given: [OTHER_SOA, soa(2)],
    want: 'fault: the first record is not the SOA',
  },
  {
    name: 'a SOA below the apex',
    given: [soa(2), rr('a SOA b c 1 2 3 4 5')],
    want: 'fault: a SOA is not at the apex',
  },
  {
    name: 'a record of another class',
    given: [soa(2), { ...A, rrclass: RRClass.CH }],
    want: 'fault: a record is not of class IN',
  },
  {
    name: 'a type that no zone has',
    given: [soa(2), { ...A, type: RRType.ANY }],
    want: 'fault: type ANY is not allowed in a zone',
  },
]
for (const { name, serial, given, want } of TABLE) {
  t.test(`${name}, however it is cut into messages`, async (t) => {
    t.equal(show(read([message(given)], serial)), want, 'one message')
    // A SOA alone ends an IXFR where it is not newer; elsewhere the cuts make no difference.
    const singles = given.map((record) => message([record], { question: undefined }))
    t.equal(show(read(singles, serial)), want, 'a message for each record')
  })
}

const BAD_MESSAGES = [
  { name: 'another id', change: { id: 8 }, want: 'the reply is for another question' },
  { name: 'a query', change: { flags: 0 }, want: 'the message is not a reply' },
  { name: 'an error', change: { rcode: 5 }, want: 'the primary answered REFUSED' },
  {
    name: 'a cut message',
    change: { flags: HeaderFlag.QR | HeaderFlag.TC },
    want: 'a message is truncated',
  },
  { name: 'no records', change: { answer: [] }, want: 'a message has no records' },
  {
    name: 'another zone',
    change: { question: { name: scanName('y.example.')!, type: 252, rrclass: 1 } },
    want: 'the reply is about another zone',
  },
]
for (const { name, change, want } of BAD_MESSAGES) {
  t.test(`${name} is a fault`, async (t) => {
    t.equal(read([message([soa(2), A], change)]), want)
  })
}

t.test('whatever the octets are, there is a result or a fault', async () => {
  const good = composeMessage(message([soa(3), soa(1), A, soa(2), B, soa(2), B, soa(3), soa(3)]))
  const property = fc.property(fc.nat(good.length - 1), fc.nat(255), (at, value) => {
    const octets = good.slice()
    octets[at] = value
    const isMessage = parseMessage(octets) !== undefined
    const reader = new TransferReader({ zone, id: ID, serial: 1, origin: 'test' })
    try {
      reader.take(octets)
    } catch (error) {
      const isFault = error instanceof TransferFault
      return (
        isFault &&
        (isMessage ? !/malformed$/.test(error.message) || /SOA/.test(error.message) : true)
      )
    }
    return isMessage
  })
  fc.assert(property, { seed: 3, numRuns: runs(2000) })
})

const ZONE_TEXT = `@ 60 SOA ns host 1 2 3 4 5
@ 60 NS ns
www 60 A 192.0.2.1
www 60 A 192.0.2.9
alias 60 CNAME www
`

/** Applies steps to the zone above; returns its content, or the fault. */
function apply(steps: readonly Partial<ReceivedStep>[], serial: number): string[] | string {
  const { image, version } = imageOf(ZONE_TEXT, APEX)
  const plan = new StepsPlan(VersionView.open(version)!)
  const whole = steps.map((step) => ({
    removed: [],
    added: [],
    fromSerial: 1,
    toSerial: 2,
    ...step,
  }))
  try {
    runWhole(plan.work(whole, soa(serial)))
  } catch (error) {
    if (error instanceof TransferFault) return error.message
    throw error
  }
  runWhole(plan.write(image, image.findZone(zone)!))
  image.publish()
  const { buffer } = image.handle
  const view = VersionView.open({ zone, serial, buffer, imageVersion: image.version })!
  const texts: string[] = [printView(view.soa()!).split(' ')[5]!]
  for (const record of view.content()) texts.push(printView(record))
  return texts.sort()
}

const CONTENT = [
  'alias.z.example. 60 CNAME www.z.example.',
  'www.z.example. 60 A 192.0.2.1',
  'www.z.example. 60 A 192.0.2.9',
  'z.example. 60 NS ns.z.example.',
]

t.test('differences are taken in one after the other', async (t) => {
  const steps = [
    { removed: [A], added: [B, rr('new TXT "x"')] },
    { removed: [rr('new TXT "x"'), B], added: [A] },
  ]
  t.strictSame(apply(steps, 3), ['3', ...CONTENT])
  t.strictSame(apply([{ removed: [rr('alias CNAME www')] }], 2), ['2', ...CONTENT.slice(1)])
  const retimed = [rr('www A 192.0.2.1', 61), rr('www A 192.0.2.9', 61)]
  const times = { removed: [A, rr('www A 192.0.2.9')], added: retimed }
  t.match(apply([times], 2), ['2', CONTENT[0], 'www.z.example. 61 A 192.0.2.1'])
  const upper = { ...A, owner: scanName('WWW.Z.example.')! }
  t.strictSame(apply([{ removed: [upper] }], 2), ['2', CONTENT[0], ...CONTENT.slice(2)])
})

const UNFIT = [
  {
    name: 'removes a missing record',
    step: { removed: [B] },
    want: /removes a missing record/,
  },
  { name: 'adds to a CNAME', step: { added: [rr('alias TXT "x"')] }, want: /invalid zone/ },
  {
    name: 'adds a CNAME beside others',
    step: { added: [rr('www CNAME x')] },
    want: /invalid zone/,
  },
  { name: 'adds a second CNAME', step: { added: [rr('alias CNAME x')] }, want: /invalid zone/ },
  {
    name: 'adds NSEC3 with too many iterations',
    step: { added: [{ ...rr('@ NSEC3PARAM 1 0 151 -') }] },
    want: /NSEC3PARAM has 151 iterations; at most 150 are accepted/,
  },
]
for (const { name, step, want } of UNFIT) {
  t.test(`a difference that ${name} is a fault`, async (t) => {
    t.match(apply([step], 2), want)
  })
}

const LARGE = { ...A, type: 65_280, rdata: new Uint8Array(60_000) }
const FEW_STEPS: TransferFilter = {
  keeps: () => true,
  recordsMax: Number.POSITIVE_INFINITY,
  octetsMax: Number.POSITIVE_INFINITY,
  seenRecordsMax: Number.POSITIVE_INFINITY,
  seenOctetsMax: Number.POSITIVE_INFINITY,
  stepRecordsMax: STEP_RECORDS_MAX,
}
const TOO_MANY = [
  { name: 'records', record: A, count: STEP_RECORDS_MAX - 2, inMessage: 100 },
  { name: 'octets', record: LARGE, count: Math.floor(STEP_OCTETS_MAX / 60_100), inMessage: 1 },
]
for (const { name, record, count, inMessage } of TOO_MANY) {
  t.test(`differences have so many ${name}, and no more`, async (t) => {
    const some = message(Array.from({ length: inMessage }, () => record))
    const rest = Array.from({ length: count % inMessage }, () => message([record]))
    const full = Array.from({ length: Math.floor(count / inMessage) }, () => some)
    const all = [message([soa(2), soa(1)]), ...full, ...rest]
    t.equal(show(read(all, 1, FEW_STEPS)), 'more')
    t.equal(show(read([...all, some, some, some], 1, FEW_STEPS)), 'fault: too many differences')
    t.equal(
      show(read([message([soa(2), A]), ...full, some, some, some], 1, FEW_STEPS)),
      'more',
      'a zone may',
    )
  })
}

t.test('a CNAME may come in the place of what goes', async (t) => {
  const removed = [A, rr('www A 192.0.2.9')]
  t.match(apply([{ removed, added: [rr('www CNAME x')] }], 2), [
    '2',
    CONTENT[0],
    'www.z.example. 60 CNAME x.z.example.',
  ])
})
