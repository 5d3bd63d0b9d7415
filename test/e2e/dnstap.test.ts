import { type ChildProcess, spawn } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { composeQuery } from '../support/client.ts'
import { ask } from '../support/dig.ts'
import { control, SinkDouble } from '../support/dnstap-sink.ts'
import { getText } from '../support/get-text.ts'
import { needs, run } from '../support/peer.ts'
import { proxyHeader } from '../support/proxy-header.ts'
import { freePort, startServer } from '../support/server.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'
import { until } from '../support/until.ts'

/* A server with Debian's readers of dnstap. */

const ZONE = `$ORIGIN z.example.
@ 3600 SOA ns hostmaster 1 3600 600 86400 60
@ 3600 NS ns
ns 60 A 192.0.2.53
www 60 A 192.0.2.1
`

async function capture(t: Test, socket: string, file: string): Promise<ChildProcess> {
  const args = ['-t', 'protobuf:dnstap.Dnstap', '-u', socket, '-w', file]
  const child = spawn('fstrm_capture', args, { stdio: 'ignore' })
  t.teardown(() => child.kill('SIGKILL'))
  await until(() => existsSync(socket), 'the socket of the sink')
  return child
}

t.test(
  'messages, as dnstap-read prints them',
  needs('dig', 'fstrm_capture', 'dnstap-read'),
  async (t) => {
    const directory = temporaryDirectory(t)
    const [socket, file] = [join(directory, 'sink'), join(directory, 'file')]
    const http = await freePort()
    const sink = await capture(t, socket, file)
    const server = await startServer(t, {
      corefile: `z.example:{PORT} {
      bind 127.0.0.1
      prometheus 127.0.0.1:${http}
      dnstap ${socket} full {
        identity one
      }
      file zone
    }`,
      files: { zone: ZONE },
    })
    await server.prints(/connected to/)
    await ask('dig', server.port, ['www.z.example', 'A'])
    await ask('dig', server.port, ['+tcp', 'none.z.example', 'AAAA'])
    // The new instance has a connection of its own, and the old one sends all that it has.
    server.process.kill('SIGUSR1')
    await server.prints(/connected to[\s\S]*connected to/)
    await ask('dig', server.port, ['ns.z.example', 'A'])
    const sent = new RegExp(`sextant_dnstap_messages_total{endpoint="${socket}"} 6`)
    await until(
      async () => sent.test((await getText(`http://127.0.0.1:${http}/metrics`)).text),
      'messages',
    )
    server.process.kill('SIGTERM')
    t.equal(await server.exited(), 0)
    sink.kill('SIGTERM')
    await once(sink, 'exit')

    const { stdout } = await run('dnstap-read', ['-p', file])
    const lines = stdout.split('\n').filter((line) => / C[QR] /.test(line))
    const address = (protocol: string) =>
      `127.0.0.1:\\d+ .. 127.0.0.1:${server.port} ${protocol} \\d+b`
    t.match(lines, [
      new RegExp(`CQ ${address('UDP')} www.z.example/IN/A$`),
      new RegExp(`CR ${address('UDP')} www.z.example/IN/A$`),
      new RegExp(`CQ ${address('TCP')} none.z.example/IN/AAAA$`),
      new RegExp(`CR ${address('TCP')} none.z.example/IN/AAAA$`),
      /CQ .* ns.z.example/,
      /CR .* ns.z.example/,
    ])
    t.equal(lines.length, 6)
    const year = new Date().getFullYear()
    for (const line of lines) t.match(line, new RegExp(`^\\d\\d-...-${year} `))
    t.match(stdout, /www\.z\.example\.\s+60\s+IN\s+A\s+192\.0\.2\.1/, 'the reply that was sent')
    t.match(stdout, /status: NXDOMAIN/)
    const { stdout: yaml } = await run('dnstap-read', ['-y', file])
    t.match(yaml, /identity: one\n/)
    t.match(yaml, /version: Sextant-/)
  },
)

t.test('a sink that connects to the server', needs('dig', 'dnstap-read'), async (t) => {
  const directory = temporaryDirectory(t)
  const [socket, file] = [join(directory, 'sink'), join(directory, 'file')]
  const server = await startServer(t, {
    corefile: `z.example:{PORT} {
      bind 127.0.0.1
      multisocket 1
      dnstap listen ${socket} full
      file zone
    }`,
    files: { zone: ZONE },
  })
  await server.prints(/listening on/)
  const sink = new SinkDouble(t)
  sink.connect({ path: socket })
  await server.prints(/connected to/)
  await ask('dig', server.port, ['www.z.example', 'A'])
  await until(() => sink.frames.length === 2, 'messages')
  // The new instance has the socket, and sinks connect again.
  server.process.kill('SIGUSR1')
  await until(() => sink.closed === 1, 'the end of the connection')
  sink.connect({ path: socket })
  await server.prints(/connected to[\s\S]*connected to/)
  await ask('dig', server.port, ['+tcp', 'ns.z.example', 'A'])
  await until(() => sink.frames.length === 4, 'more messages')
  server.process.kill('SIGTERM')
  t.equal(await server.exited(), 0)
  t.notOk(existsSync(socket))

  const framed = sink.frames.flatMap((frame) => {
    const length = Buffer.alloc(4)
    length.writeUInt32BE(frame.length)
    return [length, frame]
  })
  writeFileSync(file, Buffer.concat([control(2), ...framed, control(3, '')]))
  const { stdout } = await run('dnstap-read', [file])
  t.match(stdout.trim().split('\n'), [
    / CQ 127.0.0.1:\d+ .* UDP \d+b www.z.example\/IN\/A$/,
    / CR .* UDP \d+b www.z.example\/IN\/A$/,
    / CQ .* TCP \d+b ns.z.example\/IN\/A$/,
    / CR .* TCP \d+b ns.z.example\/IN\/A$/,
  ])
})

t.test('the client behind a proxy, without the header', async (t) => {
  const socket = join(temporaryDirectory(t), 'sink')
  const server = await startServer(t, {
    corefile: `z.example:{PORT} {
      bind 127.0.0.1
      proxyproto {
        allow 127.0.0.1/32
      }
      dnstap listen ${socket} full
      file zone
    }`,
    files: { zone: ZONE },
  })
  await server.prints(/listening on/)
  const sink = new SinkDouble(t)
  sink.connect({ path: socket })
  await server.prints(/connected to/)
  const proxy = createSocket('udp4')
  t.teardown(() => proxy.close())
  const query = composeQuery({ name: 'www.z.example', type: 'A' }, 1)
  const packet = Buffer.concat([proxyHeader({ source: '192.0.2.7' }), query])
  await until(() => {
    if (sink.frames.length === 0) proxy.send(packet, server.port, '127.0.0.1')
    return sink.frames.length >= 2
  }, 'messages')
  for (const frame of sink.frames) {
    // Field 4 of the message: the address of the client.
    t.ok(Buffer.from(frame).includes(Buffer.from([0x22, 4, 192, 0, 2, 7])))
    t.notOk(Buffer.from(frame).includes('QUIT'), 'the signature of a header')
  }
})
