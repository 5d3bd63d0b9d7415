import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { DelegationCheck } from '../../src/authority/delegation-check.ts'
import { checkZoneFile } from '../../src/authority/file-zone.ts'
import { Algorithm } from '../../src/dns/dnssec/algorithms.ts'
import { FLAGS_KSK, generatePrivateKey, signingKey } from '../../src/dns/dnssec/dnskey.ts'
import { composeDs } from '../../src/dns/dnssec/ds.ts'
import { RRType } from '../../src/dns/iana/types.ts'
import { printRdata } from '../../src/dns/rdata/index.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'
import { wire } from '../support/zone-names.ts'

const CHILD = wire('sub.example.org.')
const { EcdsaP256 } = Algorithm
const newKey = async () => signingKey(await generatePrivateKey(EcdsaP256), EcdsaP256, FLAGS_KSK)

t.test('DS records of a zone file are compared with the keys of a zone below', async (t) => {
  const [key, other] = [await newKey(), await newKey()]
  const directory = temporaryDirectory(t)
  const soa = '@ 60 SOA ns hostmaster 1 2 3 4 5\n@ 60 NS ns\nns 60 A 192.0.2.1\n'
  const dnskey = `@ 60 DNSKEY ${printRdata(RRType.DNSKEY, key.dnskey)}\n`
  const dsOf = (one: typeof key, digest: 1 | 2) => {
    const rdata = printRdata(RRType.DS, composeDs(CHILD, one.dnskey, digest))
    return `sub 60 DS ${rdata}\n`
  }
  const cut = 'sub 60 NS ns.sub\nns.sub 60 A 192.0.2.2\n'
  const without = /delegation of sub\.example\.org\.: the parent has no DS records/
  const unmatched = /DS records that no key matches, with tag \d+/
  const table: readonly {
    name: string
    parent: string
    isSigned?: boolean
    child?: string
    want: readonly RegExp[]
  }[] = [
    { name: 'the right DS', parent: cut + dsOf(key, 2), want: [] },
    { name: 'no DS', parent: cut, want: [without] },
    { name: 'no DS, and a parent without keys', parent: cut, isSigned: false, want: [] },
    { name: 'no delegation', parent: '', want: [] },
    { name: 'the DS of another key', parent: cut + dsOf(other, 2), want: [unmatched] },
    { name: 'one DS too many', parent: cut + dsOf(key, 2) + dsOf(other, 2), want: [unmatched] },
    { name: 'SHA-1', parent: cut + dsOf(key, 1), want: [/RFC 9905/] },
    { name: 'an unsigned zone', parent: cut, child: '', want: [] },
    { name: 'a DS of an unsigned zone', parent: cut + dsOf(key, 2), child: '', want: [unmatched] },
  ]
  for (const { name, parent, isSigned = true, child = dnskey, want } of table) {
    const files = [
      { zone: wire('example.org.'), path: join(directory, 'parent'), isUnsigned: isSigned },
      { zone: CHILD, path: join(directory, 'child'), isUnsigned: false },
    ]
    writeFileSync(files[0]!.path, soa + parent)
    writeFileSync(files[1]!.path, soa + child)
    for (const all of [files, [...files].reverse()]) {
      const delegations = new DelegationCheck()
      const warnings: string[] = []
      for (const { zone, path, isUnsigned } of all) {
        const report = {
          warn: (warning: Error) => warnings.push(warning.message),
          read: () => {},
          foresee: () => {},
          isOffline: true,
        }
        const options = { isUnsigned, isWhole: true, delegations }
        t.strictSame(checkZoneFile(path, zone, options, report), [], name)
      }
      const found = warnings.filter((text) => text.includes('delegation of'))
      t.match(found, want, name)
      t.equal(found.length, want.length, `${name}: ${found}`)
    }
  }
})
