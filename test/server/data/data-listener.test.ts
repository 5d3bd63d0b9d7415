import t from 'tap'
import { DataListener } from '../../../src/server/data/data-listener.ts'
import type { Exchange } from '../../../src/transport/exchange.ts'
import { AF_INET } from '../../../src/transport/sockaddr.ts'
import { UNIT_PACKET } from '../../../src/transport/udp/batch/layout.ts'
import { type Libc, loadLibc } from '../../../src/transport/udp/batch/libc.ts'
import { transaction } from '../../support/transaction.ts'

t.test('a reply after the drain is not sent to the socket that reuses the number', async (t) => {
  const libc = loadLibc()
  let open = new Set<number>()
  const strays: number[] = []
  const watched: Libc = {
    ...libc,
    close: (fd) => {
      open.delete(fd)
      return libc.close(fd)
    },
    sendmmsg: (fd, headers, count, flags) => {
      if (!open.has(fd)) strays.push(fd)
      return libc.sendmmsg(fd, headers, count, flags)
    },
  }
  let finish = (_octets: number): void => {}
  const exchange: Exchange = {
    query: transaction({ name: 'a.' }).query,
    reply: new Uint8Array(512),
    replyAt: -1,
    stream: undefined,
  }
  const listener = new DataListener(watched, {
    address: 'a',
    host: '127.0.0.1',
    port: 0,
    handler: {
      acquire: () => exchange,
      serve: () => new Promise((resolve) => (finish = resolve)),
      release: () => {},
    },
    takesOver: false,
    drainMs: 1,
    detach: async () => {},
    onClosed: () => {},
  })
  const { fd } = listener.socketOf(0)!
  open = new Set([fd])
  const copy = new Uint8Array(UNIT_PACKET + 12)
  copy.set([AF_INET, 0, 1, 0, 127, 0, 0, 1])
  listener.answer(fd, copy)
  await listener.close()
  t.notOk(open.has(fd))
  finish(12)
  await new Promise((resolve) => setImmediate(() => setImmediate(resolve)))
  t.strictSame(strays, [])
  t.equal(listener.counters.sendErrors, 1)
})
