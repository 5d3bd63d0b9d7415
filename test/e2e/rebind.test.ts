import { join } from 'node:path'
import t, { type Test } from 'tap'
import { UdpClient } from '../support/client.ts'
import { freePort } from '../support/free-port.ts'
import { needsIPv6 } from '../support/ipv6.ts'
import { needs, run } from '../support/peer.ts'
import { putFile, type RunningServer, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

/*
 * A reload may replace the listener on all addresses by one on a single address of the same port, and back. The old
 * sockets serve until the new ones do, so the port is in use by this process itself.
 */

t.setTimeout(600_000)

const corefile = (bind: string, mark: string, metrics = ''): string => `.:{PORT} {
    ${bind === '' ? '' : `bind ${bind}`}
    multisocket 2
    errors
    ${metrics === '' ? '' : `prometheus ${metrics}`}
    template IN TXT . {
        answer "{{ .Name }} 0 IN TXT ${mark}"
    }
}
`

async function dig(server: RunningServer, host: string, ...words: string[]): Promise<string> {
  const asked = [`@${host}`, '-p', `${server.port}`, 'a.example', 'TXT', '+short']
  const { stdout } = await run('dig', ['+tries=1', '+time=10', ...asked, ...words])
  return stdout.trim()
}

/** Reloads; returns what was printed from then on. */
async function reload(server: RunningServer, text: string): Promise<string> {
  const from = server.output().length
  putFile(server.directory, 'Corefile', text.replaceAll('{PORT}', String(server.port)))
  server.process.kill('SIGUSR1')
  const printed = () => server.output().slice(from)
  await until(() => /Reloading complete|Restart failed.*\n/.test(printed()), 'the reload')
  return printed()
}

/** Asks 127.0.0.1 all the time, without a second try; `stop` returns the numbers of replies and of lost queries. */
async function load(t: Test, port: number) {
  const clients = await Promise.all(Array.from({ length: 8 }, () => UdpClient.connect(port)))
  t.teardown(() => {
    for (const client of clients) client.close()
  })
  const counts = { answered: 0, lost: 0 }
  let isOver = false
  const asking = clients.map(async (client) => {
    while (!isOver) {
      const asked = client.ask({ name: 'a.example', type: 'TXT' }, 1, 20_000)
      await asked.then(
        () => counts.answered++,
        () => counts.lost++,
      )
    }
  })
  const stop = async () => {
    isOver = true
    await Promise.all(asking)
    return counts
  }
  return { counts, stop }
}

t.test('from all addresses to one, and back, under queries', needs('dig'), async (t) => {
  const metrics = await freePort()
  const server = await startServer(t, { corefile: corefile('', 'm0', `:${metrics}`) })
  const asking = await load(t, server.port)
  const steps: [bind: string, served: readonly string[], silent: readonly string[]][] = [
    ['127.0.0.1', ['127.0.0.1'], ['127.0.0.2']],
    ['', ['127.0.0.1', '127.0.0.2'], []],
    ['0.0.0.0', ['127.0.0.1', '127.0.0.2'], []],
    ['127.0.0.2 127.0.0.1', ['127.0.0.1', '127.0.0.2'], []],
    ['', ['127.0.0.1', '127.0.0.3'], []],
  ]
  for (const [i, [bind, served, silent]] of steps.entries()) {
    const before = asking.counts.answered
    await until(() => asking.counts.answered > before, 'queries before the reload')
    const address = bind === '' ? `:${metrics}` : `127.0.0.1:${metrics}`
    t.match(await reload(server, corefile(bind, `m${i + 1}`, address)), 'Reloading complete')
    for (const host of served) {
      t.equal(await dig(server, host), `"m${i + 1}"`, `UDP ${host} for "${bind}"`)
      t.equal(await dig(server, host, '+tcp'), `"m${i + 1}"`, `TCP ${host} for "${bind}"`)
    }
    for (const host of silent) t.match(await dig(server, host, '+tcp'), /refused/)
  }
  const { answered, lost } = await asking.stop()
  t.equal(lost, 0, `of ${answered + lost} queries`)
  const ended = new Promise((resolve) => server.process.once('exit', resolve))
  server.process.kill('SIGTERM')
  await ended
  t.notMatch(server.output(), /Restart failed|panic|WARNING/)
})

t.test(
  'IPv6: from all addresses to one, and back',
  { ...needs('dig'), ...needsIPv6() },
  async (t) => {
    const server = await startServer(t, { corefile: corefile('', 'm0') })
    for (const [i, bind] of ['::1', '', '::1 127.0.0.1', ''].entries()) {
      t.match(await reload(server, corefile(bind, `m${i}`)), 'Reloading complete')
      t.equal(await dig(server, '::1'), `"m${i}"`)
      t.equal(await dig(server, '::1', '+tcp'), `"m${i}"`)
    }
  },
)

t.test('another process on the port is still refused', needs('dig'), async (t) => {
  const one = await startServer(t, { corefile: corefile('127.0.0.1', 'one') })
  // It shares its sockets too, and is of the same user: the kernel would let both have the address.
  const other = await startServer(t, {
    corefile: corefile('127.0.0.2', 'other'),
    beside: { port: one.port, directory: join(one.directory, 'other') },
    args: ['-takeover', '-pidfile', 'pid'],
  })
  const refused = await reload(one, corefile('', 'all'))
  const where = new RegExp(
    `Restart failed: Corefile:1: listen udp :${one.port}: address already in use \\(asked for by .*`,
  )
  t.match(refused, where)
  t.equal(await dig(one, '127.0.0.1'), '"one"', 'the old state serves')
  t.equal(await dig(one, '127.0.0.2'), '"other"')
  t.equal(await dig(one, '127.0.0.2', '+tcp'), '"other"')
  other.process.kill('SIGTERM')
  await other.exited()
  t.match(await reload(one, corefile('', 'all')), 'Reloading complete')
  for (const host of ['127.0.0.1', '127.0.0.2']) {
    t.equal(await dig(one, host), '"all"')
    t.equal(await dig(one, host, '+tcp'), '"all"')
  }
})
