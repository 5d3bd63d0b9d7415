import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import t from 'tap'
import { composeQuery } from '../support/client.ts'
import { startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

const COREFILE = 'example.org:{PORT} {\n  bind 127.0.0.1\n  whoami\n}\n'

t.test(
  'a client with one port gets each of its answers, whether or not they go in groups',
  async (t) => {
    const table = [
      { gso: 'on', says: /udp: batch \(recvmmsg\)$/m },
      { gso: 'off', says: /udp: batch \(recvmmsg\), replies one by one \(SEXTANT_GSO\)$/m },
    ]
    for (const { gso, says } of table) {
      const env = { SEXTANT_UDP: 'batch', SEXTANT_GSO: gso }
      const server = await startServer(t, { corefile: COREFILE, env })
      await server.prints(says)
      const socket = createSocket('udp4')
      t.teardown(() => socket.close())
      const ids: number[] = []
      socket.on('message', (reply) => ids.push(reply.readUInt16BE(0)))
      socket.connect(server.port, '127.0.0.1')
      await once(socket, 'connect')
      for (let id = 0; id < 200; id++) {
        socket.send(composeQuery({ name: 'www.example.org', type: 'A' }, id))
      }
      await until(async () => ids.length >= 200, 'all are answered')
      t.strictSame(
        ids.toSorted((a, b) => a - b),
        [...Array(200).keys()],
      )
    }
  },
)

t.test('another value of SEXTANT_GSO is refused', async (t) => {
  const env = { SEXTANT_GSO: 'always' }
  const server = await startServer(t, { corefile: COREFILE, env, mustStart: false })
  t.equal(await server.exited(), 1)
  t.match(server.output(), 'SEXTANT_GSO is "always"; unset it, or set it to on or off')
})
