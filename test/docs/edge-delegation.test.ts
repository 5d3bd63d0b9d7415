import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import {
  addNameservers,
  answers,
  CLIENT_IN_AMERICA,
  CLIENT_IN_EUROPE,
  EDGE_PAGE,
  layEdgeFiles,
  NAMESERVERS,
  startEdge,
} from '../support/edge.ts'
import { HostNetwork } from '../support/host-network.ts'
import { lines, scanFences, scanSteps } from '../support/page.ts'
import { needs, needsRoot } from '../support/peer.ts'
import { root } from '../support/server.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'
import { until } from '../support/until.ts'

const endpoint = (target: string, code: string) => ({
  dnsName: 'app.k.example.com',
  recordType: 'A',
  recordTTL: 60,
  setIdentifier: code,
  targets: [target],
  providerSpecific: [{ name: 'geo-code', value: code }],
})
/** What the page says of app.k.example.com. */
const APP = {
  apiVersion: 'kuadrant.io/v1alpha1',
  kind: 'DNSRecord',
  metadata: { name: 'app', namespace: 'gateways' },
  spec: {
    rootHost: 'app.k.example.com',
    endpoints: [endpoint('192.0.2.101', 'GEO-EU'), endpoint('192.0.2.102', 'GEO-NA')],
  },
}

/** Commands name the files of BIND where BIND has them. */
const BIND_FILES = 'mount --bind "$0/etc/bind" /etc/bind; exec'

const options = { ...needsRoot(), ...needs('dig', 'nsupdate', 'named', 'unbound') }
t.test(`${EDGE_PAGE} does what it shows`, options, async (t) => {
  const directory = temporaryDirectory(t)
  layEdgeFiles(directory)
  mkdirSync(join(directory, 'records'))
  writeFileSync(join(directory, 'records/app.json'), JSON.stringify(APP))
  const corefile = readFileSync(join(directory, 'Corefile'), 'utf8')
  writeFileSync(
    join(directory, 'Corefile'),
    corefile.replace('kuadrant {', 'kuadrant {\n        manifests records'),
  )
  const network = await HostNetwork.create(t)
  const hosts = await addNameservers(network)
  const { client } = await startEdge(network, directory)
  const serve = [process.execPath, join(root, 'dist/main.js'), 'serve']
  const servers = hosts.map((host) => host.start(serve, { cwd: directory }))
  for (const [index, server] of servers.entries()) {
    await answers(client, server, `@${NAMESERVERS[index]}`, 'k.example.com', 'SOA')
  }

  await t.test('every command prints what the page has', async (t) => {
    const consoles = scanFences(readFileSync(join(root, EDGE_PAGE), 'utf8')).filter(
      ({ language }) => language === 'console',
    )
    for (const { command, want } of consoles.flatMap(({ text }) => scanSteps(text))) {
      // Servers shuffle the records of a set.
      const got = lines(await client.run('sh', '-c', `${BIND_FILES} ${command}`, directory)).sort()
      t.strictSame(got, lines(want.join('\n')).sort(), command)
    }
  })

  await t.test('with one nameserver left clients still get their answers', async (t) => {
    await hosts[0]?.disconnect()
    await servers[1]?.end('SIGKILL')
    // Names that no cache has: the resolver has to find the one that is left.
    const places = [
      { from: CLIENT_IN_EUROPE, want: '192.0.2.101' },
      { from: CLIENT_IN_AMERICA, want: '192.0.2.102' },
    ]
    const record = { ...APP, metadata: { ...APP.metadata, name: 'wild' } }
    const spec = JSON.parse(JSON.stringify(APP.spec).replaceAll('app.k.', '*.w.k.'))
    writeFileSync(join(directory, 'records/wild.json'), JSON.stringify({ ...record, spec }))
    let count = 0
    for (const { from, want } of places) {
      const isRight = async () => {
        const name = `n${count++}.w.k.example.com`
        const asked = ['+time=1', '+tries=1', '-b', from, '@192.0.2.53', name, '+short']
        return (await client.run('dig', ...asked)).trim() === want
      }
      await until(isRight, `${want} for ${from}`)
      t.pass(`${want} for ${from}`)
    }
  })
})
