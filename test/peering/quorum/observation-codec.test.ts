import fc from 'fast-check'
import t from 'tap'
import {
  composeObservation,
  isObservation,
  readObservations,
  type SiteObservation,
} from '../../../src/peering/quorum/observation-codec.ts'
import { record } from '../../support/exported-zone.ts'

const ONE: SiteObservation = {
  site: 'east',
  address: '192.0.2.1',
  health: 'down',
  sinceSeconds: 1_790_000_000,
}

/** Rdata of TXT with these strings, one character per octet. */
const text = (strings: string): string =>
  Buffer.from(record('o2.k.example.com.kdrnt.', 'TXT', strings).rdata).toString('latin1')

const printed = (rdata: Uint8Array | undefined): string => Buffer.from(rdata!).toString('latin1')

t.test('an observation survives the way', async (t) => {
  for (const address of ['192.0.2.1', '2001:db8::1', `${'a.'.repeat(126)}a`]) {
    const rdata = printed(composeObservation({ ...ONE, address }))
    t.ok(isObservation(rdata))
    t.strictSame(readObservations([rdata]), [{ ...ONE, address }])
  }
  t.equal(composeObservation({ ...ONE, address: 'a'.repeat(254) }), undefined)
})

t.test('unknown keys are ignored', async (t) => {
  const rdata = text('o=1 site=east rtt=7 a=192.0.2.1 health=down since=1790000000 more')
  t.strictSame(readObservations([rdata]), [ONE])
})

const INVALID = [
  'o=2 site=east a=192.0.2.1 health=down since=1',
  'o=1 site=- a=192.0.2.1 health=down since=1',
  'o=1 site=east health=down since=1',
  'o=1 site=east a=192.0.2.1 health=maybe since=1',
  'o=1 site=east a=192.0.2.1 health=down since=-1',
  'o=1 site=east a=192.0.2.1 health=down',
  'v=2 site=east',
]
for (const strings of INVALID) {
  t.test(`left out: ${strings}`, async (t) => {
    t.strictSame(readObservations([text(strings)]), [])
  })
}

t.test('any octets are read without an exception, and only a thousand observations', async (t) => {
  const octets = fc.uint8Array({ maxLength: 80 }).map((one) => Buffer.from(one).toString('latin1'))
  const property = fc.property(octets, (rdata) => {
    readObservations([`\x03o=1${rdata}`])
  })
  fc.assert(property, { seed: 3, numRuns: 1000 })
  const many = Array.from({ length: 1500 }, (_, i) => {
    return printed(composeObservation({ ...ONE, address: `192.0.${i >> 8}.${i & 255}` }))
  })
  t.equal(readObservations(many).length, 1000)
})
