import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { UdpClient } from '../support/client.ts'
import { type RunningServer, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

const RELOADS = 5
const IN_FLIGHT = 20

const corefile = (port: number | string, extra = '') => `z.example:${port} {
    bind 127.0.0.1
    errors
    file db.z
    ${extra}
}
`
const FILES = { 'db.z': '@ 300 IN SOA a b 1 2 3 4 5\n@ 300 IN NS a\na 300 IN A 192.0.2.1\n' }

/** Answers so far and the questions that got none in one try. */
interface Load {
  answered: number
  lost: number
  stop(): Promise<void>
}

function load(client: UdpClient): Load {
  let going = true
  const result: Load = {
    answered: 0,
    lost: 0,
    stop: async () => {
      going = false
      await Promise.all(askers)
    },
  }
  const askers = Array.from({ length: IN_FLIGHT }, async () => {
    while (going) {
      const asked = client.ask({ name: 'a.z.example', type: 'A' }, 1, 60_000)
      await asked.then(
        (reply) => (result.answered += reply.readUInt16BE(6)),
        () => result.lost++,
      )
    }
  })
  return result
}

const count = (server: RunningServer, pattern: RegExp) =>
  server.output().match(new RegExp(pattern, 'g'))?.length ?? 0

t.test('reloads under load lose no query', async (t) => {
  const server = await startServer(t, { corefile: corefile('{PORT}'), files: FILES })
  const client = await UdpClient.connect(server.port)
  t.teardown(() => client.close())
  const running = load(client)
  for (let reload = 1; reload <= RELOADS; reload++) {
    const before = running.answered
    writeFileSync(join(server.directory, 'Corefile'), corefile(server.port, `# ${reload}`))
    server.process.kill('SIGUSR1')
    await until(() => count(server, /Reloading complete/) === reload, `reload ${reload}`)
    await until(() => running.answered > before + 100, 'answers after the reload')
  }
  await running.stop()
  t.equal(running.lost, 0, `${running.answered} answered`)
})

t.test('a reload that fails keeps the old state serving', async (t) => {
  const server = await startServer(t, { corefile: corefile('{PORT}'), files: FILES })
  const client = await UdpClient.connect(server.port)
  t.teardown(() => client.close())
  writeFileSync(join(server.directory, 'Corefile'), corefile(server.port, 'nonsense'))
  server.process.kill('SIGUSR1')
  await until(() => count(server, /Restart failed: .*Unknown directive/) === 1, 'the failure')
  const reply = await client.ask({ name: 'a.z.example', type: 'A' })
  t.equal(reply.readUInt16BE(6), 1, 'still one answer')
})

t.test('SIGTERM ends it with 0, SIGHUP does nothing', async (t) => {
  const server = await startServer(t, { corefile: corefile('{PORT}'), files: FILES })
  server.process.kill('SIGHUP')
  const client = await UdpClient.connect(server.port)
  t.teardown(() => client.close())
  t.equal((await client.ask({ name: 'a.z.example', type: 'A' })).readUInt16BE(6), 1)
  server.process.kill('SIGTERM')
  t.equal(await server.exited(), 0)
})
