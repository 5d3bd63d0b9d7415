import fc from 'fast-check'
import t from 'tap'
import { printName } from '../../../src/dns/name/name.ts'
import { parseName } from '../../../src/dns/name/parse-name.ts'
import { arbitraryName, arbitraryOctets } from '../../support/arbitrary.ts'

const longLabel = `\x3f${'x'.repeat(63)}`

t.test('parseName', (t) => {
  const table: {
    name: string
    given: string
    offset?: number
    limit?: number
    want: [string, number] | undefined
  }[] = [
    { name: 'reads a plain name', given: '\x01a\x01b\0rest', want: ['a.b.', 5] },
    { name: 'reads the root', given: '\0', want: ['.', 1] },
    { name: 'follows a pointer back', given: '\x01a\0\x01b\xc0\x00', offset: 3, want: ['b.a.', 7] },
    {
      name: 'follows pointer after pointer',
      given: '\x01a\0\x01b\xc0\x00\xc0\x03',
      offset: 7,
      want: ['b.a.', 9],
    },
    { name: 'refuses a pointer to itself', given: '\xc0\x00', want: undefined },
    { name: 'refuses a pointer forward', given: '\xc0\x02\x01a\0', want: undefined },
    { name: 'refuses a pointer into its own labels', given: '\x01a\xc0\x00', want: undefined },
    { name: 'refuses a loop of two', given: '\xc0\x02\xc0\x00', offset: 2, want: undefined },
    {
      name: 'refuses labels that run on into the pointer that led to them',
      given: '\x04a\xc0\x00b\xc0\x00',
      offset: 5,
      want: undefined,
    },
    { name: 'refuses reserved label types', given: '\x41a\0', want: undefined },
    { name: 'refuses a missing root', given: '\x01a', want: undefined },
    { name: 'refuses half a pointer', given: '\0\xc0', offset: 1, want: undefined },
    { name: 'refuses to read beyond the limit', given: '\x01a\0', limit: 2, want: undefined },
    { name: 'refuses an offset outside', given: '\0', offset: 1, want: undefined },
    {
      name: 'reads 255 octets',
      given: `${longLabel.repeat(3)}\x3d${'y'.repeat(61)}\0`,
      want: [`${`${'x'.repeat(63)}.`.repeat(3)}${'y'.repeat(61)}.`, 255],
    },
    { name: 'refuses 256 octets', given: `${longLabel.repeat(4)}\0`, want: undefined },
    {
      name: 'refuses 256 octets made by pointers',
      given: `${longLabel.repeat(2)}\0${longLabel.repeat(2)}\xc0\0`,
      offset: 129,
      want: undefined,
    },
  ]
  for (const { name, given, offset = 0, limit, want } of table) {
    const packet = Buffer.from(given, 'latin1')
    const parsed = parseName(packet, offset, limit ?? packet.length)
    t.strictSame(parsed && [printName(parsed.name), parsed.end], want, name)
  }
  t.end()
})

t.test('parseName reads every name as it stands', (t) => {
  fc.assert(
    fc.property(arbitraryName, (name) => {
      const parsed = parseName(name, 0, name.length)
      return parsed?.end === name.length && Buffer.compare(parsed.name, name) === 0
    }),
    { seed: 1, numRuns: 300 },
  )
  t.pass('holds')
  t.end()
})

t.test('parseName never throws, whatever the packet', (t) => {
  const pointery = fc.array(fc.constantFrom(0, 1, 2, 0xc0, 0xc1, 5), { maxLength: 60 })
  fc.assert(
    fc.property(
      fc.oneof(
        arbitraryOctets(80),
        pointery.map((octets) => new Uint8Array(octets)),
      ),
      (packet) => {
        for (let at = 0; at <= packet.length; at++) {
          const parsed = parseName(packet, at, packet.length)
          if (parsed !== undefined && (parsed.name.length > 255 || parsed.end > packet.length))
            return false
        }
        return true
      },
    ),
    { seed: 2, numRuns: 500 },
  )
  t.pass('holds')
  t.end()
})
