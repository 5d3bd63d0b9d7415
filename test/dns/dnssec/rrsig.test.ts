import t from 'tap'
import { Algorithm } from '../../../src/dns/dnssec/algorithms.ts'
import { generatePrivateKey, publicKeyOf, signingKey } from '../../../src/dns/dnssec/dnskey.ts'
import { composeDs, matchesDs } from '../../../src/dns/dnssec/ds.ts'
import * as rrsig from '../../../src/dns/dnssec/rrsig.ts'
import { RRType } from '../../../src/dns/iana/types.ts'
import { scanName } from '../../../src/dns/name/name.ts'

const ZONE = scanName('example.')!
const TIMES = { inceptionSeconds: 1_700_000_000, expirationSeconds: 1_800_000_000 }

function a(...last: number[]): Uint8Array[] {
  return last.map((octet) => Uint8Array.from([192, 0, 2, octet]))
}

/** RFC 8080 section 6.1: the key, its DS and the signature of an MX, which is deterministic. */
const RFC8080 = {
  dnskey:
    '0101030f' +
    Buffer.from('l02Woi0iS8Aa25FQkUd9RMzZHJpBoRQwAQEX1SxZJA4=', 'base64').toString('hex'),
  ds: '0e1d0f02' + '3aa5ab37efce57f737fc1627013fee07bdf241bd10f3b1964ab55c78e79a304b',
  signature:
    'oL9krJun7xfBOIWcGHi7mag5/hdZrKWw15jPGrHpjQeRAvTdszaPD+QLs3fx8A4M3e23mRZ9VrbpMngwcrqNAg==',
}

t.test('DS and signature of RFC 8080', (t) => {
  const owner = scanName('example.com.')!
  const dnskey = Buffer.from(RFC8080.dnskey, 'hex')
  const ds = composeDs(owner, dnskey, 2)
  t.equal(Buffer.from(ds).toString('hex'), RFC8080.ds)
  t.ok(matchesDs(scanName('EXAMPLE.com.')!, dnskey, ds), 'a DS ignores case')
  t.notOk(matchesDs(scanName('example.net.')!, dnskey, ds))
  const head = Buffer.concat([
    Buffer.from('000f0f0200000e10' + '55d4fc60' + '55b94ce0' + '0e1d', 'hex'),
    owner,
  ])
  const rdata = Buffer.concat([Buffer.from([0, 10]), scanName('mail.example.com.')!])
  const set = { owner, type: RRType.MX, ttlSeconds: 3600, rdata: [rdata] }
  const signature = Buffer.concat([head, Buffer.from(RFC8080.signature, 'base64')])
  t.ok(rrsig.verifySet(set, signature, dnskey))
  const upper = Buffer.concat([Buffer.from([0, 10]), scanName('MAIL.Example.COM.')!])
  t.ok(rrsig.verifySet({ ...set, rdata: [upper] }, signature, dnskey), 'names are in lower case')
  t.notOk(rrsig.verifySet({ ...set, owner: ZONE }, signature, dnskey))
  t.end()
})

t.test('signatures of each algorithm verify, and no others', async (t) => {
  const { RsaSha256, RsaSha512, EcdsaP256, EcdsaP384, Ed25519 } = Algorithm
  for (const algorithm of [RsaSha256, RsaSha512, EcdsaP256, EcdsaP384, Ed25519]) {
    const key = signingKey(await generatePrivateKey(algorithm), algorithm, 257)
    t.equal(publicKeyOf(key.dnskey).type, 'public')
    const owner = scanName('www.example.')!
    const set = { owner, type: RRType.A, ttlSeconds: 300, rdata: a(3, 1, 2) }
    const signature = rrsig.signSet(set, key, ZONE, TIMES)
    t.equal(rrsig.coveredType(signature), RRType.A)
    t.equal(rrsig.tagOf(signature), key.tag)
    t.equal(rrsig.expirationOf(signature), TIMES.expirationSeconds)
    t.equal(rrsig.inceptionOf(signature), TIMES.inceptionSeconds)
    t.equal(rrsig.originalTtlOf(signature), 300)
    t.same(rrsig.signerOf(signature), ZONE)
    t.ok(rrsig.verifySet(set, signature, key.dnskey))
    const asSet = { ...set, rdata: a(2, 3, 1, 1) }
    t.ok(rrsig.verifySet(asSet, signature, key.dnskey), 'order and repetition do not matter')
    t.ok(rrsig.verifySet({ ...set, ttlSeconds: 5 }, signature, key.dnskey), 'a lower TTL is valid')
    t.notOk(rrsig.verifySet({ ...set, rdata: a(1, 2) }, signature, key.dnskey))
    t.notOk(rrsig.verifySet({ ...set, type: RRType.AAAA }, signature, key.dnskey))
  }
})

t.test('a wildcard signs the names that it makes', async (t) => {
  const { EcdsaP256 } = Algorithm
  const key = signingKey(await generatePrivateKey(EcdsaP256), EcdsaP256, 256)
  const set = { owner: scanName('*.example.')!, type: RRType.A, ttlSeconds: 300, rdata: a(1) }
  const signature = rrsig.signSet(set, key, ZONE, TIMES)
  const made = { ...set, owner: scanName('a.B.example.')! }
  t.ok(rrsig.verifySet(made, signature, key.dnskey))
  t.ok(rrsig.verifySet(set, signature, key.dnskey))
  const asterisk = { ...set, owner: scanName('*.b.example.')! }
  t.ok(rrsig.verifySet(asterisk, signature, key.dnskey), 'also a name that looks like one')
  t.notOk(rrsig.verifySet({ ...set, owner: ZONE }, signature, key.dnskey))
})
