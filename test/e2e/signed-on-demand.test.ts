import { execFile } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { UdpClient } from '../support/client.ts'
import { ask, askEach } from '../support/dig.ts'
import { needs } from '../support/peer.ts'
import { startServer } from '../support/server.ts'
import { signZone } from '../support/signed-zone.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'
import { readMessage } from '../support/wire.ts'
import { Delv, readKey } from './delv.ts'
import { startUnboundResolver } from './resolvers.ts'

// Long: it starts servers, and delv for each question.

/* Answers that are signed on demand, with a key of BIND or of our own, validated by delv and by Unbound. */

const start = promisify(execFile)

const SOURCES = `  hosts {
    192.0.2.1 www.s.example
    192.0.2.2 www.s.example
    192.0.2.3 *.apps.s.example s.example
  }
  template IN A s.example {
    match ^alias\\.s\\.example\\.$
    answer "{{ .Name }} 60 IN CNAME www.s.example."
    fallthrough
  }
  template IN A s.example {
    match ^out\\.s\\.example\\.$
    answer "{{ .Name }} 60 IN CNAME elsewhere.example."
    fallthrough
  }
  template IN TXT s.example {
    match ^(?P<text>[a-z]+)\\.txt\\.s\\.example\\.$
    answer "{{ .Name }} 60 IN TXT {{ .Group.text }}"
    fallthrough
  }
  template IN ANY s.example {
    match ^(.*\\.)?no(pe)?\\.s\\.example\\.$
    rcode NXDOMAIN
    authority "s.example. 60 IN SOA ns.s.example. hostmaster.s.example. 1 7200 1800 86400 30"
    fallthrough
  }
`

const ZONE = `$TTL 600
@ SOA ns1 hostmaster 1 3600 600 86400 300
@ NS ns1
ns1 A 127.0.0.1
www A 192.0.2.4
a.b.ent A 192.0.2.6
*.wild A 192.0.2.7
alias CNAME www
*.cwild CNAME www
dn DNAME target
www.target A 192.0.2.9
secure NS ns1
insecure NS ns1
`
const CHILD =
  '@ 600 SOA ns1 hostmaster 1 3600 600 86400 300\n@ 600 NS ns1.s.example.\nwww 600 A 192.0.2.20\n'

/** Question, and whether validation is possible. Names that do not exist are NOERROR: Unbound and delv know no CO. */
const QUESTIONS: Readonly<Record<string, readonly [question: string, isSecure: boolean][]>> = {
  sources: [
    ['www.s.example A', true],
    ['www.s.example AAAA', true],
    ['www.s.example TXT', true],
    ['s.example DNSKEY', true],
    ['s.example A', true],
    ['s.example CDS', true],
    ['any.apps.s.example A', true],
    ['any.apps.s.example AAAA', true],
    ['alias.s.example A', true],
    ['some.txt.s.example TXT', true],
    ['nope.s.example A', true],
    ['a.b.c.nope.s.example MX', true],
  ],
  file: [
    ['www.s.example A', true],
    ['s.example DNSKEY', true],
    ['s.example SOA', true],
    ['s.example NS', true],
    ['www.s.example TXT', true],
    ['www.s.example DS', true],
    ['nope.s.example A', true],
    ['nope.www.s.example A', true],
    ['b.ent.s.example A', true],
    ['ent.s.example A', true],
    ['any.wild.s.example A', true],
    ['some.any.wild.s.example A', true],
    ['any.wild.s.example TXT', true],
    ['*.wild.s.example A', true],
    ['alias.s.example A', true],
    ['x.cwild.s.example A', true],
    ['dn.s.example DNAME', true],
    ['www.dn.s.example A', true],
    ['nope.dn.s.example A', true],
    ['secure.s.example DS', true],
    ['www.secure.s.example A', true],
    ['nope.secure.s.example A', true],
    ['insecure.s.example DS', true],
    ['www.insecure.s.example A', false],
  ],
}

const tools = needs('dig', 'delv', 'unbound', 'dnssec-keygen', 'dnssec-signzone')
for (const [name, questions] of Object.entries(QUESTIONS)) {
  t.test(`delv and Unbound validate answers of ${name}`, tools, async (t) => {
    const directory = temporaryDirectory(t)
    const child = await signZone(join(directory, 'child'), {
      algorithm: 'ECDSAP256SHA256',
      zone: 'secure.s.example',
      text: CHILD,
    })
    const block = (zone: string, lines: string): string => {
      return `${zone}:{PORT} {\n  bind 127.0.0.1\n  any\n  loadbalance\n${lines}}\n`
    }
    const keys = join(directory, 'keys')
    const line = name === 'file' ? `key file ${await generateKey(keys)}` : `keys ${keys}`
    const dnssec = `  dnssec {\n    ${line}\n    denial compact\n  }\n`
    const { port } = await startServer(t, {
      corefile:
        block('s.example', dnssec + (name === 'file' ? '  file zone\n' : SOURCES)) +
        block('secure.s.example', '  file secure\n') +
        block('insecure.s.example', '  file insecure\n'),
      files: { zone: ZONE + child.ds, secure: child.text, insecure: CHILD },
    })
    const key = readKey(keys)
    const delv = new Delv(port, directory, key)
    for (const [question, isSecure] of questions) {
      await delv.expect(t, question, 'NOERROR', isSecure)
    }
    const names = ['s.example', 'secure.s.example', 'insecure.s.example']
    const zones = Object.fromEntries(names.map((zone) => [zone, [port]]))
    const unbound = await startUnboundResolver(t, { key, zones, reuses: 'nothing' })
    const split = questions.map(([question]) => question.split(' '))
    // Twice: new signatures, and those of the cache.
    for (const _ of ['new', 'cached']) {
      const replies = await askEach(unbound.port, ['+dnssec', '+rec'], split)
      const answered = replies.filter(({ answer }) => answer.length > 0)
      t.equal(answered.length, name === 'file' ? 15 : 6, 'replies with an answer')
      for (const [i, [question, isSecure]] of questions.entries()) {
        const { status, flags } = replies[i]!
        // The zone below has a chain of NSEC records.
        const rcode = question.startsWith('nope.secure') ? 'NXDOMAIN' : 'NOERROR'
        t.equal(status, rcode, `${question}: rcode of Unbound`)
        t.equal(flags.includes('ad'), isSecure, `${question}: AD of Unbound`)
      }
    }
    const client = await UdpClient.connect(port)
    const question = { name: 'no.s.example', type: 'A', dnssecOk: true, compactOk: true }
    const { rcode, opt } = readMessage(await client.ask(question))
    client.close()
    t.equal(rcode, 3, 'NXDOMAIN for a client that sets CO')
    t.equal(opt?.ttl, 0xc000, 'the reply has CO')
    const plain = await ask('dig', port, ['no.s.example', 'A'])
    t.equal(plain.status, 'NXDOMAIN', 'a client without DO')
    t.notMatch(plain.text, /RRSIG|NSEC/)
  })
}

/** Makes a key with BIND; returns the path of its files. */
async function generateKey(directory: string): Promise<string> {
  mkdirSync(directory)
  const args = ['-q', '-K', directory, '-a', 'ECDSAP256SHA256', '-f', 'KSK', 's.example']
  const { stdout } = await start('dnssec-keygen', args)
  return join(directory, stdout.trim())
}
