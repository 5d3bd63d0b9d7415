import t from 'tap'
import { askEach } from '../support/dig.ts'
import { freePort } from '../support/free-port.ts'
import { getText } from '../support/get-text.ts'
import { needs } from '../support/peer.ts'
import { startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

t.test('a server makes profiles of its threads while it answers', needs('dig'), async (t) => {
  const port = await freePort()
  const server = await startServer(t, {
    corefile: `example.org:{PORT} {
  bind 127.0.0.1
  multisocket 2
  pprof 127.0.0.1:${port}
  whoami
}
`,
  })
  const get = (path: string) => getText(`http://127.0.0.1:${port}/debug/pprof/${path}`)
  const { text } = await get('')
  t.match(text, /^threads: main/)
  const isThreaded = server.output().includes('udp: batch')
  if (isThreaded) t.match(text, /^threads: main, 0, 1\n/)
  for (const thread of isThreaded ? ['main', '1'] : ['main']) {
    for (const [kind, sign] of [
      ['profile', /"nodes":\[\{.*"timeDeltas":\[/],
      ['heap', /"head":\{.*"samples":\[/],
    ] as const) {
      const profile = get(`${kind}?seconds=1&thread=${thread}`)
      const [reply] = await askEach(server.port, [], [['example.org', 'A']])
      t.equal(reply?.status, 'NOERROR')
      t.match(await profile, { status: 200, text: sign }, `${kind} of ${thread}`)
    }
  }

  // A reload ends a profile, also of a data thread, which continues to serve.
  let profile: ReturnType<typeof get> | undefined
  const isRefused = async (): Promise<boolean> => {
    profile = get(`profile?seconds=60&thread=${isThreaded ? 0 : 'main'}`)
    const other = await get('heap?seconds=1')
    // It may have arrived before the profile, which is refused then.
    if (other.status === 200) return false
    t.match(other, { status: 503, text: /^another profile/ })
    return true
  }
  await until(isRefused, 'a profile under way')
  server.process.kill('SIGUSR1')
  await server.prints(/Reloading complete/)
  t.equal((await profile)?.status, 200)
  const [reply] = await askEach(server.port, [], [['example.org', 'A']])
  t.equal(reply?.status, 'NOERROR')
  server.process.kill('SIGTERM')
  t.equal(await server.exited(), 0, server.output())
})
