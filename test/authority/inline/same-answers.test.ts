import fc from 'fast-check'
import t from 'tap'
import { needs } from '../../support/peer.ts'
import { runs } from '../../support/runs.ts'
import { BindComparison } from './bind-comparison.ts'

const ZONE = 'example.org'
const HEAD = `$TTL 300
@ 600 SOA ns host 7 2 3 4 120
@ NS ns
ns A 192.0.2.1
`
const LABELS = ['a', 'b', '*', 'c'] as const
/** Rdata by kind of name. A name of the kinds before the last two has nothing else. */
const KINDS = {
  CNAME: ['CNAME a'],
  DNAME: ['DNAME target.b'],
  delegation: ['NS ns.a', 'NS ns.invalid.'],
  signed: ['NS ns', `DS 1 13 2 ${'00'.repeat(32)}`],
  address: ['A 192.0.2.2', 'AAAA 2001:db8::2'],
  text: ['TXT "x"', '60 MX 10 a'],
} as const
type Kind = keyof typeof KINDS

const name = fc.array(fc.constantFrom(...LABELS), { minLength: 1, maxLength: 3 })
const entry = fc.record({
  labels: name,
  kind: fc.constantFrom<Kind>(
    'address',
    'text',
    'address',
    'text',
    'CNAME',
    'DNAME',
    'delegation',
    'signed',
  ),
})

/** Lines of a zone file without conflicts: the first kind of a name counts, and nothing is below a DNAME. */
function zoneText(entries: readonly { labels: readonly string[]; kind: Kind }[]): string {
  const kinds = new Map<string, Kind>()
  for (const { labels, kind } of entries) {
    const owner = labels.join('.')
    const isCut = kind === 'delegation' || kind === 'signed' || kind === 'DNAME'
    // A wildcard that delegates or redirects is undefined (RFC 4592 sections 4.2 and 4.4).
    if (kinds.has(owner) || (isCut && labels.includes('*'))) continue
    kinds.set(owner, kind)
  }
  const dnames = [...kinds].filter(([, kind]) => kind === 'DNAME').map(([owner]) => owner)
  const lines = [...kinds].flatMap(([owner, kind]) => {
    if (dnames.some((dname) => owner.endsWith(`.${dname}`))) return []
    const lines = KINDS[kind].map((rdata) => `${owner} ${rdata}`)
    // With opt-out, a name that is empty and has only delegations without DS below it may have an NSEC3 record, or not
    // (RFC 5155 section 7.1): here it always has another name below it.
    const above = kind === 'delegation' ? labelsAbove(owner) : ''
    return above === '' ? lines : [...lines, `beside.${above} TXT "x"`]
  })
  return `${HEAD}${lines.join('\n')}\n`
}

function labelsAbove(owner: string): string {
  return owner.split('.').slice(1).join('.')
}

/** All owners, names above and below them, and names that do not exist. */
function names(text: string): string[] {
  const found = new Set(['', 'zzz.', '0.', 'ns.'])
  for (const [, owner = ''] of text.matchAll(/^([abcdesi*.]+) /gm)) {
    const labels = owner.split('.')
    for (let i = 0; i < labels.length; i++) {
      const above = `${labels.slice(i).join('.')}.`
      for (const below of ['', 'nope.', 'a.nope.', '*.']) found.add(`${below}${above}`)
    }
  }
  return [...found].map((prefix) => `${prefix}${ZONE}.`)
}

/** Zones that are compared. */
const ZONES = { NSEC: 24, NSEC3: 16, 'NSEC3 with opt-out': 16 } as const

for (const denial of Object.keys(ZONES) as (keyof typeof ZONES)[]) {
  t.test(
    `answers are those of a zone that dnssec-signzone signed: ${denial}`,
    needs('dnssec-signzone', 'dnssec-keygen'),
    async (t) => {
      const comparison = await BindComparison.create(t, denial)
      const property = fc.asyncProperty(fc.array(entry, { maxLength: 12 }), async (entries) => {
        const text = zoneText(entries)
        await comparison.compare(text, names(text))
      })
      const numRuns = runs(ZONES[denial])
      await fc.assert(property, { numRuns, includeErrorInReport: true })
      // An empty zone has at least four names to ask for.
      t.ok(comparison.asked >= 4 * numRuns, `${comparison.asked} answers`)
    },
  )
}
