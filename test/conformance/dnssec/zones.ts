/*
 * Zones with what makes signing and proofs of absence hard, as the tests of other servers have it. The apex is
 * example.org.
 */

const HEAD = `$TTL 300
@ 600 SOA ns host 7 2 3 4 120
@ NS ns
ns A 192.0.2.1
`
const DS = `1 13 2 ${'00'.repeat(32)}`
const LABEL = 'x'.repeat(63)
/** 255 octets with the apex: the longest name. */
const LONGEST = [LABEL, LABEL, LABEL, 'x'.repeat(49)].join('.')
/** 254 octets: no label fits below it. */
const LONG = [LABEL, LABEL, LABEL, 'x'.repeat(48)].join('.')
/** 127 labels with the apex and the root. */
const DEEPEST = Array.from({ length: 121 }, () => 'a').join('.')

function addresses(owner: string, count: number): string {
  const line = (i: number): string => `${owner} A 10.0.${i >> 8}.${i & 255}\n`
  return Array.from({ length: count }, (_, i) => line(i)).join('')
}

export const ZONES: Readonly<Record<string, string>> = {
  'only an apex': `$TTL 300
@ SOA ns.elsewhere. host 7 2 3 4 120
@ NS ns.elsewhere.
`,
  'wildcards at several levels': `${HEAD}*.w A 192.0.2.2
*.w TXT "any"
a.w A 192.0.2.3
*.b.w A 192.0.2.4
x.y.*.w TXT "below a wildcard"
*.*.twice A 192.0.2.5
*.cname CNAME a.w
*.missing CNAME no.such
*.chain CNAME any.w
*.away CNAME www.elsewhere.
*.mx MX 10 any.w
one.mx MX 20 ns
self.loop CNAME self.loop
*.ent.sub.sub A 192.0.2.6
`,
  'a wildcard at the apex': `${HEAD}* A 192.0.2.2
* MX 10 ns
a.b.c TXT "blocks c, b.c and a.b.c"
cut NS ns.cut
ns.cut A 192.0.2.3
`,
  'delegations with and without DS': `${HEAD}secure NS ns.secure
secure NS ns
secure DS ${DS}
ns.secure A 192.0.2.2
insecure NS ns.insecure
ns.insecure A 192.0.2.3
ns.insecure AAAA 2001:db8::3
www.insecure A 192.0.2.4
deep.below.insecure NS ns.insecure
b.a.empty NS ns
c.a.empty NS ns
c.a.empty DS ${DS}
d.e.insecurely NS ns
other.name NS ns.away.
alias CNAME www.secure
alias2 CNAME www.insecure
*.aliases CNAME any.insecure
`,
  'DS without NS': `${HEAD}lonely DS ${DS}
host DS ${DS}
host A 192.0.2.2
*.any DS ${DS}
`,
  DNAME: `${HEAD}dn DNAME target
dn A 192.0.2.2
dn TXT "beside"
www.target A 192.0.2.3
*.any.target A 192.0.2.4
cname.target CNAME www.target
again.target DNAME target
away DNAME elsewhere.
gone DNAME no.such
long DNAME ${LONG}
alias CNAME www.dn
alias2 CNAME no.dn
*.wild CNAME www.dn
below.ent.dn2 DNAME target
`,
  'DNAME at the apex': `$TTL 300
@ SOA ns.elsewhere. host 7 2 3 4 120
@ NS ns.elsewhere.
@ DNAME example.net.
`,
  'odd names': `${HEAD}\\000 A 192.0.2.2
\\000\\000 A 192.0.2.3
\\255 A 192.0.2.4
\\001.\\255 A 192.0.2.5
a\\.b A 192.0.2.6
\\032 A 192.0.2.7
\\@ A 192.0.2.8
\\091 A 192.0.2.9
MiXeD.CaSe MX 10 NS.Example.ORG.
_443._tcp TLSA 3 1 1 ${'00'.repeat(32)}
1.2.3.4.5.6.7.8 A 192.0.2.10
${LONGEST} A 192.0.2.11
${LONG} TXT "one octet less"
${DEEPEST} A 192.0.2.12
*.${LABEL}.${LABEL}.${LABEL}.${'y'.repeat(40)} A 192.0.2.13
`,
  'large RRsets': `${HEAD}${addresses(`${LABEL}.${LABEL}`, 700)}many TXT${' "0123456789"'.repeat(200)}
${Array.from({ length: 200 }, (_, i) => `texts TXT "${i}" "${'t'.repeat(200)}"\n`).join('')}types A 192.0.2.2
types AAAA 2001:db8::2
types HINFO a b
types LOC 1 N 1 E 1m
types CAA 0 issue "a"
types TYPE1000 \\# 1 00
types TYPE65280 \\# 0
types TYPE32000 \\# 2 0102
`,
}

/** Presentation forms of names to ask for: those of the zone, above and below them, and beside them. */
export function namesOf(zone: string): string[] {
  const found = new Set(['', 'zzz', '0', '\\000', 'a.b.zzz', '*'])
  for (const [, owner = ''] of zone.matchAll(/^([^\s@$]+) /gm)) {
    // A dot after a backslash is part of a label.
    const labels = owner.split(/(?<!\\)\./)
    // A name of 120 labels has no more to tell at each of them.
    const step = labels.length > 20 ? 40 : 1
    for (let i = 0; i < labels.length; i += step) {
      const above = labels.slice(i).join('.')
      for (const below of ['', 'nope.', 'a.nope.', '*.', '\\000.']) found.add(below + above)
      found.add(labels.slice(i).join('.').replace(/^[^.]/, '!'))
    }
  }
  return [...found].map((prefix) => (prefix === '' ? 'example.org.' : `${prefix}.example.org.`))
}

export const TYPES = [
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
