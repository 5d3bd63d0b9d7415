import t from 'tap'
import { printType, RRType } from '../../../src/dns/iana/types.ts'
import { printRdata } from '../../../src/dns/rdata/index.ts'
import { composeProof, Proof } from '../../../src/plugins/dnssec/compact-denial.ts'
import { wire } from '../../support/zone-names.ts'

/* A validator may reuse a proof for other types of its name (RFC 8198), so it must list all that may exist. */

const META = [41, ...Array.from({ length: 128 }, (_, i) => 128 + i)]
/** With these, the record proves something else, or no name can have them. */
const NEVER: readonly number[] = [...META, RRType.CNAME, RRType.DS, RRType.NSEC3, RRType.NSEC3PARAM]
const OF_APEX: readonly number[] = [RRType.NS, RRType.SOA, RRType.DNSKEY]
/** The first and the last ones of ranges without a mnemonic, and others in them. */
const UNNAMED = [54, 69, 98, 110, 127, 265, 300, 511, 65_280, 65_281, 65_283, 65_400, 65_534]
const TYPES = [...Object.values(RRType), ...UNNAMED]

function typesOf(proof: number, isApex: boolean): Set<string> {
  const text = printRdata(RRType.NSEC, composeProof(wire('\\000.a.'), proof, isApex))
  return new Set(text.split(' ').slice(1))
}

t.test('a proof that a type is missing denies no other type', async (t) => {
  for (const isApex of [false, true]) {
    for (const missing of TYPES.filter((type) => !META.includes(type))) {
      const listed = typesOf(missing, isApex)
      const about = `${printType(missing)} ${isApex ? 'of an apex' : ''}`
      const want = TYPES.filter((type) => {
        if (type === missing || NEVER.includes(type)) return false
        return isApex || !OF_APEX.includes(type)
      })
      t.strictSame(
        want.map(printType).filter((type) => !listed.has(type)),
        [],
        about,
      )
      const not = TYPES.filter((type) => !want.includes(type))
      t.strictSame(
        not.map(printType).filter((type) => listed.has(type)),
        [],
        about,
      )
    }
  }
})

t.test('other proofs', async (t) => {
  for (const isApex of [false, true]) {
    t.strictSame([...typesOf(Proof.NoName, isApex)], ['RRSIG', 'NSEC', 'NXNAME'])
    t.strictSame([...typesOf(Proof.Empty, isApex)], ['RRSIG', 'NSEC'])
    t.strictSame([...typesOf(Proof.Insecure, isApex)], ['NS', 'RRSIG', 'NSEC'])
    t.equal(typesOf(Proof.Name, isApex).has('CNAME'), !isApex)
  }
})
