import { createServer, Packet } from 'dns2'
import t from 'tap'
import { ask } from '../support/dig.ts'
import { freePort } from '../support/free-port.ts'
import { needs } from '../support/peer.ts'
import { startServer } from '../support/server.ts'

/*
 * dns2 is a DNS library by others. Its server is an upstream of `forward` that composes replies without our composer.
 * It truncates no reply, so `forward` repeats a query over TCP because of the length of the reply.
 */

const { A, TXT } = Packet.TYPE
const NXDOMAIN = 3
const LONG_TEXTS = Array.from({ length: 12 }, (_, i) => `${i}-${'x'.repeat(120)}`)

t.test('a server of dns2 is an upstream, over UDP and TCP', needs('dig'), async (t) => {
  const port = await freePort()
  const upstream = createServer({
    udp: true,
    tcp: true,
    handle: (request, send) => {
      const reply = Packet.createResponseFromRequest(request)
      const { name = '', type = 0 } = request.questions[0] ?? {}
      const base = { name, type, class: Packet.CLASS.IN, ttl: 5 }
      const answers: readonly object[] =
        name === 'www.example.net' && type === A
          ? [{ ...base, address: '192.0.2.7' }]
          : LONG_TEXTS.flatMap((data) => (type === TXT ? [{ ...base, data }] : []))
      if (answers.length === 0) reply.header.rcode = NXDOMAIN
      reply.answers.push(...(answers as Packet['answers']))
      send(reply)
    },
  })
  const at = { port, address: '127.0.0.1' }
  await upstream.listen({ udp: at, tcp: at })
  t.teardown(() => upstream.close())
  const server = await startServer(t, {
    corefile: `.:{PORT} {\n  bind 127.0.0.1\n  forward . 127.0.0.1:${port}\n}\n`,
  })

  const short = await ask('dig', server.port, ['www.example.net', 'A'])
  t.strictSame(short.answer, ['www.example.net. 5 IN A 192.0.2.7'])
  const missing = await ask('dig', server.port, ['no.example.net', 'A'])
  t.equal(missing.status, 'NXDOMAIN')
  const long = await ask('dig', server.port, ['long.example.net', 'TXT'])
  t.equal(long.answer.length, LONG_TEXTS.length)
})
