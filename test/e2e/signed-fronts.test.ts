import { join } from 'node:path'
import t from 'tap'
import { parseMessage } from '../../src/dns/message/parse-message.ts'
import { UdpClient } from '../support/client.ts'
import { askEach } from '../support/dig.ts'
import { needs } from '../support/peer.ts'
import { faultsOfMessage } from '../support/response-validator.ts'
import { startServer } from '../support/server.ts'
import { wire } from '../support/zone-names.ts'
import { Delv, readKey } from './delv.ts'
import { startUnboundResolver } from './resolvers.ts'
import { dnskeysOf } from './signed-clients.ts'

// Long: it starts servers, and delv for each question.

/*
 * Aliases, wildcards and cuts that `template`, `hosts` and `rewrite` make in front of a signed zone, or without one: each
 * answer validates, or is unsigned because its end is outside of the zone. Names outside of all zones are REFUSED.
 */

const ZONE = `$TTL 600
@ SOA ns1 hostmaster 7 3600 600 86400 300
@ NS ns1
@ A 192.0.2.3
ns1 A 127.0.0.1
www A 192.0.2.1
alias CNAME www
*.cwild CNAME www
out CNAME www.u.example.
*.owild CNAME www.u.example.
cut NS ns1
`
const FRONT = `rewrite name exact old.s.example www.s.example
  rewrite name exact oldalias.s.example alias.s.example
  template IN ANY s.example {
    match ^front\\.s\\.example\\.$
    answer "{{ .Name }} 60 IN CNAME x.cwild.s.example."
    fallthrough
  }
  template IN ANY s.example {
    match ^[a-z]+\\.frontwild\\.s\\.example\\.$
    answer "{{ .Name }} 60 IN CNAME front.s.example."
    fallthrough
  }
  template IN ANY s.example {
    match ^frontout\\.s\\.example\\.$
    answer "{{ .Name }} 60 IN CNAME www.u.example."
    fallthrough
  }
`
const ON_DEMAND = `hosts {
    192.0.2.1 www.s.example
    192.0.2.3 s.example
    fallthrough
  }
  template IN ANY s.example {
    match ^(alias|[a-z]+\\.cwild)\\.s\\.example\\.$
    answer "{{ .Name }} 60 IN CNAME www.s.example."
    fallthrough
  }
  template IN ANY s.example {
    match ^(out|[a-z]+\\.owild)\\.s\\.example\\.$
    answer "{{ .Name }} 60 IN CNAME www.u.example."
    fallthrough
  }
  template IN NS s.example {
    match ^cut\\.s\\.example\\.$
    answer "{{ .Name }} 60 IN NS ns1.s.example."
    fallthrough
  }
  template IN ANY s.example {
    match ^cut\\.s\\.example\\.$
    authority "s.example. 60 IN SOA ns.s.example. hostmaster.s.example. 1 7200 1800 86400 30"
    fallthrough
  }
  template IN ANY s.example {
    match .*
    rcode NXDOMAIN
    fallthrough
  }`

const ROWS: Readonly<Record<string, readonly [dnssec: string, source: string]>> = {
  NSEC: ['', 'file db'],
  NSEC3: ['denial nsec3', 'file db'],
  compact: ['denial compact', 'file db'],
  'on demand': ['', ON_DEMAND],
}

/** Question, and whether all of its answer is of the zone. */
const QUESTIONS: Readonly<Record<string, boolean>> = {
  'alias A': true,
  'alias AAAA': true,
  'alias CNAME': true,
  'alias ANY': true,
  'x.cwild A': true,
  'x.cwild AAAA': true,
  'x.cwild CNAME': true,
  'x.cwild ANY': true,
  'x.cwild DS': true,
  'front A': true,
  'front AAAA': true,
  'front ANY': true,
  'x.frontwild A': true,
  'x.frontwild TXT': true,
  'x.frontwild ANY': true,
  'www ANY': true,
  'www DS': true,
  '@ ANY': true,
  '@ TXT': true,
  'old A': true,
  'old AAAA': true,
  'old DS': true,
  'old ANY': true,
  'oldalias A': true,
  'oldalias ANY': true,
  'nope A': true,
  'nope ANY': true,
  'nope DS': true,
  'cut DS': true,
  'out A': false,
  'x.owild A': false,
  'frontout A': false,
  'out CNAME': true,
  'frontout ANY': true,
  'www.cut A': false,
}
const REFUSED = ['example A', 'example DS', 'example ANY', '. NS', 'xs.example A', 'com DS']

const tools = needs('dig', 'delv', 'unbound')
for (const [row, [property, source]] of Object.entries(ROWS)) {
  t.test(row, tools, async (t) => {
    const block = (zone: string, lines: string): string =>
      `${zone}:{PORT} {\n  bind 127.0.0.1\n  ${lines}\n}\n`
    const { port, directory } = await startServer(t, {
      corefile: [
        block('s.example', `dnssec {\n keys keys\n ${property}\n }\n ${FRONT} ${source}`),
        block('u.example', 'file other'),
        block('cut.s.example', 'file other'),
      ].join(''),
      files: { db: ZONE, other: '@ 60 SOA ns host 1 2 3 4 5\n@ 60 NS ns\nwww 60 A 192.0.2.9\n' },
    })
    const key = readKey(join(directory, 'keys'))
    // A chain of proofs denies the names that are not in its zone.
    const asked = Object.entries(QUESTIONS).filter(([question]) => {
      return property === 'denial compact' || source !== 'file db' || !question.includes('front')
    })
    const questions = asked.map(([question, isSecure]) => {
      const [name = '', type = ''] = question.split(' ')
      return { words: [name === '@' ? 's.example' : `${name}.s.example`, type], isSecure }
    })
    const zone = { apex: wire('s.example.'), dnskeys: await dnskeysOf(port, 's.example') }
    const client = await UdpClient.connect(port)
    const ofApex = await client.ask({ name: 's.example', type: 'DS', dnssecOk: true })
    client.close()
    const nowSeconds = Date.now() / 1000
    t.strictSame(faultsOfMessage(parseMessage(ofApex)!, { ...zone, nowSeconds }), [], 'apex DS')
    const delv = new Delv(port, directory, key)
    for (const { words, isSecure } of questions) {
      if (isSecure) await delv.expect(t, words.join(' '), 'NOERROR', true)
    }
    const zones = { 's.example': [port], 'u.example': [port], 'cut.s.example': [port] }
    const unbound = await startUnboundResolver(t, { key, zones, reuses: 'proofs' })
    const all = questions.map(({ words }) => words)
    const replies = await askEach(unbound.port, ['+dnssec', '+rec'], all)
    for (const [i, { status, flags }] of replies.entries()) {
      const { words, isSecure } = questions[i]!
      t.match(status, /^(NOERROR|NXDOMAIN)$/, `${words.join(' ')}: Unbound`)
      t.equal(flags.includes('ad'), isSecure, `${words.join(' ')}: AD of Unbound`)
    }
    const refused = REFUSED.map((question) => question.split(' '))
    for (const { status, answer, authority, text } of await askEach(port, ['+dnssec'], refused)) {
      t.strictSame([status, answer, authority], ['REFUSED', [], []], text)
    }
  })
}
