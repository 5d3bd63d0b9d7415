import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import t from 'tap'
import { composeQuery } from '../../support/client.ts'
import { DataServer } from '../../support/data-server.ts'
import { until } from '../../support/until.ts'
import { DIRECTIVES } from './refusing-toys.ts'
import { toys } from './toys.ts'

// Long: it starts a server with threads for each case.

/** Each end of a thread costs a second, because threads that end at once are not restarted earlier. */
const ENDS = 4
const CLIENTS = 8

t.test('no counter decreases while threads end at random', async (t) => {
  const text = 'z.example:0 {\n bind 127.0.0.1\n multisocket 2\n toy 1\n}\n'
  const server = new DataServer(t, {
    module: new URL('./refusing-toys.ts', import.meta.url),
    directives: DIRECTIVES,
    corefile: { kind: 'text', name: 'Corefile', text },
    threads: 2,
  })
  const port = await server.start()
  const threadsAtStart = server.totals.threads
  const query = (name: string): Buffer => composeQuery({ name, type: 'A' }, 1)
  const packets = [
    query('a.z.example'),
    query('refused.example'),
    Buffer.alloc(5),
    // A response, which is ignored, and an opcode that is not implemented.
    ...[0x80, 0x78].map((flags) => {
      const packet = query('a.z.example')
      packet[2] = flags
      return packet
    }),
  ]
  const sockets = await Promise.all(
    Array.from({ length: CLIENTS }, async () => {
      const socket = createSocket('udp4')
      socket.connect(port, '127.0.0.1')
      await once(socket, 'connect')
      return socket
    }),
  )
  t.teardown(() => {
    for (const socket of sockets) socket.close()
  })

  const toy = toys.at(-1)!
  let last = new Map<string, number>()
  /** Compares all counters with those of the last call. */
  const check = (): void => {
    const { totals } = server
    const { losses, ignored, panics, dropped } = totals
    const now = new Map<string, number>(Object.entries({ ...losses, ignored, panics }))
    for (const [address, { queries, ...rest }] of dropped) {
      for (const [name, count] of Object.entries(rest)) now.set(`${address} ${name}`, count)
      for (const { proto, family, count } of queries) {
        now.set(`${address} queries ${proto} ${family}`, count)
      }
    }
    now.set('toy', toy.counted())
    for (const [name, count] of last) {
      const next = now.get(name) ?? -1
      if (next < count) t.fail(`${name} decreased from ${count} to ${next}`)
    }
    last = now
  }
  const started = server.workers.length
  for (let ended = 1; ended <= ENDS; ended++) {
    const at = last.get('unsent') ?? 0
    await until(() => {
      for (const socket of sockets) for (const packet of packets) socket.send(packet)
      check()
      return last.get('unsent')! > at + 20
    }, 'replies that the kernel refused')
    // A thread that has ended has no number.
    const alive = server.workers.filter(({ threadId }) => threadId !== -1)
    await alive[Math.floor(Math.random() * alive.length)]!.terminate()
    await until(() => {
      check()
      return server.workers.length === started + ended
    }, 'another thread')
  }
  check()
  t.ok(last.get('unsent')! >= ENDS * 20)
  t.ok(last.get('ignored')! > 0)
  await until(() => server.totals.threads === threadsAtStart, 'as many threads as at the start')
})
