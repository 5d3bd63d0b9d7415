import fc from 'fast-check'
import t from 'tap'
import { type Cidr, maskAddress, scanAddress, scanCidr } from '../../../src/dns/text/address.ts'
import { AddressSet, ALL_ADDRESSES } from '../../../src/dns/text/address-set.ts'

function has(networks: readonly string[], address: string): boolean {
  const scanned = scanAddress(address)!
  return new AddressSet(networks.map((text) => scanCidr(text)!)).has(
    scanned.bytes,
    0,
    scanned.family,
  )
}

t.test('networks have their first and last address and no neighbour', async (t) => {
  const table = [
    { networks: ['192.0.2.0/24'], address: '192.0.2.0', want: true },
    { networks: ['192.0.2.0/24'], address: '192.0.2.255', want: true },
    { networks: ['192.0.2.0/24'], address: '192.0.1.255', want: false },
    { networks: ['192.0.2.0/24'], address: '192.0.3.0', want: false },
    { networks: ['192.0.2.7/32', '192.0.2.9/32'], address: '192.0.2.8', want: false },
    { networks: ['10.0.0.0/8', '10.1.0.0/16'], address: '10.200.0.1', want: true },
    { networks: ['0.0.0.0/0'], address: '255.255.255.255', want: true },
    { networks: ['0.0.0.0/0'], address: '::1', want: false },
    { networks: ['2001:db8::/33'], address: '2001:db8:7fff::1', want: true },
    { networks: ['2001:db8::/33'], address: '2001:db8:8000::', want: false },
    { networks: ['::ffff:192.0.2.0/120'], address: '192.0.2.1', want: false },
    { networks: [], address: '192.0.2.1', want: false },
  ]
  for (const { networks, address, want } of table) {
    t.equal(has(networks, address), want, `${address} in ${networks.join(' ')}`)
  }
  const everyone = new AddressSet(ALL_ADDRESSES)
  t.equal(everyone.has(new Uint8Array(16).fill(255), 0, 2), true)
  t.equal(everyone.has(new Uint8Array(4), 0, 1), true)
})

t.test('the set agrees with a plain comparison of prefixes, at any offset', async () => {
  // Few distinct octets, so that networks meet and nest.
  const octets = fc.array(fc.constantFrom(0, 1, 127, 128, 255), { minLength: 4, maxLength: 4 })
  const network = fc.record({ octets, bits: fc.integer({ min: 0, max: 32 }) }).map((n): Cidr => {
    return { family: 1, bytes: maskAddress(Uint8Array.from(n.octets), n.bits), bits: n.bits }
  })
  fc.assert(
    fc.property(fc.array(network, { maxLength: 12 }), octets, (networks, address) => {
      const bytes = Uint8Array.of(9, 9, ...address)
      const want = networks.some(({ bytes: prefix, bits }) => {
        return Buffer.compare(maskAddress(Uint8Array.from(address), bits), prefix) === 0
      })
      return new AddressSet(networks).has(bytes, 2, 1) === want
    }),
    { seed: 8, numRuns: 2000 },
  )
})
