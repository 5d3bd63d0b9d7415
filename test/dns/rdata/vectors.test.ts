import t from 'tap'
import { printType, scanType } from '../../../src/dns/iana/index.ts'
import { scanName } from '../../../src/dns/name/name.ts'
import {
  parseRdata,
  printRdata,
  RdataError,
  scanRdata,
  splitFields,
} from '../../../src/dns/rdata/index.ts'
import { knownTypes } from '../../support/arbitrary-rdata.ts'
import { needs, run } from '../../support/peer.ts'
import { badRdataTexts } from './bad-rdata-texts.ts'
import { rareRdataVectors } from './rare-rdata-vectors.ts'
import { rdataVectors as commonVectors } from './rdata-vectors.ts'

const rdataVectors = [...commonVectors, ...rareRdataVectors]

const origin = scanName('example.org.')!

function scan(type: string, text: string): string {
  const rdata = scanRdata(scanType(type)!, splitFields(text)!, origin)
  return rdata instanceof RdataError ? rdata.message : Buffer.from(rdata).toString('hex')
}

t.test('every vector reads, parses and prints', (t) => {
  for (const { type, text, printed, hex } of rdataVectors) {
    const code = scanType(type)!
    const octets = new Uint8Array(Buffer.from(hex, 'hex'))
    t.equal(scan(type, text), hex, `${type} ${text} reads`)
    t.equal(scan(type, printed), hex, `${type} ${text} reads as printed`)
    t.strictSame(parseRdata(code, octets, 0, octets.length), octets, `${type} ${text} parses`)
    t.equal(printRdata(code, octets), printed, `${type} ${text} prints`)
    const unknown = hex === '' ? '\\# 0' : `\\# ${octets.length} ${hex}`
    t.equal(scan(type, unknown), hex, `${type} ${text} reads in the unknown form`)
  }
  t.end()
})

t.test('every known type has a vector', (t) => {
  const sameAsNS = ['MD', 'MF', 'MB', 'MG', 'MR']
  const sameAsOthers = ['PX', 'SIG', 'KEY']
  const covered = new Set([...rdataVectors.map(({ type }) => type), ...sameAsNS, ...sameAsOthers])
  t.strictSame(
    knownTypes.map(printType).filter((type) => !covered.has(type)),
    [],
  )
  t.end()
})

t.test('text that is no rdata gets a complaint', (t) => {
  for (const { type, text, complaint, why } of badRdataTexts) {
    const rdata = scanRdata(scanType(type)!, splitFields(text)!, origin)
    t.ok(rdata instanceof RdataError, `${type} refuses ${why}`)
    if (rdata instanceof RdataError) t.match(rdata.message, complaint, `${type} with ${why}`)
  }
  t.end()
})

t.test('rdata of a rare type that text can not say is kept and prints as unknown', (t) => {
  for (const line of [
    'APL 00030800',
    'APL 00010802c000',
    'APL 0001210180',
    'APL 000108050102030405',
    'IPSECKEY 0a0402ff01',
    'AMTRELAY 0a84ff',
    'A6 3c7f000100020003000400',
    'NXT 00a0',
    'NXT 000100',
    'WKS 0a000001060100',
  ]) {
    const [type = '', hex = ''] = line.split(' ')
    const octets = new Uint8Array(Buffer.from(hex, 'hex'))
    const code = scanType(type)!
    t.strictSame(parseRdata(code, octets, 0, octets.length), octets, `${line} parses`)
    t.equal(printRdata(code, octets), `\\# ${octets.length} ${hex}`, `${line} prints`)
    t.equal(scan(type, `\\# ${octets.length} ${hex}`), hex, `${line} reads`)
  }
  t.end()
})

/** What Debian's BIND does not know, or holds against the RFC. */
const NOT_IN_BIND = new Set(['UINFO', 'UID', 'GID', 'CLA', 'IPN', 'IPSECKEY 10 0 0 .'])

t.test('BIND reads the same octets', needs('named-rrchecker'), async (t) => {
  for (const { type, text, hex } of rareRdataVectors) {
    if (NOT_IN_BIND.has(type) || NOT_IN_BIND.has(`${type} ${text}`)) continue
    const script = 'echo "$0" | named-rrchecker -u -o example.org.'
    const { stdout } = await run('sh', ['-c', script, `IN ${type} ${text}`])
    const found = /\\#\s+\d+\s*([0-9A-Fa-f\s]*)$/.exec(stdout)
    t.equal(found?.[1]?.replace(/\s/g, '').toLowerCase(), hex, `${type} ${text}`)
  }
})

t.test('octets that are no rdata of their type are refused', (t) => {
  const table: { type: string; hex: string; why: string }[] = [
    { type: 'A', hex: 'c00002', why: 'three octets' },
    { type: 'WKS', hex: '0a000001', why: 'no protocol' },
    { type: 'APL', hex: '00010803c000', why: 'a prefix that is cut' },
    { type: 'IPSECKEY', hex: '0a01020a0000', why: 'three octets of an address' },
    { type: 'AMTRELAY', hex: '0a', why: 'no relay' },
    { type: 'HIP', hex: '00020001ff', why: 'no tag' },
    { type: 'HIP', hex: '01020001aabbc0', why: 'half a name' },
    { type: 'A6', hex: '81', why: 'a prefix of 129 bits' },
    { type: 'EUI48', hex: '0000000000', why: 'five octets' },
    { type: 'L64', hex: '000a00', why: 'three octets' },
    { type: 'LP', hex: '000ac000', why: 'a compressed name' },
    { type: 'NSAP', hex: '', why: 'no address' },
    { type: 'A', hex: 'c000020100', why: 'five octets' },
    { type: 'AAAA', hex: 'c0000201', why: 'four octets' },
    { type: 'NS', hex: '0161', why: 'a name without its root' },
    { type: 'NS', hex: '01610000', why: 'an octet behind the name' },
    { type: 'NS', hex: 'c000', why: 'a pointer to itself' },
    { type: 'MX', hex: '000a', why: 'no exchange' },
    { type: 'SOA', hex: `${'00'.repeat(21)}`, why: 'a short number' },
    { type: 'TXT', hex: '', why: 'no string' },
    { type: 'TXT', hex: '0361', why: 'a string beyond the end' },
    { type: 'HINFO', hex: '0161', why: 'one string' },
    { type: 'CAA', hex: '000461622d63', why: 'a tag with a hyphen' },
    { type: 'CAA', hex: '0000', why: 'an empty tag' },
    { type: 'URI', hex: '00010001', why: 'no target' },
    { type: 'DNSKEY', hex: '01000305', why: 'no key' },
    { type: 'RRSIG', hex: `0001${'00'.repeat(16)}c00000`, why: 'a compressed signer' },
    { type: 'NSEC', hex: '0000', why: 'half a window' },
    { type: 'NSEC', hex: '000000', why: 'an empty window' },
    { type: 'NSEC', hex: '00000240', why: 'a window cut short' },
    { type: 'NSEC', hex: '0000024000', why: 'a trailing zero octet' },
    { type: 'NSEC', hex: '0001014000014000', why: 'a window of lower number' },
    { type: 'NSEC', hex: '00000140000140', why: 'a window twice' },
    { type: 'NSEC', hex: `000021${'01'.repeat(33)}`, why: 'a window of 33 octets' },
    { type: 'NSEC3', hex: '010000000000', why: 'an empty hash' },
    { type: 'NSEC3', hex: '0100000002aa', why: 'a salt beyond the end' },
    { type: 'LOC', hex: '00a216138b3556c88008165000989a68', why: 'a precision of ten' },
    { type: 'LOC', hex: '0012161393500001800000000098967f', why: 'a latitude beyond the pole' },
    { type: 'LOC', hex: '00121613', why: 'a missing body' },
    { type: 'SVCB', hex: '0001', why: 'no target' },
    { type: 'SVCB', hex: '0001c000', why: 'a compressed target' },
    { type: 'SVCB', hex: '0001000003', why: 'half a key' },
    { type: 'SVCB', hex: '000100000300020', why: 'half an octet' },
    { type: 'SVCB', hex: '000100000300030035', why: 'a value beyond the end' },
    { type: 'SVCB', hex: '00010000030003003500', why: 'a port of three octets' },
    { type: 'SVCB', hex: '0001000003000200350003000200350', why: 'a key twice' },
    { type: 'SVCB', hex: '0001000004000401020304000300020035', why: 'keys out of order' },
    { type: 'SVCB', hex: '000100000100020368', why: 'a protocol beyond its value' },
    { type: 'SVCB', hex: '000100000100020000', why: 'an empty protocol' },
    { type: 'SVCB', hex: '00010000010000', why: 'no protocol' },
    { type: 'SVCB', hex: '00010000020000', why: 'no-default-alpn without alpn' },
    { type: 'SVCB', hex: '000100000000020003', why: 'a mandatory key that is missing' },
    { type: 'SVCB', hex: '000100000000020000', why: 'mandatory in its own list' },
    { type: 'SVCB', hex: '00010000040003010203', why: 'a hint of three octets' },
    { type: 'SVCB', hex: '00010000050000', why: 'an empty ech' },
    { type: 'SVCB', hex: '000100ffff0000', why: 'the invalid key' },
  ]
  for (const { type, hex, why } of table) {
    const octets = Buffer.from(hex, 'hex')
    t.equal(parseRdata(scanType(type)!, octets, 0, octets.length), undefined, `${type}: ${why}`)
  }
  t.end()
})

t.test('names may be compressed in the types of old and in no others', (t) => {
  // A packet that starts with the name b.a. and holds rdata behind it.
  const name = Buffer.from('01620161' + '00', 'hex')
  const parse = (type: string, hex: string) => {
    const rdata = Buffer.from(hex, 'hex')
    const parsed = parseRdata(
      scanType(type)!,
      Buffer.concat([name, rdata]),
      name.length,
      rdata.length,
    )
    return parsed && printRdata(scanType(type)!, parsed)
  }
  const zeros = '00000000'.repeat(5)
  t.equal(parse('NS', 'c000'), 'b.a.')
  t.equal(parse('CNAME', '0163c002'), 'c.a.')
  t.equal(parse('MX', '000ac000'), '10 b.a.')
  t.equal(parse('SOA', `c0000163c000${zeros}`), 'b.a. c.b.a. 0 0 0 0 0')
  t.equal(parse('SOA', `0163c000c005${zeros}`), 'c.b.a. c.b.a. 0 0 0 0 0', 'also within the rdata')
  t.equal(parse('SRV', '000000000000c000'), '0 0 0 b.a.')
  t.equal(parse('NAPTR', '00000000000000c000'), '0 0 "" "" "" b.a.')
  t.equal(parse('DNAME', 'c000'), 'b.a.')
  t.equal(parse('RP', 'c000c002'), 'b.a. a.')
  t.equal(parse('NSEC', 'c000000140'), undefined)
  t.equal(parse('SVCB', '0001c000'), undefined)
  t.equal(parse('NS', 'c005'), undefined, 'never forward')
  t.end()
})

t.test('well-formed octets that text should not say print as unknown', (t) => {
  const table: { type: string; hex: string }[] = [
    { type: 'SVCB', hex: '000000000300020035' },
    { type: 'LOC', hex: '01ff' },
    { type: 'LOC', hex: '0001161389172dd070be15f000988d20' },
    { type: 'ZONEMD', hex: '000000010101ab' },
    { type: 'TYPE65280', hex: 'ab' },
    { type: 'A', hex: 'ab' },
  ]
  for (const { type, hex } of table) {
    const octets = Buffer.from(hex, 'hex')
    t.equal(printRdata(scanType(type)!, octets), `\\# ${octets.length} ${hex}`, `${type} ${hex}`)
  }
  t.equal(printRdata(65280, new Uint8Array(0)), '\\# 0')
  t.end()
})

t.test('text may be split and spelt in more ways than one', (t) => {
  t.equal(scan('A', '\\# 4 C0 00 02 01'), 'c0000201', 'pieces of hex, upper case')
  t.equal(scan('TYPE1', '192.0.2.1'), 'c0000201', 'a known type by number')
  t.equal(scan('CNAME', '@'), scan('CNAME', 'example.org.'), 'the origin')
  t.equal(scan('NSEC', 'a. NS A NS'), scan('NSEC', 'a. A NS'), 'types in any order')
  t.equal(
    scan('HTTPS', '1 . alpn= "h2"'),
    scan('HTTPS', '1 . alpn=h2'),
    'a value in a field of its own',
  )
  t.equal(scan('TXT', 'é'), '02c3a9', 'UTF-8')
  t.equal(
    scan('RRSIG', 'A 5 3 1 1 4294967295 1 a. AA=='),
    `00010503${'00000001'.repeat(2)}ffffffff000101610000`,
  )
  t.equal(scan('LOC', '1 n 1 e 0'), scan('LOC', '1 0 0.000 N 1 0 0.000 E 0.00m 1m 10000m 10m'))
  t.equal(scan('LOC', '1 N 1 E 0 15m'), scan('LOC', '1 N 1 E 0 10m'), 'one digit of precision')
  t.end()
})
