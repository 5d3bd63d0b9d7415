import t from 'tap'
import { printBlockYaml } from '../../src/yaml/print-block-yaml.ts'
import { formatOf, importFiles } from '../imports/import-files.ts'
import { digAt, startPeer } from '../support/nameservers.ts'
import { needs } from '../support/peer.ts'
import { startServer } from '../support/server.ts'

// Long: it starts BIND and Sextant.

const ZONE = `$ORIGIN z.example.
$TTL 300
@ SOA ns1 hostmaster 1 7200 1800 259200 900
@ NS ns1
@ MX 10 mail
@ TXT "v=spf1 -all"
ns1 A 127.0.0.1
www 60 A 192.0.2.1
www 60 A 192.0.2.2
www AAAA 2001:db8::1
alias CNAME www
chain CNAME alias
*.wild CNAME www
*.both A 192.0.2.3
mail A 192.0.2.4
text TXT "a b" "c\\"d\\\\e" "\\195\\168"
_sip._tcp SRV 1 2 5060 mail
caa CAA 0 issue "ca.example.net"
e164 NAPTR 100 50 "u" "E2U+sip" "!^.*$!sip:info@example.com!" .
h HTTPS 1 . alpn=h2,h3 port=8443
_dns SVCB 1 dns.example.net. alpn=dot
5 PTR host.example.net.
deep.empty.z.example. A 192.0.2.5
`
const NAMES: readonly string[] = [
  ...['', 'www.', 'alias.', 'chain.', 'a.wild.', 'x.both.', 'both.', 'mail.', 'text.', 'caa.'],
  ...['_sip._tcp.', 'e164.', 'h.', '_dns.', '5.', 'empty.', 'deep.empty.', 'missing.'],
]
const TYPES = ['A', 'AAAA', 'MX', 'TXT', 'SRV', 'CAA', 'NAPTR', 'HTTPS', 'SVCB', 'PTR', 'CNAME']

async function answersOf(port: number): Promise<string[]> {
  const questions = NAMES.flatMap((name) => TYPES.map((type) => `${name}z.example. ${type}`))
  const args = ['+noall', '+comments', '+answer', '+noedns', ...questions.join(' ').split(' ')]
  const text = await digAt(port, args)
  const replies = text.split(/^;; Got answer:$/m).slice(1)
  return replies.map((reply, i) => {
    const status = /status: (\w+)/.exec(reply)?.[1]
    const records = reply.split('\n').filter((line) => line !== '' && !line.startsWith(';'))
    const lines = records.map((line) => line.replace(/\s+/g, ' ')).sort()
    return `${questions[i]}: ${status} ${lines.join(' | ')}`
  })
}

t.test('imported records answer as BIND does', needs('named', 'dig'), async (t) => {
  const { documents } = importFiles(formatOf('bind'), { 'z.example.db': ZONE })
  const records = documents.map((one) => `---\n${printBlockYaml(one).join('\n')}\n`).join('')
  const corefile = `z.example:{PORT} {
    bind 127.0.0.1
    kuadrant {
        manifests records
        nameserver ns1.z.example 127.0.0.1
    }
}
`
  const ours = await startServer(t, { corefile, files: { 'records/imported.yaml': records } })
  const peer = { zone: 'z.example', port: ours.port, signed: false, zoneText: ZONE }
  const theirs = await startPeer(t, 'named', peer)
  const want = await answersOf(theirs.port)
  t.equal(want.length, NAMES.length * TYPES.length)
  t.strictSame(await answersOf(ours.port), want)
})
