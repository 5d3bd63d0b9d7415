import t, { type Test } from 'tap'
import { selfSigned } from '../../support/certificate.ts'
import { ask, askEach } from '../../support/dig.ts'
import { startPeer } from '../../support/nameservers.ts'
import { needs } from '../../support/peer.ts'
import { startServer } from '../../support/server.ts'
import { startUnbound } from '../../support/unbound.ts'

const RECORDS = [
  'example. 3600 IN SOA ns.example. root.example. 1 2 3 4 5',
  'ns.example. 3600 IN A 127.0.0.1',
  'www.example. 60 IN A 192.0.2.1',
  'alias.example. 60 IN CNAME www.example.',
  'mail.example. 60 IN MX 10 www.example.',
  ...Array.from({ length: 150 }, (_, i) => `many.example. 60 IN A 192.0.2.${i + 1}`),
]

const QUESTIONS = ['www.example A', 'WwW.eXample AAAA', 'none.example A', 'alias.example CNAME']

/** Asks the upstream and a server that forwards to it, and compares. */
async function compare(t: Test, upstreamPort: number): Promise<void> {
  const ours = await startServer(t, {
    corefile: `.:{PORT} {
  bind 127.0.0.1
  errors
  forward . 127.0.0.1:${upstreamPort}
}
`,
  })
  for (const flags of [
    ['+rec'],
    ['+norec'],
    ['+tcp'],
    ['+dnssec', '+cd'],
    ['+noedns'],
    ['+subnet=192.0.2.0/24'],
  ]) {
    const questions = [...QUESTIONS, 'mail.example MX', 'many.example A']
    const args = questions.map((question) => question.split(' '))
    const allTheirs = await askEach(upstreamPort, flags, args)
    const replies = await askEach(ours.port, flags, args)
    for (const [i, question] of questions.entries()) {
      const [theirs, reply] = [allTheirs[i]!, replies[i]!]
      const name = `${flags.join(' ')} ${question}`
      t.equal(reply.status, theirs.status, name)
      t.strictSame([...reply.answer].sort(), [...theirs.answer].sort(), name)
      t.strictSame(reply.flags, theirs.flags, name)
    }
  }
  t.notMatch(ours.output(), /\[ERROR\]/)
}

t.test('answers are those of Unbound', needs('dig', 'unbound'), async (t) => {
  const unbound = await startUnbound(t, { records: RECORDS })
  await compare(t, unbound.port)
})

t.test('answers are those of BIND', needs('dig', 'named'), async (t) => {
  const zoneText = `${RECORDS.join('\n')}\nexample. 3600 IN NS ns.example.\n`
  const bind = await startPeer(t, 'named', { zone: 'example', port: 1, signed: false, zoneText })
  await compare(t, bind.port)
})

t.test('an upstream that dies and comes back', needs('dig', 'unbound'), async (t) => {
  const unbound = await startUnbound(t, { records: RECORDS })
  const ours = await startServer(t, {
    corefile: `.:{PORT} {
  bind 127.0.0.1
  errors
  forward . 127.0.0.1:${unbound.port}
}
`,
  })
  const question = ['+tries=1', '+time=10', 'www.example', 'A']
  t.equal((await ask('dig', ours.port, question)).status, 'NOERROR')
  unbound.process.kill('SIGKILL')
  await new Promise((resolve) => unbound.process.once('close', resolve))
  t.equal((await ask('dig', ours.port, question)).status, 'SERVFAIL')
  await ours.prints(/www\.example\. A: 127\.0\.0\.1:\d+: connection refused/)
  const { port, tlsPort } = unbound
  await startUnbound(t, { records: RECORDS, ports: { port, tlsPort } })
  t.equal((await ask('dig', ours.port, question)).status, 'NOERROR')
})

t.test('DNS over TLS to Unbound', needs('dig', 'unbound'), async (t) => {
  const host = 'dns.example.net'
  const certificate = selfSigned(host)
  const unbound = await startUnbound(t, { records: RECORDS, certificate })
  const ours = await startServer(t, {
    corefile: `.:{PORT} {
  bind 127.0.0.1
  errors
  forward . tls://127.0.0.1%${host}:${unbound.tlsPort} {
    tls ca.pem
  }
}
`,
    files: { 'ca.pem': certificate.cert },
  })
  const questions = QUESTIONS.map((question) => question.split(' '))
  const allTheirs = await askEach(unbound.port, ['+rec'], questions)
  const replies = await askEach(ours.port, ['+rec'], questions)
  for (const [i, question] of QUESTIONS.entries()) {
    const [theirs, reply] = [allTheirs[i]!, replies[i]!]
    t.equal(reply.status, theirs.status, question)
    t.strictSame(reply.answer, theirs.answer, question)
  }
  t.notMatch(ours.output(), /\[ERROR\]/)
})
