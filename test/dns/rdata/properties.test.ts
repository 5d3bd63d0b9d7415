import fc from 'fast-check'
import t from 'tap'
import { printType, scanType } from '../../../src/dns/iana/index.ts'
import { ROOT_NAME } from '../../../src/dns/name/name.ts'
import { parseName } from '../../../src/dns/name/parse-name.ts'
import {
  isWellFormed,
  NameLayout,
  parseRdata,
  printRdata,
  RdataError,
  rdataNameLayout,
  scanRdata,
  splitFields,
} from '../../../src/dns/rdata/index.ts'
import { arbitraryOctets } from '../../support/arbitrary.ts'
import { arbitraryRdata, knownTypes } from '../../support/arbitrary-rdata.ts'
import { rareRdataVectors } from './rare-rdata-vectors.ts'
import { rdataVectors } from './rdata-vectors.ts'

function scan(type: number, text: string): Uint8Array | RdataError {
  return scanRdata(type, splitFields(text) ?? [], ROOT_NAME)
}

function same(a: Uint8Array | RdataError | undefined, b: Uint8Array): boolean {
  return a instanceof Uint8Array && Buffer.compare(a, b) === 0
}

t.test('every known type is drawn below', (t) => {
  t.strictSame([...arbitraryRdata.keys()].sort(), [...knownTypes].sort())
  t.end()
})

for (const [type, arbitrary] of arbitraryRdata) {
  t.test(`${printType(type)} is the same after parse, and after print and scan`, (t) => {
    fc.assert(
      fc.property(arbitrary, (rdata) => {
        const text = printRdata(type, rdata)
        return (
          same(parseRdata(type, rdata, 0, rdata.length), rdata) &&
          !text.startsWith('\\#') &&
          !/[^\x20-\x7e]/.test(text) &&
          same(scan(type, text), rdata)
        )
      }),
      { seed: type, numRuns: 60 },
    )
    t.pass('holds')
    t.end()
  })
}

/** Parses in the middle of a packet; whatever comes out must print and read back. */
function staysWhole(type: number, octets: Uint8Array): boolean {
  const packet = new Uint8Array(octets.length + 8)
  packet.set(octets, 4)
  const rdata = parseRdata(type, packet, 4, octets.length)
  return (
    rdata === undefined ||
    (isWellFormed(type, rdata) && same(scan(type, printRdata(type, rdata)), rdata))
  )
}

t.test(
  'vectors cut short or with an octet flipped never throw and never come out malformed',
  (t) => {
    for (const { type: mnemonic, hex } of [...rdataVectors, ...rareRdataVectors]) {
      const type = scanType(mnemonic)!
      const octets = new Uint8Array(Buffer.from(hex, 'hex'))
      let whole = true
      for (let i = 0; i < octets.length; i++) {
        whole &&= staysWhole(type, octets.subarray(0, i))
        for (const flip of [0xff, 0x01, 0x80, 0xc0]) {
          whole &&= staysWhole(type, octets.with(i, octets[i]! ^ flip))
        }
      }
      t.ok(whole, `${mnemonic} ${hex.slice(0, 40)}`)
    }
    t.end()
  },
)

t.test('random octets never throw and never come out malformed', (t) => {
  fc.assert(fc.property(fc.constantFrom(...knownTypes, 65280), arbitraryOctets(64), staysWhole), {
    seed: 5,
    numRuns: 3000,
  })
  t.end()
})

t.test('random text never throws and never reads as malformed rdata', (t) => {
  const word = fc.oneof(
    fc.constantFrom(
      '\\#',
      '1',
      '10',
      '256',
      'a.',
      'alpn=h2',
      'N',
      'E',
      '0',
      '-',
      'A',
      '""',
      'AA==',
      'ab',
      '65536',
    ),
    fc.string({ unit: 'binary', maxLength: 10 }),
  )
  fc.assert(
    fc.property(
      fc.constantFrom(...knownTypes, 65280),
      fc.array(fc.record({ text: word, quoted: fc.boolean() }), { maxLength: 10 }),
      (type, fields) => {
        const rdata = scanRdata(type, fields, ROOT_NAME)
        return rdata instanceof RdataError
          ? [...rdata.message].every((character) => character >= ' ')
          : isWellFormed(type, rdata)
      },
    ),
    { seed: 6, numRuns: 4000 },
  )
  t.pass('holds')
  t.end()
})

t.test('the bounds of the packet hold', (t) => {
  const packet = new Uint8Array(10)
  t.equal(parseRdata(65280, packet, 8, 3), undefined)
  t.strictSame(parseRdata(65280, packet, 8, 2), new Uint8Array(2))
  t.equal(parseRdata(1, packet, 8, 4), undefined)
  t.end()
})

t.test('rdataNameLayout says where names are', (t) => {
  t.equal(rdataNameLayout.length, 65536)
  const starts = {
    [NameLayout.Name]: [0],
    [NameLayout.NameAt2]: [2],
    [NameLayout.TwoNames]: [0, -1],
  }
  for (const [type, arbitrary] of arbitraryRdata) {
    const layout = rdataNameLayout[type]!
    if (layout === NameLayout.None) continue
    fc.assert(
      fc.property(arbitrary, (rdata) => {
        let end = 0
        for (const start of starts[layout as 1 | 2 | 3]) {
          end = parseName(rdata, start < 0 ? end : start, rdata.length)?.end ?? Number.NaN
        }
        return layout === NameLayout.TwoNames ? end <= rdata.length : end === rdata.length
      }),
      { seed: 7, numRuns: 20 },
    )
  }
  const compressible = [...rdataNameLayout.keys()].filter((type) => rdataNameLayout[type] !== 0)
  t.strictSame(
    compressible.map(printType).join(' '),
    'NS MD MF CNAME SOA MB MG MR PTR MINFO MX',
    'RFC 3597 section 4',
  )
  t.end()
})

t.test('splitFields', (t) => {
  const table: { name: string; given: string; want: string[] | undefined }[] = [
    { name: 'splits at blanks', given: ' a  b\tc ', want: ['a', 'b', 'c'] },
    { name: 'finds nothing in nothing', given: '  ', want: [] },
    { name: 'keeps quoted fields whole', given: '"a b" c ""', want: ['"a b', 'c', '"'] },
    { name: 'keeps escapes', given: 'a\\ b "\\""', want: ['a\\ b', '"\\"'] },
    { name: 'keeps quotes within words', given: 'k="a b" c', want: ['k="a b"', 'c'] },
    { name: 'ends a field at its closing quote', given: '"a""b"', want: ['"a', '"b'] },
    { name: 'refuses an open quote', given: 'a "b', want: undefined },
    { name: 'refuses an open quote within a word', given: 'a="b', want: undefined },
    { name: 'refuses an escaped closing quote', given: '"b\\"', want: undefined },
    { name: 'lets a backslash end the text', given: 'a\\', want: ['a\\'] },
  ]
  for (const { name, given, want } of table) {
    const fields = splitFields(given)?.map(({ text, quoted }) => (quoted ? `"${text}` : text))
    t.strictSame(fields, want, name)
  }
  t.end()
})
