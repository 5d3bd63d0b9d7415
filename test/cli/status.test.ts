import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { createServer as createNetServer } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { openAdmin } from '../../src/api/admin/open-admin.ts'
import { runStatus } from '../../src/cli/status.ts'
import type { AdminSite } from '../../src/plugin/admin.ts'
import { CertificateFiles } from '../../src/plugins/admin/certificate.ts'
import { TokenFiles } from '../../src/plugins/admin/token.ts'
import { adminSite, STATUS } from '../support/admin-site.ts'
import { selfSigned } from '../support/certificate.ts'
import { freePort } from '../support/free-port.ts'
import { recordOutput } from '../support/recorded-output.ts'

const TOKEN = 'a'.repeat(32)

async function serve(t: Test, changed: Partial<AdminSite> = {}): Promise<number> {
  const { port, close } = await openAdmin(adminSite(changed).site, undefined)
  t.teardown(close)
  return port
}

async function run(...argv: string[]) {
  const { output, printed, errors } = recordOutput()
  const code = await runStatus(argv, output)
  return { code, printed, errors }
}

t.test('a status as tables', async (t) => {
  const { code, printed, errors } = await run(`@127.0.0.1:${await serve(t)}`)
  t.strictSame([code, errors], [0, []])
  t.strictSame(printed, [
    'server    Sextant 0.1.0, pid 1, 3 threads, up 1 min',
    'Corefile  Corefile, loaded 2026-01-01T00:00:01.000Z',
    'ready     no',
    '          kuadrant: records are not loaded yet',
    'problems  refused-record 3',
    'dropped   overloaded 3',
    '',
    'PROBLEM         PLACE               REASON',
    'refused-record  records/app.yaml:3  default/app is refused: unknown geo code "XX"',
    'and 2 more: refused-record',
    '',
    'ZONE          SERIAL      RECORDS  RRSETS  SERVED  STANDBY  SLOW  DOWN  DRAINED  CONFLICTS  SOURCE',
    'example.org.  2026010100  3        7       5       1        0     2     4        0          kuadrant manifests records',
    'example.net.  -           -        -       -       -        -     -     -        0          file db.example.net',
    '',
    'SIGNED          DENIAL  POLICY   MADE  REUSED  EXPIRES                   FAULT',
    'k.example.com.  nsec    default  12    30      2026-01-15T00:00:00.000Z',
    '',
    'KEYS OF         ROLE  ALGORITHM        TAG  STATE  DUE  NEXT STEP',
    'k.example.com.  csk   ECDSAP256SHA256  895  ready  -    wait until the parent has the DS of CSK 895 alone',
    '',
    'all endpoints are down or drained:',
    '  www.example.org. A: health and drains are ignored',
    '',
    'all endpoints of failover lists are down or drained:',
    '  app.example.org. A: failover list GEO-EU is exhausted; the answer is empty',
    '',
    'NAME              TYPE  SET  STATE  TARGETS    RECORD       DETAIL',
    'www.example.org.  A     na1  down   192.0.2.1  default/www',
    '',
    'PEER           SITE  STATE   AGE    SERIAL  ENDPOINTS  REFUSED  ERROR',
    '192.0.2.53:53  eu1   silent  never  -       0          0        timeout',
    '',
    'health of peers in example.org.: 2 of 3 sites heard, quorum 2, hold-down 1 min',
    'SITE  STATE      AGE         OBSERVATIONS  DISPUTES  PEERS',
    'eu2   this site  0 s         2             1',
    'eu1   silent     1 min 15 s  1             0         192.0.2.53:53',
    '',
    'HOST             ADDRESS    SITE  UP  DOWN  DISPUTED  REASON',
    'www.example.org  192.0.2.1  eu1   -   eu2   yes       not down',
    'and 1 more addresses',
    '',
    'RECORD                  SHIFT  STATE     STEP    SHARE   UNTIL                 REASON',
    'default/app and 1 more  eu-2   running   2 of 3  62.5 %  2026-01-01T00:02:00Z',
    'default/shop            na-2   reverted  1 of 2  -       -                     192.0.2.9 is down',
    'and 1 more shifts',
    '',
    'DATABASE   BUILT                     AGE    FAULT',
    'city.mmdb  2026-01-01T00:00:00.000Z  1 min',
    '',
    'SNAPSHOT        SERVED  AGE  OCTETS',
    'zones.snapshot  no      2 s  4096',
  ])
})

t.test('a status as JSON', async (t) => {
  const { code, printed } = await run('-o', 'json', `@http://localhost:${await serve(t)}`)
  t.equal(code, 0)
  t.strictSame(JSON.parse(printed.join('\n')), STATUS)
})

t.test('a wide status has more columns', async (t) => {
  const { printed } = await run('-o', 'wide', `@127.0.0.1:${await serve(t)}`)
  t.ok(printed.some((line) => /^ZONE +NAME +TYPE +SET +STATE/.test(line)))
  t.ok(printed.some((line) => /^HOST +ADDRESS .* HOLD-DOWN-UNTIL +REASON$/.test(line)))
})

t.test('text of records can not control the terminal', async (t) => {
  const notes = [{ plugin: 'kuadrant', text: 'a\u001b[2Jb' }]
  const { printed } = await run(
    `@127.0.0.1:${await serve(t, { status: () => ({ ...STATUS, notes }) })}`,
  )
  t.match(printed.join('\n'), 'note      kuadrant: a\\x1b[2Jb')
})

t.test('the server of a Corefile, with its token and certificate', async (t) => {
  const pair = selfSigned('ns1.example.org')
  const directory = t.testdir({ token: TOKEN, cert: pair.cert, key: pair.key })
  const at = (name: string): string => join(directory, name)
  const port = await serve(t, {
    tokens: new TokenFiles({ view: '', operate: at('token') }),
    certificate: new CertificateFiles(at('cert'), at('key')),
  })
  const corefile = `example.org {
    root ${directory}
    whoami
    admin 127.0.0.1:${port} {
        token token
        tls cert key
    }
}
`
  writeFileSync(at('Corefile'), corefile)
  t.match(await run('-conf', at('Corefile')), { code: 0, errors: [] })
  t.match(await run('-conf', at('Corefile'), '--token-file', at('cert')), {
    code: 1,
    errors: [/^--token-file: .*cert has no token$/],
  })
  writeFileSync(at('wrong'), 'wrong')
  t.match(await run('-conf', at('Corefile'), '--token-file', at('wrong')), {
    code: 1,
    errors: [/: the request needs .* valid token; use --token-file$/],
  })
  t.match(await run(`@https://127.0.0.1:${port}`, '--token-file', at('token')), {
    code: 1,
    errors: [/self-signed certificate|altnames/],
  })
  writeFileSync(at('cert'), selfSigned('ns1.example.org').cert)
  t.match(await run('-conf', at('Corefile')), {
    code: 1,
    errors: [/another certificate than the file of `tls`$/],
  })
})

t.test('what can not be done is one line', async (t) => {
  const other = createServer((_, response) => response.end('hello'))
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve))
  t.teardown(() => other.close())
  const closer = createNetServer((socket) => socket.destroy())
  await new Promise<void>((resolve) => closer.listen(0, '127.0.0.1', resolve))
  t.teardown(() => closer.close())
  const closerAddress = closer.address()
  const closerPort = typeof closerAddress === 'object' ? closerAddress?.port : 0
  const address = other.address()
  const otherPort = typeof address === 'object' ? address?.port : 0
  const directory = t.testdir({ Corefile: 'example.org {\n whoami\n}\n', bad: 'example.org {\n' })
  const port = await freePort()
  const table = [
    {
      argv: [`@127.0.0.1:${port}`],
      error: /^no server listens on http:\/\/127\.0\.0\.1:\d+; start/,
    },
    { argv: [`@127.0.0.1:${otherPort}`], error: /the reply is not that of an admin API/ },
    {
      argv: [`@https://127.0.0.1:${otherPort}`],
      error: /: the server does not use TLS there; write @http:\/\/127\.0\.0\.1:\d+$/,
    },
    {
      argv: [`@127.0.0.1:${closerPort}`],
      error: /: the server closed the connection without a reply; is this its admin port\?$/,
    },
    { argv: ['@a/b'], error: /is not a server/ },
    { argv: ['@user@host:1'], error: /is not a server/ },
    { argv: ['@a:1', '@b:1'], error: /more than one server/ },
    { argv: ['@a:1', '-conf', 'Corefile'], error: /use either @SERVER or -conf/ },
    { argv: ['-conf', join(directory, 'Corefile')], error: /has no directive admin: add it/ },
    { argv: ['-conf', join(directory, 'bad')], error: /bad/ },
    { argv: ['-conf', join(directory, 'none')], error: /cannot read Corefile/ },
    {
      argv: ['@localhost', '--token-file', join(directory, 'none')],
      error: /--token-file: ENOENT/,
    },
    { argv: ['-o', 'tabel', '@localhost'], error: /-o: must be .* did you mean table\?$/ },
    { argv: ['now'], error: /extra command line arguments: \[now\]/ },
    { argv: ['-x'], error: /flag provided but not defined: -x/ },
  ]
  for (const { argv, error } of table) {
    const { code, printed, errors } = await run(...argv)
    const what = argv.join(' ')
    t.strictSame([code, printed.length, errors.length], [1, 0, 1], what)
    t.match(errors[0], error, what)
    t.notMatch(errors[0], '\n', what)
  }
})
