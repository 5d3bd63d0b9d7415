import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { ask } from '../support/dig.ts'
import { needs } from '../support/peer.ts'
import { freePort, putFile, type RunningServer, root, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

const EU = ['192.0.2.1', '192.0.2.2']

/** The shipped example on a free port, with the manifests of zones/. */
async function startExample(t: Test, args: readonly string[] = []): Promise<RunningServer> {
  const [metrics, admin] = [await freePort(), await freePort()]
  const corefile = readFileSync(join(root, 'Corefile.example'), 'utf8')
    .replaceAll(':1053', ':{PORT}')
    .replaceAll(':9153', `:${metrics}`)
    .replaceAll(':9154', `:${admin}`)
  const manifests = readdirSync(join(root, 'zones')).filter((name) => name.endsWith('.yaml'))
  const files = Object.fromEntries(
    manifests.map((name) => [`zones/${name}`, readFileSync(join(root, 'zones', name), 'utf8')]),
  )
  return startServer(t, { corefile, files, args })
}

t.test('the shipped example answers what the README promises', needs('dig', 'kdig'), async (t) => {
  const server = await startExample(t)
  await t.test('a European client gets a European address', async (t) => {
    for (let i = 0; i < 20; i++) {
      const reply = await ask('dig', server.port, ['app.k.example.com', '+subnet=81.2.69.0/24'])
      t.equal(reply.status, 'NOERROR')
      t.equal(reply.answer.length, 1)
      t.ok(EU.includes(reply.answer[0]?.split(' ').at(-1) ?? ''), reply.answer[0] ?? 'no answer')
      const [, source, scope] = /CLIENT-SUBNET: 81\.2\.69\.0\/(\d+)\/(\d+)/.exec(reply.text) ?? []
      t.equal(source, '24')
      t.ok(Number(scope) > 0 && Number(scope) <= 24, `scope ${scope ?? 'missing'}`)
    }
  })
  await t.test('kdig sends and reads ECS too', async (t) => {
    const reply = await ask('kdig', server.port, ['+subnet=81.2.69.0/24', 'app.k.example.com', 'A'])
    t.ok(EU.includes(reply.answer[0]?.split(' ').at(-1) ?? ''), reply.text)
  })
  await t.test('gateway-local metadata is TXT', async (t) => {
    const reply = await ask('dig', server.port, ['g.app.k.example.com.kdrnt', 'TXT'])
    t.match(reply.answer.join('\n'), '"geo=GEO-EU" "type=continent"')
  })
  await t.test('a name without a GEO decision has scope 0', async (t) => {
    const reply = await ask('dig', server.port, ['k.example.com', 'SOA', '+subnet=81.2.69.0/24'])
    t.match(reply.text, 'CLIENT-SUBNET: 81.2.69.0/24/0')
  })
})

t.test('npm start prints three queries to try', needs('dig'), async (t) => {
  const server = await startExample(t, ['-examples'])
  const lines = server.output().match(/^.*\bdig @127\.0\.0\.1 -p \d+ .*$/gm) ?? []
  t.equal(lines.length, 3, server.output())
  for (const line of lines) {
    const args = line.replace(/^.*?-p \d+ /, '').split(/\s+/)
    const reply = await ask(
      'dig',
      server.port,
      args.map((arg) => arg.replaceAll("'", '')),
    )
    t.equal(reply.status, 'NOERROR', line)
    t.ok(reply.answer.length > 0, line)
  }
})

t.test('an edit of a manifest is served at once', needs('dig'), async (t) => {
  const server = await startExample(t)
  const serial = async (): Promise<number> => {
    const reply = await ask('dig', server.port, ['k.example.com', 'SOA'])
    return Number(reply.answer[0]?.split(' ')[6])
  }
  const record = (address: string) => `apiVersion: kuadrant.io/v1alpha1
kind: DNSRecord
metadata:
  name: fresh
  namespace: tests
spec:
  rootHost: fresh.k.example.com
  endpoints:
    - dnsName: fresh.k.example.com
      recordType: A
      targets:
        - ${address}
`
  const first = await serial()
  putFile(server.directory, 'zones/fresh.yaml', record('192.0.2.201'))
  const answered = (address: string) => async () => {
    const reply = await ask('dig', server.port, ['fresh.k.example.com', 'A'])
    return reply.answer.some((line) => line.endsWith(address))
  }
  await until(answered('192.0.2.201'), 'the new record')
  const second = await serial()
  t.ok(second > first, 'the serial grew')
  putFile(server.directory, 'zones/fresh.yaml', record('192.0.2.300'))
  await server.prints(/fresh\.yaml:\d+/)
  t.ok(await answered('192.0.2.201')(), 'the last good version is served')
  t.equal(await serial(), second, 'and the serial did not move')
})
