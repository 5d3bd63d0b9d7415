import t from 'tap'
import { ask } from '../support/dig.ts'
import { needs } from '../support/peer.ts'
import { freePort, runSextant, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

const corefile = (admin: number, upstream: number): string => `example.org:{PORT} {
    bind 127.0.0.1
    admin 127.0.0.1:${admin}
    cache {
        success 1024 LIFETIME
        serve_stale
    }
    forward . 127.0.0.1:${upstream}
}
example.org:${upstream} {
    bind 127.0.0.1
    template IN A {
        answer "{{ .Name }} 60 IN A 192.0.2.9"
    }
}
`

interface Stored {
  readonly ageSeconds: number
  readonly lifetimeSeconds: number
}

for (const { lifetime, name, text } of [
  {
    lifetime: '600 600',
    name: 'valid',
    text: /^stored answer: \d+ s old, valid for 600 s: \d+ s left$/m,
  },
  {
    ...{ lifetime: '1 1', name: 'expired' },
    text: /^stored answer: \d+ s old, valid for 1 s: expired, and sent while the server asks for a new one/m,
  },
]) {
  t.test(`an explanation has the stored answer: ${name}`, needs('dig'), async (t) => {
    const admin = await freePort()
    const configuration = corefile(admin, await freePort()).replace('LIFETIME', lifetime)
    const server = await startServer(t, { corefile: configuration })
    const explain = async (...args: string[]): Promise<string> => {
      const question = ['explain', 'www.example.org', '--client', '127.0.0.1']
      const at = `@127.0.0.1:${admin}`
      const { stdout, stderr } = await runSextant(server.directory, [...question, at, ...args])
      t.equal(stderr, '')
      return stdout
    }
    const before = await explain()
    t.match(before, /^end: the directive forward would query another server/m)
    t.notMatch(before, /stored answer/)
    const asked = await ask('dig', server.port, ['www.example.org', 'A', '+rec'])
    t.equal(asked.status, 'NOERROR')
    let explained = ''
    // An explanation refreshes nothing, so the answer expires.
    await until(async () => {
      explained = await explain()
      return text.test(explained)
    }, 'the stored answer')
    t.match(explained, /answered by cache$/m)
    t.match(explained, /^answer: www\.example\.org\. \d+ IN A 192\.0\.2\.9$/m)
    const { stored }: { readonly stored: Stored } = JSON.parse(await explain('-o', 'json'))
    t.equal(stored.lifetimeSeconds, Number(lifetime.split(' ')[0]))
    t.ok(stored.ageSeconds >= 0 && stored.ageSeconds < 900, String(stored.ageSeconds))
  })
}
