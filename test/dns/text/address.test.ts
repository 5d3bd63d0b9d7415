import fc from 'fast-check'
import t from 'tap'
import {
  type AddressFamily,
  printAddress,
  scanAddress,
  scanCidr,
  scanIPv4,
  scanIPv6,
} from '../../../src/dns/text/address.ts'

function canonical(text: string): string | undefined {
  const address = scanAddress(text)
  return address && printAddress(address.bytes, address.family)
}

t.test('addresses are read in every form and printed in one', (t) => {
  const table: { given: string; want: string | undefined }[] = [
    { given: '192.0.2.1', want: '192.0.2.1' },
    { given: '0.0.0.0', want: '0.0.0.0' },
    { given: '255.255.255.255', want: '255.255.255.255' },
    { given: '192.0.2.256', want: undefined },
    { given: '192.0.2', want: undefined },
    { given: '192.0.2.1.5', want: undefined },
    { given: '192.0.2.01', want: undefined },
    { given: ' 192.0.2.1', want: undefined },
    { given: '192.0.2.', want: undefined },
    { given: '', want: undefined },
    { given: '::', want: '::' },
    { given: '::1', want: '::1' },
    { given: '2001:DB8::', want: '2001:db8::' },
    { given: '2001:db8:0:0:1:0:0:1', want: '2001:db8::1:0:0:1' },
    { given: '2001:db8:0:1:1:1:1:1', want: '2001:db8:0:1:1:1:1:1' },
    { given: '2001:0db8:0000:0000:0001:0000:0000:0000', want: '2001:db8:0:0:1::' },
    { given: '::ffff:192.0.2.1', want: '::ffff:192.0.2.1' },
    { given: '::FFFF:c000:201', want: '::ffff:192.0.2.1' },
    { given: '64:ff9b::192.0.2.33', want: '64:ff9b::c000:221' },
    { given: '1:2:3:4:5:6:7::', want: '1:2:3:4:5:6:7:0' },
    { given: '1:2:3:4:5:6:7:8::', want: undefined },
    { given: '1:2:3:4:5:6:7', want: undefined },
    { given: '1:2:3:4:5:6:7:8:9', want: undefined },
    { given: '1::2::3', want: undefined },
    { given: ':::', want: undefined },
    { given: ':1', want: undefined },
    { given: '1:', want: undefined },
    { given: '1:2:3:4:5:6:7:', want: undefined },
    { given: '12345::', want: undefined },
    { given: 'fe80::1%eth0', want: undefined },
    { given: '192.0.2.1::', want: undefined },
    { given: '::192.0.2.1:1', want: undefined },
    { given: '::g', want: undefined },
  ]
  for (const { given, want } of table) t.equal(canonical(given), want, `'${given}' gives ${want}`)
  t.equal(scanIPv4('::1'), undefined)
  t.equal(scanIPv6('192.0.2.1'), undefined)
  t.end()
})

t.test('any address is read back as it was printed', (t) => {
  const octet = fc.oneof(fc.constant(0), fc.nat(255))
  const address = fc.constantFrom<AddressFamily>(1, 2).chain((family) => {
    const length = family === 1 ? 4 : 16
    return fc.tuple(fc.constant(family), fc.array(octet, { minLength: length, maxLength: length }))
  })
  fc.assert(
    fc.property(address, ([family, octets]) => {
      const bytes = new Uint8Array(octets)
      t.strictSame(scanAddress(printAddress(bytes, family)), { family, bytes })
    }),
    { seed: 1, numRuns: 500 },
  )
  t.pass('holds')
  t.end()
})

t.test('scanCidr', (t) => {
  const print = (text: string) => {
    const cidr = scanCidr(text)
    return cidr && `${printAddress(cidr.bytes, cidr.family)}/${cidr.bits}`
  }
  t.equal(print('192.0.2.0/24'), '192.0.2.0/24')
  t.equal(print('192.0.2.129/25'), '192.0.2.128/25', 'clears the bits beyond the prefix')
  t.equal(print('255.255.255.255/0'), '0.0.0.0/0')
  t.equal(print('192.0.2.1/32'), '192.0.2.1/32')
  t.equal(print('2001:db8::ff/121'), '2001:db8::80/121')
  for (const given of [
    '192.0.2.1',
    '192.0.2.0/33',
    '::/129',
    '::/',
    '/8',
    '192.0.2.0/08',
    '192.0.2.0/+8',
    '::/-1',
    'x/8',
  ]) {
    t.equal(scanCidr(given), undefined, `refuses ${given}`)
  }
  t.end()
})
