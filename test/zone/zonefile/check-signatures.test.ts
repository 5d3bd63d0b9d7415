import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { runWhole } from '../../../src/base/slices.ts'
import { loadZoneText } from '../../../src/zone/zonefile/load.ts'
import { needs } from '../../support/peer.ts'
import { type SigningOptions, signZone } from '../../support/signed-zone.ts'
import { wire } from '../../support/zone-text.ts'

/*
 * What a load warns of: zones that BIND's tools have signed, with records taken away or changed, at other times.
 */

const TEXT = `@ 600 SOA ns1 hostmaster 1 3600 600 86400 300
$TTL 600
@ NS ns1
ns1 A 192.0.2.1
www A 192.0.2.4
www TXT "two sets"
a.b.ent A 192.0.2.6
*.wild A 192.0.2.7
dn DNAME www
below.dn A 192.0.2.8
insecure NS ns.insecure
ns.insecure A 192.0.2.9
`

const HOUR = 3600
const DAY = 24 * HOUR
/** Signatures are valid from an hour before they were made for 30 days. */
const VALID_DAYS = 30

const tools = needs('dnssec-keygen', 'dnssec-signzone')

async function signed(t: Test, nsec3?: SigningOptions['nsec3']): Promise<string> {
  const directory = mkdtempSync(join(tmpdir(), 'sextant-check-'))
  t.teardown(() => rmSync(directory, { recursive: true, force: true }))
  const options = { zone: 's.example', text: TEXT, algorithm: 'ECDSAP256SHA256' } as const
  const args = ['-O', 'full']
  const parts = nsec3 === undefined ? { ...options, args } : { ...options, args, nsec3 }
  return (await signZone(directory, parts)).text
}

/** The one warning of a load, without the position; '' = none. `laterSeconds`: from now. */
function warningOf(text: string, laterSeconds = 0): string {
  const bytes = Buffer.from(text, 'latin1')
  const source = { file: 'db', text: bytes, stamp: '' }
  const nowSeconds = Math.floor(Date.now() / 1000) + laterSeconds
  const load = runWhole(loadZoneText(source, wire('s.example.'), { nowSeconds }))
  if (load.kind !== 'loaded') throw new Error(JSON.stringify(load))
  const warnings = load.warnings.filter(({ message }) => /^zone \S+ is signed[:,]/.test(message))
  if (warnings.length > 1) throw new Error('more than one warning')
  return warnings[0]?.message ?? ''
}

/** Lines of the zone without those that match. */
const without = (text: string, pattern: RegExp): string => {
  const lines = text.split('\n')
  const kept = lines.filter((line) => !pattern.test(line.replace(/\s+/g, ' ')))
  if (kept.length === lines.length) throw new Error(`nothing matches ${pattern}`)
  return kept.join('\n')
}

const BROKEN = 'zone s.example. is signed, but will not validate as served: '

t.test('what is valid, but should not be used', tools, async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'sextant-check-'))
  t.teardown(() => rmSync(directory, { recursive: true, force: true }))
  const text = `${TEXT}insecure DS 1 13 1 ${'ab'.repeat(20)}\nns1 DS 1 13 1 ${'ab'.repeat(20)}
ns1 DS 1 13 2 ${'ab'.repeat(32)}\n`.replace(/^ns1 A .*$/m, 'ns1 NS insecure\nns1 A 192.0.2.1')
  const args = ['-O', 'full', '-e', `now+${400 * DAY}`]
  const options = { zone: 's.example', text, algorithm: 'RSASHA512', args } as const
  const { text: zone } = await signZone(directory, options)
  const warning = warningOf(zone)
  t.match(warning, / with signatures that are valid for more than a year \(first: /)
  t.match(
    warning,
    '1 RRset(s) with a digest that should not be used any more (RFC 9905) (first: insecure.s.example. DS)',
  )
  t.match(warning, 'algorithm RSASHA512 should not be used any more (RFC 9904)')
})

t.test('a zone with NSEC', tools, async (t) => {
  const text = await signed(t)
  t.equal(warningOf(text), '', 'intact')
  t.match(
    warningOf(text, (VALID_DAYS + 1) * DAY),
    `${BROKEN}16 RRset(s) with expired signatures (first: `,
  )
  t.match(
    warningOf(text, -2 * HOUR),
    / RRset\(s\) with signatures that are not valid yet \(first: /,
  )
  const soon = warningOf(text, (VALID_DAYS - 1) * DAY)
  t.match(
    soon,
    /^zone s\.example\. is signed: \d+ RRset\(s\) with signatures that expire within 48 hours/,
  )
  t.match(soon, /; sign the zone again$/)
  t.equal(warningOf(text, (VALID_DAYS - 3) * DAY), '', 'three days are enough')
  const cases: readonly (readonly [string, RegExp, string])[] = [
    [
      'a missing signature',
      /^www\.s\.example\. .* RRSIG A /,
      '1 RRset(s) without signature (first: www.s.example. A)',
    ],
    [
      'signatures of one type',
      / RRSIG TXT /,
      '1 RRset(s) without signature (first: www.s.example. TXT)',
    ],
    ['the keys', / DNSKEY /, 'the apex has no DNSKEY'],
    ['a link', /^www\.s\.example\. .* NSEC /, '1 name(s) without NSEC (first: www.s.example.)'],
    ['a link', /^www\.s\.example\. .* NSEC /, 'the NSEC chain is broken at *.wild.s.example.'],
    ['the link of the apex', /^s\.example\. .* NSEC /, 'the apex has neither NSEC nor NSEC3PARAM'],
  ]
  for (const [name, pattern, want] of cases) {
    const found = warningOf(without(text, pattern))
    t.ok(found.startsWith(BROKEN), `${name}: ${found}`)
    t.ok(found.includes(want), `${name}: ${found}`)
  }
  const cut = text.replace(/^(ns1\.s\.example\.\s.*IN\s+NSEC\s+)\S+/m, '$1nowhere.s.example.')
  t.match(warningOf(cut), 'the NSEC chain is broken at ns1.s.example.')
  const all = without(without(text, / RRSIG /), / (NSEC|DNSKEY) /)
  t.equal(warningOf(all), '', 'a zone that is not signed')
})

t.test('an RRset is as good as the best of its signatures', tools, async (t) => {
  const text = await signed(t)
  const line = text.split('\n').find((line) => /^www\.s\.example\..*RRSIG\s+A /.test(line))!
  const old = line.replace(/ \d{14} \d{14} /, ' 20200201000000 20200101000000 ')
  t.not(old, line)
  t.equal(warningOf(`${text}\n${old}\n`), '')
  const only = warningOf(text.replace(line, old))
  t.match(only, `${BROKEN}1 RRset(s) with expired signatures (first: www.s.example. A)`)
})

t.test('signatures of keys that the apex does not have', tools, async (t) => {
  const text = await signed(t)
  const lines = text.split('\n')
  const signature = lines.find((line) => /^www\.s\.example\..*RRSIG\s+A /.test(line))!
  const [tag = ''] = / (\d+) s\.example\. /.exec(signature)!.slice(1)
  const changed = (from: string, to: string): string => {
    const other = signature.replace(from, to)
    t.not(other, signature)
    return warningOf(text.replace(signature, other))
  }
  const want = `${BROKEN}1 RRset(s) with signatures of keys that the apex does not have (first: www.s.example. A)`
  t.match(changed(` ${tag} s.example.`, ` ${(Number(tag) + 1) % 65536} s.example.`), want)
  t.match(changed(` ${tag} s.example.`, ` ${tag} t.example.`), want)
  t.match(changed('RRSIG\tA 13 ', 'RRSIG\tA 14 '), want)
  t.equal(warningOf(text.replaceAll(` ${tag} s.example.`, ` ${tag} S.Example.`)), '', 'case')
  const two = `${text}\n${signature.replace(` ${tag} s.`, ` ${(Number(tag) + 1) % 65536} s.`)}\n`
  t.equal(warningOf(two), '', 'one of two signatures is of a key that is there')
  const zoneKey = lines.find((line) => / DNSKEY\s+256 /.test(line.replace(/\s+/g, ' ')))!
  const without = text.replace(zoneKey, zoneKey.replace('256 3', '0 3'))
  t.match(warningOf(without), /signatures of keys that the apex does not have/, 'not a zone key')
})

t.test('a zone with NSEC3', tools, async (t) => {
  const text = await signed(t, { salt: 'AABB', iterations: 0, optOut: false })
  t.equal(warningOf(text), '', 'intact')
  const links = text
    .split('\n')
    .filter((line) => /\sNSEC3\s/.test(line) && !/RRSIG\s+NSEC3/.test(line))
  const cut = text.replace(links[2]!, '')
  t.match(warningOf(cut), 'the NSEC3 chain is broken at ')
  t.match(warningOf(without(text, / NSEC3PARAM /)), 'the apex has neither NSEC nor NSEC3PARAM')
  const other = text.replace(/(NSEC3PARAM\s+1 0 0 )AABB/, '$1AABC')
  t.match(warningOf(other), 'no NSEC3 record fits the apex and its NSEC3PARAM')
  // The chain that is complete is served, whatever other parameters stand beside it.
  const parameters = text.split('\n').find((line) => /\sNSEC3PARAM\s+1 0 0 /.test(line))!
  for (const beside of ['1 0 5 CC', '2 0 0 AABB', '1 1 0 AABB']) {
    const line = parameters.replace(/1 0 0 AABB/, beside)
    t.not(line, parameters)
    t.equal(warningOf(text.replace(parameters, `${line}\n${parameters}`)), '', beside)
  }
})

t.test('a chain that servers can not use', tools, async (t) => {
  const text = await signed(t, { salt: 'AABB', iterations: 0, optOut: true })
  const flagged = text.replace(/(NSEC3PARAM\s+1) 0 /, '$1 1 ')
  t.not(flagged, text)
  t.match(warningOf(flagged), 'NSEC3PARAM has flags or an unknown algorithm')
})

t.test('two links of one owner, as of two names with one hash', tools, async (t) => {
  for (const nsec3 of [undefined, { salt: '-', iterations: 0, optOut: false }]) {
    const type = nsec3 === undefined ? 'NSEC' : 'NSEC3'
    const lines = (await signed(t, nsec3)).split('\n')
    const links = lines.filter((line) => new RegExp(`IN\\s${type}\\s`).test(line))
    const second = `${links[1]} CAA`
    const owner = second.split(/\s/)[0]!.toLowerCase()
    const want = `${owner} has two ${type} records of one chain`
    t.match(warningOf(`${lines.join('\n')}\n${second}\n`), want)
  }
})

t.test('both chains at once', tools, async (t) => {
  const nsec = await signed(t)
  const nsec3 = await signed(t, { salt: '-', iterations: 0, optOut: false })
  const added = nsec3
    .split('\n')
    .filter((line) => / (RRSIG )?NSEC3 /.test(line.replace(/\s+/g, ' ')))
    .join('\n')
  // The keys of the second zone are others: its signatures are, but the links are not.
  const links = added.split('\n').filter((line) => !/RRSIG\s+NSEC3/.test(line))
  const both = warningOf(`${nsec}\n${links.join('\n')}\n`)
  t.notMatch(both, /without NSEC /, 'owners of NSEC3 need no NSEC before NSEC3PARAM is there')
  t.notMatch(both, /chain is broken/)
})

t.test('iterations', tools, async (t) => {
  for (const iterations of [1, 50, 51, 150]) {
    const text = await signed(t, { salt: '-', iterations, optOut: true })
    const effect =
      iterations <= 50
        ? 'each costs processor time and protects nothing'
        : 'resolvers do not validate its negative answers'
    const want = `zone s.example. is signed: NSEC3 with ${iterations} iterations; it should have 0 (RFC 9276): ${effect}; sign the zone again`
    t.equal(warningOf(text), want)
  }
})
