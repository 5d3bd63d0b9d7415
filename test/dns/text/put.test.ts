import fc from 'fast-check'
import t from 'tap'
import { printName } from '../../../src/dns/name/name.ts'
import { type AddressFamily, printAddress, scanIPv6 } from '../../../src/dns/text/address.ts'
import {
  ADDRESS_OCTETS_MAX,
  NAME_TEXT_OCTETS_MAX,
  NUMBER_OCTETS_MAX,
  putAddress,
  putName,
  putNumber,
  putThreeDigits,
  putWords,
  SPILL_OCTETS,
  wordsOf,
} from '../../../src/dns/text/put.ts'

/** What `put` writes. Checks that it writes nowhere else, except the octets that it may spill. */
function written(octetsMax: number, put: (out: DataView, at: number) => number): string {
  const out = Buffer.alloc(octetsMax + SPILL_OCTETS + 6, 1)
  const end = put(new DataView(out.buffer, out.byteOffset, out.length), 3)
  const spillEnd = end + SPILL_OCTETS
  if (out.some((octet, i) => octet !== 1 && (i < 3 || i >= spillEnd))) throw new Error('outside')
  if (end - 3 > octetsMax) throw new Error('too long')
  return out.toString('latin1', 3, end)
}

const RUNS = { seed: 20261122, numRuns: 500 }

const label = fc.uint8Array({ minLength: 1, maxLength: 63 })
const name = fc.array(label, { maxLength: 3 }).map((labels) => {
  return Uint8Array.from([...labels.flatMap((octets) => [octets.length, ...octets]), 0])
})

t.test('names, as printName', async () => {
  fc.assert(
    fc.property(name, (name) => {
      return written(NAME_TEXT_OCTETS_MAX, (out, at) => putName(out, at, name)) === printName(name)
    }),
    RUNS,
  )
})

t.test('text from any word of a table on, as it is', async () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 40 }), fc.nat(3), (text, from) => {
      const words = Int32Array.from([...new Int32Array(from), ...wordsOf(text)])
      const copy = written(40, (out, at) => putWords(out, at, words, from, text.length))
      return copy === Buffer.from(text).toString('latin1')
    }),
    RUNS,
  )
})

t.test('numbers', async () => {
  fc.assert(
    fc.property(fc.oneof(fc.nat(2 ** 31 - 1), fc.nat(1_010_000), fc.nat(70_000)), (value) => {
      const text = written(NUMBER_OCTETS_MAX, (out, at) => putNumber(out, at, value))
      return text === String(value)
    }),
    RUNS,
  )
  fc.assert(
    fc.property(fc.nat(999), (value) => {
      const text = written(3, (out, at) => putThreeDigits(out, at, value))
      return text === String(value).padStart(3, '0')
    }),
    RUNS,
  )
})

/** Groups of few values, so that runs of zeros of every length and place come up. */
const address = fc
  .array(fc.constantFrom(0, 0, 0, 1, 0xab, 0xfff, 0xffff), { minLength: 8, maxLength: 8 })
  .map((groups) => Uint8Array.from(groups.flatMap((group) => [group >> 8, group & 0xff])))

function putText(bytes: Uint8Array, family: AddressFamily): string {
  return written(ADDRESS_OCTETS_MAX, (out, at) => putAddress(out, at, bytes, family))
}

t.test('addresses, as printAddress', async (t) => {
  fc.assert(
    fc.property(address, (bytes) => putText(bytes, 2) === printAddress(bytes, 2)),
    RUNS,
  )
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 16, maxLength: 16 }), (bytes) => {
      return [1, 2].every((family) => {
        return (
          putText(bytes, family as AddressFamily) === printAddress(bytes, family as AddressFamily)
        )
      })
    }),
    RUNS,
  )
  for (const text of [
    '::',
    '::1',
    '1::',
    '::ffff:192.0.2.1',
    '::ffff:0.0.0.0',
    '::192:2',
    '1::1:0:0:1',
  ]) {
    const { bytes } = scanIPv6(text)!
    t.equal(putText(bytes, 2), printAddress(bytes, 2), text)
  }
})
