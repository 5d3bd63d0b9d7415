import { join } from 'node:path'
import t from 'tap'
import { askEach } from '../support/dig.ts'
import { needs } from '../support/peer.ts'
import { startServer } from '../support/server.ts'
import { Delv, readKey } from './delv.ts'
import { startUnboundResolver } from './resolvers.ts'

// Long: it starts servers, and delv for each question.

/* Zones with keys of every algorithm that the server makes, validated by Unbound and delv. */

const ZONE = `$TTL 600
@ SOA ns1 hostmaster 1 3600 600 86400 300
@ NS ns1
ns1 A 127.0.0.1
*.wild A 192.0.2.7
a.b.ent A 192.0.2.6
alias CNAME ns1
`

/** Zone, its lines of `dnssec`, and the algorithm number. */
const ZONES = [
  ['csk.example', '', 13],
  ['split.example', 'split', 13],
  ['rsa256.example', 'algorithm RSASHA256', 8],
  ['rsa512.example', 'algorithm RSASHA512\n split', 10],
  ['p384.example', 'algorithm ECDSAP384SHA384', 14],
  ['ed.example', 'algorithm ED25519', 15],
  ['edsplit.example', 'algorithm ED25519\n split\n denial nsec3', 15],
  ['compact.example', 'algorithm ECDSAP384SHA384\n split\n denial compact', 14],
] as const

t.test('keys that the server makes', needs('dig', 'delv', 'unbound'), async (t) => {
  const block = ([zone, lines]: (typeof ZONES)[number]): string =>
    `${zone}:{PORT} {\n bind 127.0.0.1\n dnssec {\n keys ${zone}\n ${lines}\n }\n file zone\n}\n`
  const { port, directory } = await startServer(t, {
    corefile: ZONES.map(block).join(''),
    files: { zone: ZONE },
  })
  for (const [zone, lines, algorithm] of ZONES) {
    const key = readKey(join(directory, zone))
    const delv = new Delv(port, directory, key)
    const { port: resolver } = await startUnboundResolver(t, { key, zones: { [zone]: [port] } })
    const isCompact = lines.includes('compact')
    const questions = [
      [`${zone} DNSKEY`, 'NOERROR'],
      [`${zone} SOA`, 'NOERROR'],
      [`alias.${zone} A`, 'NOERROR'],
      [`any.wild.${zone} A`, 'NOERROR'],
      [`b.ent.${zone} A`, 'NOERROR'],
      [`nope.${zone} A`, isCompact ? 'NOERROR' : 'NXDOMAIN'],
    ] as const
    for (const [question, rcode] of questions) await delv.expect(t, question, rcode, true)
    const words = questions.map(([question]) => question.split(' '))
    const replies = await askEach(resolver, ['+dnssec', '+rec'], words)
    for (const [i, { status, flags }] of replies.entries()) {
      const [question, rcode] = questions[i]!
      t.equal(status, rcode, `${question}: rcode of Unbound`)
      t.ok(flags.includes('ad'), `${question}: AD of Unbound`)
    }
    const dnskeys = replies[0]!.answer.filter((line) => / IN DNSKEY /.test(line))
    const flags = dnskeys.map((line) => line.replace(/^.* DNSKEY (\d+ \d+ \d+) .*$/, '$1')).sort()
    const all = lines.includes('split') ? ['256', '257'] : ['257']
    t.strictSame(
      flags,
      all.map((one) => `${one} 3 ${algorithm}`),
      `${zone}: its keys`,
    )
  }
})
