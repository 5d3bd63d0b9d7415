import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { Rcode, RRClass, RRType } from '../../src/dns/iana/index.ts'
import type { Message, ResourceRecord } from '../../src/dns/message/message.ts'
import { parseMessage } from '../../src/dns/message/parse-message.ts'
import { printName, scanName } from '../../src/dns/name/name.ts'
import { printAddress, scanAddress } from '../../src/dns/text/address.ts'
import { UdpClient } from '../support/client.ts'
import { type Asked, replyTo, ScriptedServer } from '../support/scripted-server.ts'
import { startServer } from '../support/server.ts'

/*
 * Which addresses a client gets, and which of them it is allowed: the whole program without an enforcer. This host is the
 * Pod.
 */

t.setTimeout(300_000)

const POLICIES = `
apiVersion: v1
kind: Pod
metadata: { name: app, namespace: a, labels: { app: app } }
status: { podIPs: [{ ip: 127.0.0.1 }, { ip: "::1" }] }
---
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: { name: app, namespace: a }
spec:
  endpointSelector: { matchLabels: { app: app } }
  egress:
    - toPorts: [{ ports: [{ port: "53", protocol: ANY }], rules: { dns: [{ matchPattern: "*" }] } }]
    - toFQDNs: [{ matchPattern: "*.example.com" }]
`

/** `ask` returns the addresses of an answer, `allowed` those that were allowed since the start. */
async function start(t: Test, upstream: ScriptedServer, chain = '') {
  const server = await startServer(t, {
    corefile: `.:{PORT} {
    bind 127.0.0.1
    egress {
        policies policies.yaml
        dry_run
        cluster 10.96.0.0/12 10.244.0.0/16 fd00:1::/64
        api off
    }
    ${chain}
    forward . ${upstream.address}
}
`,
    files: { 'policies.yaml': POLICIES },
  })
  const client = await UdpClient.connect(server.port)
  t.teardown(() => client.close())
  const ask = async (name: string, type: 'A' | 'AAAA' = 'A'): Promise<readonly string[]> => {
    const answer = parseMessage(await client.ask({ name, type }))?.answer ?? []
    const found = answer.filter((record) => record.type === RRType[type])
    return found.map(({ rdata }) => printAddress(rdata, rdata.length === 4 ? 1 : 2)).sort()
  }
  const allowed = (): ReadonlySet<string> => {
    const lines = server.output().matchAll(/dry run: allow \S+ to (\S+),/g)
    return new Set([...lines].map(([, address]) => address!))
  }
  return { server, ask, allowed }
}

function record(owner: string, text: string): ResourceRecord {
  const address = scanAddress(text)
  const rdata = address?.bytes ?? scanName(text)!
  const type = rdata.length === 4 ? RRType.A : RRType.AAAA
  return {
    owner: scanName(owner)!,
    type: address === undefined ? RRType.CNAME : type,
    rrclass: RRClass.IN,
    ttlSeconds: 60,
    rdata,
  }
}

const nameOf = ({ question }: Message): string => printName(question!.name)

t.test('forged replies, and records that do not belong to the question', async (t) => {
  const forged = '203.0.113.66'
  const other = 'other.example.com.'
  const forgers = [createSocket('udp4'), createSocket('udp4')]
  t.teardown(() => forgers.forEach((socket) => void socket.close()))
  const [otherPort, otherSource] = forgers
  otherPort!.bind(0, '127.0.0.1')
  otherSource!.bind(0, '127.0.0.9')
  await Promise.all(forgers.map((socket) => once(socket, 'listening')))
  const forge = (query: Message, question: Partial<Message['question']> = {}) => {
    const asked = { ...query.question!, ...question }
    return replyTo(query, { question: asked, answer: [record(nameOf(query), forged)] })
  }
  /** The real answer comes after it. */
  const sent = (_: unknown): readonly ResourceRecord[] => []
  /** Sends a forged reply, or returns what the real answer has beside the real address. */
  const attacks: Readonly<Record<string, (asked: Asked) => readonly ResourceRecord[]>> = {
    id: ({ query, send }) => sent(send(forge({ ...query, id: query.id ^ 1 }))),
    name: ({ query, send }) => sent(send(forge(query, { name: scanName(other)! }))),
    type: ({ query, send }) => sent(send(forge(query, { type: RRType.TXT }))),
    class: ({ query, send }) => sent(send(forge(query, { rrclass: RRClass.CH }))),
    'no-question': ({ query, send }) => {
      const answer = [record(nameOf(query), forged)]
      return sent(send(replyTo(query, { question: undefined, answer })))
    },
    port: ({ query, from }) => sent(otherPort!.send(forge(query), from, '127.0.0.1')),
    source: ({ query, from }) => sent(otherSource!.send(forge(query), from, '127.0.0.1')),
    'other-owner': () => [record(other, forged)],
    'detached-chain': () => [record('x.example.com.', other), record(other, forged)],
    'chain-to-it': ({ query }) => [record(other, nameOf(query)), record(other, forged)],
  }
  const kinds = Object.keys(attacks)
  const upstream = await ScriptedServer.openRaw(t, (asked) => {
    const { query, send } = asked
    const name = nameOf(query)
    const [kind = ''] = name.split('.')
    const beside = attacks[kind]?.(asked) ?? []
    const own = record(name, `198.18.0.${kinds.indexOf(kind) + 1}`)
    const additional = [record(name, forged)]
    // What comes from another socket comes first.
    setImmediate(() => send(replyTo(query, { answer: [...beside, own], additional })))
  })
  const { server, ask, allowed } = await start(t, upstream)
  for (const [i, kind] of kinds.entries()) {
    const own = `198.18.0.${i + 1}`
    t.ok((await ask(`${kind}.example.com`)).includes(own), kind)
    await server.prints(new RegExp(`allow 127.0.0.1 to ${own},`))
  }
  t.strictSame([...allowed()].sort(), kinds.map((_, i) => `198.18.0.${i + 1}`).sort())
})

t.test('a CNAME loop, and one that leads nowhere', async (t) => {
  const upstream = await ScriptedServer.open(t, (query) => {
    const name = nameOf(query)
    if (name.startsWith('last.')) return [record(name, '198.18.0.2')]
    const next = name.startsWith('loop.') ? name : 'gone.example.com.'
    return [
      record(name, 'y.example.com.'),
      record('y.example.com.', next),
      record('z.example.com.', '203.0.113.66'),
    ]
  })
  const { server, ask, allowed } = await start(t, upstream)
  for (const name of ['loop.example.com', 'chain.example.com', 'last.example.com']) await ask(name)
  await server.prints(/allow 127.0.0.1 to 198.18.0.2,/)
  t.strictSame([...allowed()], ['198.18.0.2'])
})

t.test('rebinding: a name resolves to addresses that are never allowed', async (t) => {
  const bad = {
    A: [
      ...['169.254.169.254', '127.0.0.1', '127.0.0.53', '0.0.0.0', '224.0.0.1', '255.255.255.255'],
      ...['10.96.0.1', '10.244.0.9'],
    ],
    AAAA: [
      ...['::1', '::', 'fe80::1', 'ff02::1', 'fd00:1::5'],
      // IPv4-mapped addresses, and those of NAT64, of the addresses above.
      ...['::ffff:10.96.0.1', '::ffff:169.254.169.254', '::ffff:127.0.0.1'],
      ...['64:ff9b::a60:1', '64:ff9b::a9fe:a9fe', '64:ff9b::7f00:1', '64:ff9b:1::af4:9'],
    ],
  }
  const good = { A: '198.18.0.1', AAAA: '2001:db8:1::1' }
  const upstream = await ScriptedServer.open(t, (query) => {
    const name = nameOf(query)
    const type = query.question!.type === RRType.A ? 'A' : 'AAAA'
    // dns64 makes its AAAA records.
    if (name.startsWith('dns64.') && type === 'AAAA') return []
    return [...bad[type], good[type]].map((text) => record(name, text))
  })
  const { server, ask, allowed } = await start(t, upstream, 'dns64 {\n allow_ipv4\n}')
  t.equal((await ask('a.example.com')).length, bad.A.length + 1, 'the answer is unchanged')
  await server.prints(/to 198.18.0.1,/)
  t.equal((await ask('a.example.com', 'AAAA')).length, bad.AAAA.length + 1)
  await server.prints(/to 2001:db8:1::1,/)
  t.equal((await ask('dns64.example.com', 'AAAA')).length, bad.A.length + 1)
  await server.prints(/to 64:ff9b::c612:1,/)
  t.strictSame([...allowed()], ['198.18.0.1', '2001:db8:1::1', '64:ff9b::c612:1'])
})

t.test('names that the search path led to', async (t) => {
  const [address, other] = ['198.18.0.1', '198.18.0.2']
  const upstream = await ScriptedServer.openRaw(t, ({ query, send }) => {
    const name = nameOf(query)
    const isName = name.split('.').length === 4 && name.endsWith('example.com.')
    const answer = isName ? [record(name, name === 'www.example.com.' ? address : other)] : []
    send(replyTo(query, { rcode: isName ? Rcode.NOERROR : Rcode.NXDOMAIN, answer }))
  })
  const path = join(t.testdir({}), 'resolv.conf')
  writeFileSync(path, 'search a.svc.cluster.local svc.cluster.local example.com\n')
  const { server, ask } = await start(t, upstream, `autopath ${path}`)
  t.strictSame(await ask('www.example.com.a.svc.cluster.local'), [address], 'without a suffix')
  await server.prints(new RegExp(`allow 127.0.0.1 to ${address},`))
  t.strictSame(await ask('other.a.svc.cluster.local'), [other], 'with another suffix')
  await server.prints(new RegExp(`allow 127.0.0.1 to ${other},`))
})
