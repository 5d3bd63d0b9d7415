import t from 'tap'
import { copyOctets, equalOctets } from '../../src/base/octets.ts'

const LENGTHS = [...Array(40).keys()]

t.test('exactly the given number of octets is copied', async (t) => {
  const from = Uint8Array.from({ length: 64 }, (_, i) => i + 1)
  for (const octets of LENGTHS) {
    const to = new Uint8Array(64)
    copyOctets(from, 3, to, 5, octets)
    const want = new Uint8Array(64)
    want.set(from.subarray(3, 3 + octets), 5)
    t.same(to, want, `${octets} octets`)
  }
})

t.test('octets are equal unless one of them differs, wherever it is', async (t) => {
  const a = Uint8Array.from({ length: 64 }, (_, i) => i + 1)
  for (const octets of LENGTHS) {
    const b = new Uint8Array(64)
    b.set(a.subarray(3, 3 + octets), 5)
    t.equal(equalOctets(a, 3, b, 5, octets), true, `${octets} octets`)
    for (let i = 0; i < octets; i++) {
      b[5 + i]! ^= 1
      t.equal(equalOctets(a, 3, b, 5, octets), false, `octet ${i} of ${octets}`)
      b[5 + i]! ^= 1
    }
  }
})
