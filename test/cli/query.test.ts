import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { createServer } from 'node:net'
import t from 'tap'
import { runQuery } from '../../src/cli/query.ts'
import { OptionCode, RRType } from '../../src/dns/iana/index.ts'
import { composeMessage } from '../../src/dns/message/compose-message.ts'
import { EDNS_DNSSEC_OK, HeaderFlag } from '../../src/dns/message/header.ts'
import type { Message } from '../../src/dns/message/message.ts'
import { parseMessage } from '../../src/dns/message/parse-message.ts'
import { printName, scanName } from '../../src/dns/name/name.ts'
import { freePort } from '../support/free-port.ts'

/** What one reply should be; undefined = silence. */
type Responder = (query: Message, protocol: 'UDP' | 'TCP') => readonly (Message | Uint8Array)[]

const owner = scanName('www.example.org.')!

function answer(query: Message, change: Partial<Message> = {}): Message {
  return {
    ...query,
    flags: HeaderFlag.QR | HeaderFlag.AA,
    answer: [
      { owner, type: RRType.A, rrclass: 1, ttlSeconds: 60, rdata: new Uint8Array([192, 0, 2, 1]) },
    ],
    ...change,
  }
}

function octetsOf(reply: Message | Uint8Array): Uint8Array {
  return reply instanceof Uint8Array ? reply : composeMessage(reply)
}

/** A server on a free port, UDP and TCP, that remembers what it was asked. */
async function startServer(
  t: Tap,
  respond: Responder,
): Promise<{ port: number; asked: Message[] }> {
  const asked: Message[] = []
  const handle = (octets: Uint8Array, protocol: 'UDP' | 'TCP') => {
    const query = parseMessage(octets)!
    asked.push(query)
    return respond(query, protocol).map(octetsOf)
  }
  const tcp = createServer((socket) => {
    socket.on('error', () => {})
    socket.on('data', (octets) => {
      for (const reply of handle(octets.subarray(2), 'TCP')) {
        const whole = Buffer.concat([Buffer.from([reply.length >> 8, reply.length]), reply])
        // In two pieces, as a slow network would.
        socket.write(whole.subarray(0, 1))
        socket.write(whole.subarray(1))
      }
    })
  })
  const port = await freePort()
  tcp.listen(port, '127.0.0.1')
  await once(tcp, 'listening')
  const udp = createSocket('udp4')
  udp.on('message', (octets, from) => {
    for (const reply of handle(octets, 'UDP')) udp.send(reply, from.port, from.address)
  })
  udp.bind(port, '127.0.0.1')
  await once(udp, 'listening')
  t.teardown(() => {
    udp.close()
    tcp.close()
  })
  return { port, asked }
}

/** What of a test `startServer` needs. */
interface Tap {
  readonly teardown: (handler: () => void) => unknown
}

async function run(
  port: number,
  ...args: string[]
): Promise<{ code: number; out: string; err: string }> {
  const out: string[] = []
  const err: string[] = []
  const all = ['@127.0.0.1', '-p', String(port), '+time=10', '+tries=2', ...args]
  const code = await runQuery(
    all,
    (line) => out.push(line),
    (line) => err.push(line),
  )
  return { code, out: out.join('\n'), err: err.join('\n') }
}

t.test('prints the answer as data', async (t) => {
  const { port } = await startServer(t, (query) => [answer(query)])
  const { code, out } = await run(port, 'www.example.org', '-o', 'json')
  t.equal(code, 0)
  t.match(JSON.parse(out), {
    opcode: 'QUERY',
    status: 'NOERROR',
    question: { name: 'www.example.org.', class: 'IN', type: 'A' },
    answer: [{ name: 'www.example.org.', ttl: 60, class: 'IN', type: 'A', data: '192.0.2.1' }],
    authority: [],
    server: `127.0.0.1#${port}`,
    transport: 'UDP',
    octets: 60,
  })
  t.match(await run(port, 'www.example.org', '-oyaml'), { code: 0, out: /^ {2}type: A$/m })
  t.match(await run(port, 'example.org', 'AXFR', '-o', 'json'), {
    code: 1,
    err: '-o json is not possible with AXFR, which prints a zone file: remove it',
  })
})

t.test('prints the answer as dig does', async (t) => {
  const { port } = await startServer(t, (query) => [answer(query)])
  const { code, out, err } = await run(port, 'www.example.org')
  t.equal(code, 0)
  t.equal(err, '')
  t.match(
    out,
    /^\n; <<>> Sextant <<>> @127\.0\.0\.1 .*www\.example\.org\n;; Got answer:\n;; ->>HEADER<<- /,
  )
  t.match(out, /;; QUESTION SECTION:\n;www\.example\.org\.\t\tIN\tA\n/)
  t.match(
    out,
    /\n;; ANSWER SECTION:\nwww\.example\.org\.\t60\tIN\tA\t192\.0\.2\.1\n\n;; Query time: \d+ msec\n/,
  )
  t.match(
    out,
    new RegExp(
      `\\n;; SERVER: 127\\.0\\.0\\.1#${port}\\(127\\.0\\.0\\.1\\) \\(UDP\\)\\n;; MSG SIZE  rcvd: 60$`,
    ),
  )
  t.equal((await run(port, 'www.example.org', '+short')).out, '192.0.2.1')
})

t.test('sends the query that its arguments describe', async (t) => {
  const { port, asked } = await startServer(t, (query) => [answer(query)])
  const last = async (...args: string[]) => {
    await run(port, ...args)
    return asked.at(-1)!
  }
  const plain = await last('www.example.org')
  t.equal(plain.question?.type, RRType.A)
  t.equal(plain.question?.rrclass, 1)
  t.equal(plain.flags, HeaderFlag.RD)
  t.strictSame(plain.edns, { payloadOctets: 1232, version: 0, flags: 0, options: [] })
  t.equal((await last('www.example.org', 'https')).question?.type, RRType.HTTPS)
  t.equal((await last('www.example.org', 'TYPE65280')).question?.type, 65280)
  t.equal((await last('a', 'any')).question?.type, RRType.ANY)
  t.equal((await last('version.bind', 'CH', 'TXT')).question?.rrclass, 3)
  t.equal((await last('a', '+norecurse')).flags, 0)
  t.equal((await last('a', '+dnssec')).edns?.flags, EDNS_DNSSEC_OK)
  t.equal((await last('a', '+dnssec', '+nodnssec')).edns?.flags, 0)
  t.equal((await last('a', '+nsid')).edns?.options[0]?.code, OptionCode.NSID)
  const subnets = {
    '81.2.69.160/24': '00011800510245',
    '192.0.2.1': '00012000c0000201',
    '2001:db8::/32': '0002200020010db8',
    0: '00010000',
  }
  for (const [text, want] of Object.entries(subnets)) {
    const [option] = (await last('a', `+subnet=${text}`)).edns!.options
    t.equal(option?.code, OptionCode.ECS)
    t.equal(Buffer.from(option!.data).toString('hex'), want, text)
  }
  t.strictSame((await last('-x', '192.0.2.1')).question, {
    name: new Uint8Array(scanName('1.2.0.192.in-addr.arpa.')!),
    type: RRType.PTR,
    rrclass: 1,
  })
  const ip6 = (await last('-x', '2001:db8::1')).question
  t.strictSame(
    ip6?.name,
    new Uint8Array(scanName(`1.${'0.'.repeat(23)}8.b.d.0.1.0.0.2.ip6.arpa.`)!),
  )
})

t.test('uses TCP after a truncated reply, and with +tcp', async (t) => {
  const { port } = await startServer(t, (query, protocol) => [
    protocol === 'TCP'
      ? answer(query)
      : answer(query, { answer: [], flags: HeaderFlag.QR | HeaderFlag.TC }),
  ])
  const truncated = await run(port, 'www.example.org')
  t.equal(truncated.err, ';; Truncated, retrying in TCP mode.')
  t.match(truncated.out, /192\.0\.2\.1\n(?:.|\n)*\(TCP\)/)
  const overTcp = await run(port, 'www.example.org', '+tcp')
  t.equal(overTcp.err, '')
  t.match(overTcp.out, /192\.0\.2\.1\n(?:.|\n)*\(TCP\)/)
})

t.test('passes over replies to other queries', async (t) => {
  const question = { name: scanName('www.example.com.')!, type: 1, rrclass: 1 }
  const { port } = await startServer(t, (query) => [
    new Uint8Array(3),
    composeMessage(answer(query)).subarray(0, 30),
    answer(query, { id: query.id ^ 1 }),
    answer(query, { question }),
    answer(query, { question: undefined }),
    answer(query, { flags: 0 }),
    answer(query, { rcode: 3, answer: [] }),
  ])
  const { code, out } = await run(port, 'WWW.example.org')
  t.equal(code, 0)
  t.match(out, /status: NXDOMAIN/)
})

t.test('takes an error without a question', async (t) => {
  const { port } = await startServer(t, (query) => [
    answer(query, { rcode: 1, question: undefined, answer: [] }),
  ])
  t.match((await run(port, 'a')).out, /status: FORMERR(?:.|\n)*QUERY: 0/)
})

t.test('asks again when a query got lost', async (t) => {
  let count = 0
  const { port, asked } = await startServer(t, (query) => (count++ === 0 ? [] : [answer(query)]))
  t.equal((await run(port, 'www.example.org', '+time=2')).code, 0)
  t.equal(asked.length, 2)
})

t.test('gives up with exit code 9', async (t) => {
  const { port, asked } = await startServer(t, (query, protocol) =>
    protocol === 'TCP' ? [answer(query, { id: query.id ^ 1 })] : [],
  )
  const silent = await run(port, 'a', '+time=1')
  t.equal(silent.code, 9)
  t.equal(silent.out, '')
  t.equal(
    silent.err,
    `;; communications error to 127.0.0.1#${port}: timed out\n;; no servers could be reached`,
  )
  t.equal(asked.length, 2)
  const wrong = await run(port, 'a', '+tcp')
  t.equal(wrong.code, 9)
  t.match(wrong.err, /malformed or does not match the query/)
})

t.test('reports a server that does not listen', async (t) => {
  const port = await freePort()
  for (const args of [['a'], ['a', '+tcp']]) {
    const { code, err } = await run(port, ...args)
    t.equal(code, 9)
    t.match(err, /connection refused/)
  }
})

t.test('takes type, class and name in any order, and glued options, as dig does', async (t) => {
  const { port, asked } = await startServer(t, (query) => [answer(query)])
  const table: { given: string[]; want: [string, number, number] }[] = [
    { given: ['MX', 'example.org'], want: ['example.org.', RRType.MX, 1] },
    { given: ['CH', 'TXT', 'version.bind'], want: ['version.bind.', RRType.TXT, 3] },
    { given: ['example.org', 'CH', 'MX'], want: ['example.org.', RRType.MX, 3] },
    { given: ['mx'], want: ['mx.', RRType.A, 1] },
    { given: ['mx', 'txt'], want: ['mx.', RRType.TXT, 1] },
    { given: ['mx', 'ns.'], want: ['ns.', RRType.MX, 1] },
    { given: ['-x192.0.2.1'], want: ['1.2.0.192.in-addr.arpa.', RRType.PTR, 1] },
    { given: ['-x', '192.0.2.1', 'TXT'], want: ['1.2.0.192.in-addr.arpa.', RRType.TXT, 1] },
  ]
  for (const { given, want } of table) {
    const errors: string[] = []
    const line = (text: string) => errors.push(text)
    t.equal(await runQuery([`-p${port}`, '@127.0.0.1', ...given], () => {}, line), 0)
    const { name, type, rrclass } = asked.at(-1)!.question!
    t.strictSame([printName(name), type, rrclass], want, given.join(' '))
    t.strictSame(errors, [])
  }
})

t.test('refuses arguments it cannot use with exit code 1', async (t) => {
  const table: { given: string[]; want: RegExp }[] = [
    { given: [], want: /missing name/ },
    { given: ['a..b'], want: /invalid name: "a\.\.b"/ },
    { given: ['b', 'NOTYPE'], want: /unknown type: "NOTYPE"/ },
    { given: ['a', '-p', '65536'], want: /invalid port/ },
    { given: ['a', '-p'], want: /invalid port/ },
    { given: ['a', '-p0'], want: /invalid port: "0"/ },
    { given: ['a', '-q'], want: /invalid option: -q/ },
    { given: ['a', '+frobnicate'], want: /invalid option: \+frobnicate/ },
    { given: ['a', '+frobnicate=1'], want: /invalid option: \+frobnicate/ },
    { given: ['a', '+subnet=1.2.3.4/33'], want: /invalid value of \+subnet/ },
    { given: ['a', '+time=0'], want: /1 to 60/ },
    { given: ['a', '+tries=99'], want: /1 to 10/ },
    { given: ['-x', 'example.org'], want: /invalid address/ },
    { given: ['a', '@'], want: /missing server after @/ },
  ]
  for (const { given, want } of table) {
    const errors: string[] = []
    const code = await runQuery(
      given,
      () => t.fail('prints nothing'),
      (line) => errors.push(line),
    )
    t.equal(code, 1, given.join(' '))
    t.match(errors.join('\n'), want)
  }
})
