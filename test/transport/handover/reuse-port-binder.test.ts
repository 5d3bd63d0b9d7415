import t from 'tap'
import { ReusePortBinder } from '../../../src/transport/handover/reuse-port-binder.ts'
import { listenTcp } from '../../../src/transport/tcp.ts'
import { loadLibc } from '../../../src/transport/udp/batch/libc.ts'
import { frame, TcpClient } from '../client.ts'
import { Echo, until, Wish } from '../echo.ts'
import { message } from '../tcp-fixture.ts'

t.test('the kernel keeps few replies of a client that does not read', async (t) => {
  const echo = new Echo()
  const listener = await listenTcp({
    host: '127.0.0.1',
    port: 0,
    handler: echo,
    reusePortBinder: new ReusePortBinder(loadLibc(), false, () => {}),
    limits: { messageOctetsMin: 1, writeMs: 200 },
  })
  const client = await TcpClient.connect(listener.port)
  client.socket.pause()
  client.socket.write(Buffer.concat(Array.from({ length: 1000 }, () => frame(message(Wish.Big)))))
  await until('the connection is cut', () => listener.connections === 0)
  // 128 KiB in each buffer, and the message that did not fit.
  t.ok(echo.served * 60_000 < 700_000, `${echo.served} replies of 60 kB`)
  await client.close()
  await listener.close()
})
