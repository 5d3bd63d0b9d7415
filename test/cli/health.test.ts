import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { runHealth } from '../../src/cli/health.ts'
import { freePort } from '../support/free-port.ts'
import { recordOutput } from '../support/recorded-output.ts'

t.test('the exit code says whether the server is alive', async (t) => {
  const server = createServer(({ url }, response) => {
    response.writeHead(url === '/health' ? 200 : 503).end('text')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const closed = `http://127.0.0.1:${await freePort()}/health`
  const table = [
    { argv: [`${origin}/health`], code: 0, errors: [] },
    { argv: [`${origin}/other`], code: 1, errors: [`${origin}/other: status 503`] },
    { argv: [closed], code: 1, errors: [/ECONNREFUSED/] },
    { argv: ['x'], code: 1, errors: [/invalid URL: x: must be one such as http:/] },
    { argv: ['https://localhost/'], code: 1, errors: [/invalid URL: https:/] },
    { argv: ['-x'], code: 1, errors: [/flag provided but not defined: -x/] },
    { argv: [origin, 'more'], code: 1, errors: [/extra command line arguments: \[more\]/] },
  ]
  for (const { argv, code, errors } of table) {
    const recorded = recordOutput()
    t.equal(await runHealth(argv, recorded.output), code, argv.join(' '))
    t.match(recorded.errors, errors, argv.join(' '))
    t.equal(recorded.errors.length, errors.length)
    t.strictSame(recorded.printed, [])
  }
})
