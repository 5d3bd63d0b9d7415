import t from 'tap'
import { RRType } from '../../../src/dns/iana/types.ts'
import { signersOf } from '../../../src/signing/zone/signers-of.ts'
import { KEYS, KSK, ZSK } from './signing-stage.ts'

const CSK = { ...KEYS, keySigners: [KSK], zoneSigners: [{ ...KSK }] }

for (const [type, isApex, split, csk] of [
  ['DNSKEY', true, [KSK], [KSK]],
  ['CDS', true, [KSK, ZSK], [KSK]],
  ['CDNSKEY', true, [KSK, ZSK], [KSK]],
  ['SOA', true, [ZSK], [KSK]],
  ['A', false, [ZSK], [KSK]],
  // Not of a key of the zone: names below the apex have no DNSSEC of their own.
  ['CDS', false, [ZSK], [KSK]],
] as const) {
  t.test(`${type} ${isApex ? 'of the apex' : 'below it'}`, (t) => {
    t.strictSame(signersOf(KEYS, RRType[type], isApex), split)
    t.strictSame(signersOf(CSK, RRType[type], isApex), csk)
    t.end()
  })
}
