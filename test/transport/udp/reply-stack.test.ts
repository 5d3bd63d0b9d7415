import { Socket } from 'node:dgram'
import t, { type Test } from 'tap'
import { SharedValues } from '../../../src/base/shared-values.ts'
import { dgramDriver } from '../../../src/transport/udp/dgram.ts'
import { ReplyStack, STACK_LOSSES } from '../../../src/transport/udp/reply-stack.ts'
import { until } from '../../support/until.ts'
import { udpClient } from '../client.ts'
import { Echo, Wish } from '../echo.ts'

/** Queries that the server has read before the next ones are sent: none is lost. */
const ROUND = 50
const reply = (port: number) => ({ octets: new Uint8Array(1), port, address: '192.0.2.1' })

t.test('the newest reply leaves first, and pushes the oldest out', async (t) => {
  const stack = new ReplyStack()
  t.equal(stack.pop(), undefined)
  for (let i = 1; i <= 1024; i++) {
    t.equal(stack.isFull, false)
    t.equal(stack.push(reply(i)), false)
  }
  t.equal(stack.isFull, true)
  t.equal(stack.push(reply(1025)), true)
  t.equal(stack.pop()?.port, 1025)
  t.equal(stack.isFull, false)
  t.equal(stack.push(reply(1026)), false)
  const ports: number[] = []
  for (let one = stack.pop(); one !== undefined; one = stack.pop()) ports.push(one.port)
  t.strictSame([ports.length, ports[0], ports.at(-1)], [1024, 1026, 2])
})

/**
 * Makes the socket at a port appear full until `empty` is called: loopback never is. It takes one reply into its queue.
 * `sent`: what it sends, in order.
 */
function fillSocket(t: Test, port: number): { readonly sent: Buffer[]; empty(): void } {
  const { send, getSendQueueCount } = Socket.prototype
  const queue: (() => void)[] = []
  const sent: Buffer[] = []
  let isFull = true
  const isIt = (socket: Socket): boolean => socket.address().port === port
  Socket.prototype.getSendQueueCount = function () {
    return isFull && isIt(this) ? queue.length : getSendQueueCount.call(this)
  }
  Socket.prototype.send = function (this: Socket, ...args: unknown[]) {
    const octets = args[0] as Uint8Array
    if (isIt(this)) sent.push(Buffer.from(octets.subarray(0, 3)))
    const now = () => Reflect.apply(send, this, args)
    if (isFull && isIt(this)) queue.push(now)
    else now()
  } as typeof send
  t.teardown(() => Object.assign(Socket.prototype, { send, getSendQueueCount }))
  return {
    sent,
    empty: () => {
      isFull = false
      for (const now of queue) now()
    },
  }
}

t.test('a full socket costs queries and the oldest replies', async (t) => {
  const lost = { query: 0, reply: 0 }
  const shared = new SharedValues()
  shared.acquire(STACK_LOSSES).push({
    begin: () => {},
    dropQuery: () => lost.query++,
    dropReply: () => lost.reply++,
  })
  const place = { host: '127.0.0.1', port: 0, address: 'dns://127.0.0.1:0', configs: [{ shared }] }
  const echo = new Echo()
  const listener = await dgramDriver().open(place, echo)
  const client = await udpClient(listener.port)
  const socket = fillSocket(t, listener.port)
  const ask = async (from: number, to: number): Promise<void> => {
    for (let i = from; i < to; i++) {
      client.send(Buffer.from([Wish.Echo, i >> 8, i & 0xff]))
      // Few at a time, so that the buffer of the kernel loses none.
      if (i % ROUND === 0) await until(() => echo.served === i + 1, 'it is read')
    }
    await until(() => echo.served + lost.query === to, 'all are read')
  }
  // One is in the queue of the socket, and 1024 are in the stack.
  await ask(0, 1025)
  t.strictSame(lost, { query: 0, reply: 0 })
  t.ok(echo.inFlight <= 1, 'replies in the stack hold no exchange')
  await ask(1025, 1028)
  t.strictSame(lost, { query: 3, reply: 0 })

  socket.empty()
  await until(() => socket.sent.length === 1025, 'the replies')
  const order = socket.sent.map((reply) => reply.readUInt16BE(1))
  t.strictSame(order, [0, ...Array.from({ length: 1024 }, (_, i) => 1024 - i)])
  client.send(Buffer.from([Wish.Mark, 0]))
  await until(() => client.received.at(-1)?.[0] === Wish.Mark, 'a later answer')
  await client.close()
  await listener.close()
})
