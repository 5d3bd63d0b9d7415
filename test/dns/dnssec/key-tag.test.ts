import t from 'tap'
import { keyTag } from '../../../src/dns/dnssec/key-tag.ts'

/** The example of RFC 4034 section 5.4. */
const KEY =
  'AQOeiiR0GOMYkDshWoSKz9XzfwJr1AYtsmx3TGkJaNXVbfi/2pHm822aJ5iI9BMzNXxeYCmZDRD99WYwYqUSdjMmmAphXdvxegXd/M5+X7OrzKBaMbCVdFLUUh6DhweJBjEVv5f2wwjM9XzcnOf+EPbtG9DMBmADjFDc2w/rljwvFw=='

t.test('key tags are those of RFC 4034', (t) => {
  const key = Buffer.from(KEY, 'base64')
  t.equal(keyTag(Buffer.concat([Buffer.from([1, 0, 3, 5]), key])), 60_485)
  const odd = Buffer.concat([Buffer.from([1, 1, 3, 13]), Buffer.from('ffffff', 'hex')])
  // 0x0101 + 0x030d + 0xffff + 0xff00, with the carry added.
  t.equal(keyTag(odd), 0x030f)
  const rsaMd5 = Buffer.from('01000301aabbccdd', 'hex')
  t.equal(keyTag(rsaMd5), 0xbbcc, 'algorithm 1: octets of the modulus')
  t.end()
})
