import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import t from 'tap'
import { putFile, startServer } from '../support/server.ts'
import { readMessage, wireQuery } from '../support/wire.ts'

// Long: it starts several servers for each transport.

const CLIENT_COOKIE = '2464c4abcf10c957'
const [OLD, NEW] = ['0123456789abcdef0123456789abcdef', 'f'.repeat(32)]
/** Ample: a busy machine takes long. */
const ANSWER_MS = 30_000

/** The cookie of the reply to a query with this cookie, in hexadecimal. */
async function askWith(port: number, cookie: string): Promise<string> {
  const socket = createSocket('udp4')
  try {
    const options = [[10, Buffer.from(cookie, 'hex')]] as const
    socket.send(wireQuery({ name: 'x.example', edns: { options } }), port, '127.0.0.1')
    const [reply] = await once(socket, 'message', { signal: AbortSignal.timeout(ANSWER_MS) })
    return Buffer.from(readMessage(reply).options.get(10)!).toString('hex')
  } finally {
    socket.close()
  }
}

for (const transport of ['batch', 'dgram']) {
  t.test(`${transport}: servers with the same secrets accept each other's cookies`, async (t) => {
    const start = (secrets: string) =>
      startServer(t, {
        corefile: `.:{PORT} {\n bind 127.0.0.1\n whoami\n}\n`,
        files: { secrets },
        args: ['-cookie-secrets', 'secrets'],
        env: { SEXTANT_UDP: transport },
      })
    const [one, two, other] = await Promise.all([start(OLD), start(`${OLD}\n${NEW}`), start(NEW)])
    const cookie = await askWith(one.port, CLIENT_COOKIE)
    t.match(cookie, new RegExp(`^${CLIENT_COOKIE}01000000[0-9a-f]{24}$`))
    // A valid cookie that is fresh comes back unchanged.
    t.equal(await askWith(two.port, cookie), cookie)
    t.not(await askWith(other.port, cookie), cookie)
    putFile(two.directory, 'secrets', `${NEW}\n${OLD}`)
    await two.prints(/cookie secrets: 2 loaded from secrets[\s\S]*cookie secrets: 2 loaded/)
    const fresh = await askWith(two.port, cookie)
    t.not(fresh, cookie)
    t.equal(await askWith(other.port, fresh), fresh)
  })
}

t.test('the node agent has the secrets of the file, too', async (t) => {
  const start = (command: 'serve' | 'node') =>
    startServer(t, {
      corefile: `.:{PORT} {\n bind 127.0.0.1\n whoami\n}\n`,
      files: { secrets: OLD },
      command,
      args: ['-cookie-secrets', 'secrets'],
    })
  const [server, agent] = await Promise.all([start('serve'), start('node')])
  const cookie = await askWith(server.port, CLIENT_COOKIE)
  t.equal(await askWith(agent.port, cookie), cookie)
})

t.test('without the file, servers do not share a secret', async (t) => {
  const corefile = '.:{PORT} {\n bind 127.0.0.1\n whoami\n}\n'
  const [one, two] = await Promise.all([startServer(t, { corefile }), startServer(t, { corefile })])
  const cookie = await askWith(one.port, CLIENT_COOKIE)
  t.equal(await askWith(one.port, cookie), cookie)
  t.not(await askWith(two.port, cookie), cookie)
})
