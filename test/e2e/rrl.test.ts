import { randomBytes } from 'node:crypto'
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { get } from 'node:http'
import { connect } from 'node:net'
import t from 'tap'
import { freePort, startServer } from '../support/server.ts'
import { readMessage, wireQuery } from '../support/wire.ts'
import { SpoofingClient } from './spoofing-client.ts'

// Long: it floods a server for tens of seconds.

t.setTimeout(600_000)

const TXT_OCTETS = 1100
/** Of the limit of all clients together. */
const GAIN_OCTETS = 20_000
const PER_SECOND = 5

const ZONE = `$ORIGIN z.example.
@ 3600 SOA ns hostmaster 1 3600 600 86400 60
@ 3600 NS ns
ns 60 A 192.0.2.53
a 60 A 192.0.2.1
*.wild 60 A 192.0.2.2
big 60 TXT ${Array.from({ length: 5 }, () => `"${'x'.repeat(TXT_OCTETS / 5)}"`).join(' ')}
`
const BIG = wireQuery({ name: 'big.z.example', type: 16, edns: { payload: 1232 } })
const fetchPage = (port: number): Promise<string> =>
  new Promise((resolve, reject) => {
    get({ host: '127.0.0.1', port, path: '/metrics', agent: false }, (response) => {
      let body = ''
      response.on('data', (chunk) => (body += chunk))
      response.on('end', () => resolve(body))
    }).on('error', reject)
  })

/** One question over a connection of its own. */
async function askTcp(port: number, query: Uint8Array): Promise<Uint8Array | undefined> {
  const socket = connect(port, '127.0.0.1')
  socket.write(Buffer.concat([Buffer.from([0, query.length]), query]))
  let got = Buffer.alloc(0)
  for await (const chunk of socket) {
    got = Buffer.concat([got, chunk as Buffer])
    if (got.length >= 2 && got.length >= 2 + got.readUInt16BE(0)) break
  }
  socket.destroy()
  return got.length > 2 ? got.subarray(2) : undefined
}

/** A client of a real address: it asks again over TCP after TC, and sends the cookie that it got. */
class Resolver {
  asked = 0
  answered = 0
  byTcp = 0
  readonly #socket: Socket
  readonly #port: number
  readonly #cookie: Buffer | undefined
  #serverCookie: Uint8Array | undefined

  constructor(port: number, sendsCookies: boolean) {
    this.#socket = createSocket('udp4')
    this.#port = port
    this.#cookie = sendsCookies ? randomBytes(8) : undefined
  }

  async ask(): Promise<void> {
    this.asked++
    const cookie = this.#serverCookie ?? this.#cookie
    const options = cookie === undefined ? [] : [[10, cookie] as const]
    const query = wireQuery({ name: 'big.z.example', type: 16, edns: { payload: 1232, options } })
    const received = once(this.#socket, 'message', { signal: AbortSignal.timeout(10_000) })
    this.#socket.send(query, this.#port, '127.0.0.1')
    let reply = await received.then(
      ([packet]) => packet as Uint8Array,
      () => undefined,
    )
    if (reply !== undefined && (reply[2]! & 2) !== 0) {
      this.byTcp++
      reply = await askTcp(this.#port, query)
    }
    if (reply === undefined) return
    const message = readMessage(reply)
    this.#serverCookie = message.options.get(10) ?? this.#serverCookie
    if (message.answer.length === 1) this.answered++
  }

  close(): void {
    this.#socket.close()
  }
}

for (const [transport, sources] of [
  ['batch', 100_000],
  ['dgram', 20_000],
] as const) {
  t.test(`${transport}: a flood gains nothing, known clients lose nothing`, async (t) => {
    const metrics = await freePort()
    const server = await startServer(t, {
      corefile: `z.example:{PORT} {
        bind 127.0.0.1
        errors
        multisocket 2
        prometheus 127.0.0.1:${metrics}
        rrl {
          responses-per-second ${PER_SECOND}
          ipv4-prefix-length 32
          amplified-octets-per-second ${GAIN_OCTETS}
        }
        file db.z
      }\n`,
      files: { 'db.z': ZONE },
      env: { SEXTANT_UDP: transport },
    })
    const { port } = server
    const client = new SpoofingClient(t, port)
    const resolvers = [new Resolver(port, true), new Resolver(port, false)]
    t.teardown(() => {
      for (const resolver of resolvers) resolver.close()
    })

    await t.test(`from ${sources} addresses`, async (t) => {
      const startMs = performance.now()
      let turns = 0
      await client.flood(1, sources, BIG, undefined, async () => {
        if (++turns % 16 === 0) await Promise.all(resolvers.map((resolver) => resolver.ask()))
      })
      const seconds = (performance.now() - startMs) / 1000
      const gain = client.replyOctets - client.sentOctets
      const ratio = client.replyOctets / client.sentOctets
      t.comment(
        `${client.sent} queries in ${seconds.toFixed(1)} s, octets out / in ${ratio.toFixed(3)}`,
      )
      t.ok(gain <= GAIN_OCTETS * (seconds + 1) + TXT_OCTETS * 2, `${gain} octets gained`)
      t.ok(client.replies > sources * 0.98, `${client.replies} replies`)
      t.ok(client.truncated > sources * 0.9, `${client.truncated} truncated`)
      const [known, unknown] = resolvers as [Resolver, Resolver]
      t.comment(`cookie: ${known.answered}/${known.asked}, ${known.byTcp} by TCP`)
      t.comment(`none: ${unknown.answered}/${unknown.asked}, ${unknown.byTcp} by TCP`)
      for (const { asked, answered } of resolvers) {
        t.ok(asked >= 20 && answered >= asked * 0.99, `${answered} of ${asked} answered`)
      }
      t.ok(known.byTcp <= 1, 'a cookie is enough')
    })

    const page = await fetchPage(metrics)
    t.match(page, /^coredns_rrl_responses_exceeded_total\{.*category="amplified"\} [1-9]/m)
    t.match(page, /^coredns_panics_total 0$/m)
    await server.prints(/plugin\/rrl: limited: all clients: amplified octets/)
  })

  t.test(`${transport}: one address`, async (t) => {
    const metrics = await freePort()
    const server = await startServer(t, {
      corefile: `z.example:{PORT} {
        bind 127.0.0.1
        multisocket 2
        prometheus 127.0.0.1:${metrics}
        rrl {
          responses-per-second ${PER_SECOND}
        }
        file db.z
      }\n`,
      files: { 'db.z': ZONE },
      env: { SEXTANT_UDP: transport },
    })
    const { port } = server
    for (const [what, query, min] of [
      ['equal questions', () => BIG, 0.9],
      [
        'names below a wildcard',
        (i: number) => wireQuery({ name: `r${i}.wild.z.example`, edns: { payload: 1232 } }),
        0.9,
      ],
      ['names that do not exist', (i: number) => wireQuery({ name: `r${i}.z.example` }), 0.9],
      ['names of no block', (i: number) => wireQuery({ name: `r${i}.example.net` }), 0],
      ['malformed packets', () => BIG.subarray(0, 20), 0],
    ] as const) {
      await t.test(what, async (t) => {
        const one = new SpoofingClient(t, port)
        const startMs = performance.now()
        const count = 600
        // Names differ from one part to the next.
        for (let i = 0; i < count; i += 100) await one.flood(0, 100, query(i), () => 77)
        const seconds = (performance.now() - startMs) / 1000
        const whole = one.replies - one.truncated
        t.ok(whole <= PER_SECOND * (seconds + 1), `${whole} whole replies in ${seconds} s`)
        t.ok(one.truncated >= count * min, `${one.truncated} truncated`)
        t.ok(one.replyOctets <= one.sentOctets + whole * (TXT_OCTETS + 200))
      })
    }

    const page = await fetchPage(metrics)
    t.match(page, /^coredns_rrl_responses_exceeded_total\{.*category="error"\} [1-9]/m)
    t.match(page, /^sextant_rrl_truncated_total\{/m)
    t.match(page, /^coredns_panics_total 0$/m)
    const lines = server
      .output()
      .split('\n')
      .filter((line) => line.includes('plugin/rrl'))
    t.comment(lines.slice(0, 3).join('\n'))
    t.ok(lines.length >= 1 && lines.length <= 11 * 10, `${lines.length} lines`)
  })
}
