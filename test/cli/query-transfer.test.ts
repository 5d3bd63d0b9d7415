import t from 'tap'
import { runQuery } from '../../src/cli/query.ts'
import { startServer } from '../support/server.ts'

t.test('AXFR transfers a zone over TCP, signed where a key is given', async (t) => {
  const server = await startServer(t, {
    corefile:
      'example.org:{PORT} {\n bind 127.0.0.1\n tsig {\n secret k. c2V4dGFudA==\n }\n file db\n' +
      ' transfer {\n to *\n key k.\n }\n}\n',
    files: { db: '@ 60 SOA ns h 1 2 3 4 5\n@ 60 NS ns\nns 60 A 192.0.2.1\n' },
  })
  const query = async (...args: readonly string[]) => {
    const lines: string[] = []
    const add = (line: string): void => void lines.push(line)
    const at = ['@127.0.0.1', '-p', String(server.port)]
    return { code: await runQuery(['example.org', 'AXFR', ...at, ...args], add, add), lines }
  }
  const soa = /^example\.org\.\s+60\s+IN\s+SOA\s/
  const { code, lines } = await query('-y', 'k.:c2V4dGFudA==')
  t.equal(code, 0)
  t.equal(lines.length, 4, lines.join('\n'))
  t.match([lines[0], lines.at(-1)], [soa, soa])
  t.strictSame(await query(), {
    code: 9,
    lines: ['; Transfer failed: the server answered REFUSED'],
  })
  t.match(await query('-y', 'k.:AAAA'), { code: 9, lines: [/the server answered NOTAUTH/] })
  t.match(await query('-y', 'k.'), { code: 1, lines: [/invalid key of -y/] })
})
