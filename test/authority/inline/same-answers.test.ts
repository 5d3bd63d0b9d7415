import { join } from 'node:path'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { RRType } from '../../../src/dns/iana/index.ts'
import { file } from '../../../src/plugins/file/setup.ts'
import { backdate } from '../../support/backdate.ts'
import { FixedSigning } from '../../support/fixed-signing.ts'
import { needs } from '../../support/peer.ts'
import { runs } from '../../support/runs.ts'
import { putFile } from '../../support/server.ts'
import { SetUp } from '../../support/setup.ts'
import { signZone } from '../../support/signed-zone.ts'
import { type Shown, show, transaction } from '../../support/transaction.ts'

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

const TYPES = [
  'A',
  'AAAA',
  'CNAME',
  'TXT',
  'MX',
  'NS',
  'DS',
  'DNAME',
  'SOA',
  'DNSKEY',
  'NSEC',
  'NSEC3PARAM',
  'ANY',
] as const

/** An answer without what keys, times and the serial decide. */
function essence({ status, flags, answer, authority, additional }: Shown): string[] {
  const sections = [answer, authority, additional].map((lines) => lines.map(withoutKeys).sort())
  return [`${status} ${flags}`, ...sections.flatMap((lines) => ['--', ...lines])]
}

function withoutKeys(line: string): string {
  const [owner, ttl, rrclass, type, rdata = ''] = line.split(' ')
  const fixed = [owner, ttl, rrclass, type].join(' ')
  // Type, algorithm, labels and TTL of a signature.
  if (type === 'RRSIG') return `${fixed} ${rdata.slice(0, 16)}`
  if (type === 'DNSKEY') return `${fixed} ${rdata.slice(0, 8)}`
  if (type === 'SOA') return `${fixed} ${rdata.slice(0, -40)} ${rdata.slice(-32)}`
  return `${fixed} ${rdata}`
}

async function start(
  t: Test,
  text: string,
  directory: string,
  signing?: FixedSigning,
): Promise<SetUp> {
  const name = signing === undefined ? 'signed' : 'plain'
  putFile(directory, name, text)
  backdate(directory)
  const directive = signing === undefined ? file : signing.around(file)
  const c = new SetUp(directive, `file ${join(directory, name)} ${ZONE}`, [`${ZONE}.`])
  c.clock.nowMs = Date.now()
  t.teardown(() => c.stop())
  await c.start()
  return c
}

/** Our policy, the same for dnssec-signzone, and how many zones are compared. */
const DENIALS = {
  NSEC: { policy: { denial: 'nsec' }, nsec3: undefined, zones: 24 },
  NSEC3: {
    policy: { denial: 'nsec3' },
    nsec3: { salt: '-', iterations: 0, optOut: false },
    zones: 16,
  },
  'NSEC3 with opt-out': {
    policy: { denial: 'nsec3', optOut: true },
    nsec3: { salt: '-', iterations: 0, optOut: true },
    zones: 16,
  },
} as const

for (const [kind, { policy, nsec3, zones }] of Object.entries(DENIALS)) {
  t.test(
    `answers are those of a zone that dnssec-signzone signed: ${kind}`,
    needs('dnssec-signzone', 'dnssec-keygen'),
    async (t) => {
      const signing = new FixedSigning(policy)
      await signing.makeSplitKeys()
      const keys = t.testdir({})
      let asked = 0
      const property = fc.asyncProperty(fc.array(entry, { maxLength: 12 }), async (entries) => {
        const text = zoneText(entries)
        const args = ['-x', '-T', '3600', '-n', '1']
        const options = { zone: ZONE, text, algorithm: 'ECDSAP256SHA256', nsec3, args } as const
        const { text: signed } = await signZone(join(keys, 'bind'), options)
        const theirs = await start(t, signed, keys)
        const ours = await start(t, text, keys, signing)
        for (const name of names(text)) {
          for (const type of TYPES) {
            const question = { name, type: RRType[type], dnssecOk: true, payloadOctets: 4096 }
            const [expected, found] = [theirs, ours].map((c) =>
              show(c.handler(), transaction(question)),
            )
            const [want, have] = [essence(await expected!), essence(await found!)]
            asked++
            if (want.join('\n') !== have.join('\n')) {
              throw new Error(
                `${name} ${type}\nzone:\n${text}\nBIND's:\n${want.join('\n')}\nours:\n${have.join('\n')}`,
              )
            }
          }
        }
        await theirs.stop()
        await ours.stop()
      })
      await fc.assert(property, { numRuns: runs(zones) })
      t.ok(asked > 500, `${asked} answers`)
    },
  )
}
