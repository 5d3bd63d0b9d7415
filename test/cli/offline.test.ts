import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { InputError } from '../../src/base/errors.ts'
import { loadOffline, type OfflineRequest, type OfflineServer } from '../../src/cli/offline.ts'
import { scanName } from '../../src/dns/name/name.ts'
import { scanAddress } from '../../src/dns/text/address.ts'
import type { RRsetSink } from '../../src/publish/build/record-zone-options.ts'
import { lineBufferTo } from '../support/line-buffer.ts'
import { composeMmdb } from '../support/mmdb.ts'
import { show, transaction } from '../support/transaction.ts'

const record = (name: string, address: string) => `
apiVersion: kuadrant.io/v1alpha1
kind: DNSRecord
metadata: { name: ${name}, namespace: docs }
spec:
  rootHost: ${name}.k.example.com
  endpoints:
    - dnsName: ${name}.k.example.com
      recordType: A
      setIdentifier: eu
      targets: [${address}]
      providerSpecific: [{ name: geo-code, value: GEO-EU }]
    - dnsName: ${name}.k.example.com
      recordType: A
      setIdentifier: other
      targets: [192.0.2.99]
      providerSpecific: [{ name: geo-code, value: "*" }]
`

const COREFILE = `k.example.com:5300 {
  root {DIR}
  geoip eu.mmdb
  kuadrant {
    manifests records
    serials state/serials
    snapshot state/snapshot
  }
}
`

function database(continent: string): Buffer {
  const country = continent === 'EU' ? 'DE' : 'US'
  const entry = { country: { iso_code: country }, continent: { code: continent } }
  return Buffer.from(composeMmdb({ networks: { '81.0.0.0/8': entry } }))
}

function files(t: Test, corefile = COREFILE): string {
  const directory = t.testdir({
    records: { 'one.yaml': record('one', '192.0.2.1') },
    state: {},
    'eu.mmdb': database('EU'),
    'us.mmdb': database('NA'),
  })
  return corefile.replace('{DIR}', directory)
}

async function load(t: Test, request: Partial<OfflineRequest> & { text?: string } = {}) {
  const { text = files(t), ...more } = request
  const corefile = { kind: 'text', name: 'Corefile', text } as const
  const lines: string[] = []
  const output = { lines: lineBufferTo(lines), printError: () => {} }
  const server = await loadOffline({ corefile, dnsPort: 53, ...more }, output)
  t.teardown(() => server.close())
  return server
}

/** The addresses that the first chain answers with. */
async function ask(
  server: OfflineServer,
  name: string,
  client: string,
): Promise<readonly string[]> {
  const tx = transaction({ name, type: 1 })
  const { bytes } = scanAddress(client)!
  tx.query.clientAddress = bytes
  const { answer } = await show(server.instance.plans[0]!.blocks[0]!.chain, tx)
  return answer
}

t.test('the chain of a block answers as a server would, and nothing is written', async (t) => {
  const server = await load(t)
  t.strictSame(
    server.blocks.map(({ block }) => block.keys[0]?.zoneText),
    ['k.example.com.'],
  )
  t.equal(server.instance.configs.length, 1)
  const { zones } = await server.blocks[0]!.serve()
  t.equal([...zones.values()][0]?.recordCount, 1)
  t.match(await ask(server, 'one.k.example.com.', '81.2.69.1'), [/c0000201$/])
  t.match(await ask(server, 'one.k.example.com.', '8.8.8.8'), [/c0000263$/])
  await server.close()
  t.strictSame(readdirSync(join(t.testdirName, 'state')), [])
})

t.test('records and the database can come from elsewhere', async (t) => {
  const text = files(t)
  const octets = Buffer.from(record('two', '192.0.2.2'))
  const server = await load(t, {
    text,
    records: { kind: 'dump', name: 'dump.yaml', octets },
    database: join(t.testdirName, 'us.mmdb'),
  })
  await server.blocks[0]!.serve()
  t.match(await ask(server, 'one.k.example.com.', '81.2.69.1'), [])
  t.match(await ask(server, 'two.k.example.com.', '81.2.69.1'), [/c0000263$/])
  const { store } = await server.blocks[0]!.zones.read()
  t.strictSame(store.places().get('docs/two')?.file, 'dump.yaml')
})

t.test('the zones of a block can be built without serving them', async (t) => {
  const server = await load(t)
  const { zones } = server.blocks[0]!
  const apex = scanName('k.example.com.')!
  t.strictSame(
    (await zones.recordsOf(apex)).map(({ key }) => key),
    ['docs/one'],
  )
  const types: number[] = []
  const sink: RRsetSink = { put: (_, { type }) => types.push(type), remove() {}, declare() {} }
  await zones.fill(apex, sink, zones.configuredHealth)
  t.strictSame(types, [2, 1])
})

t.test('faults have one line with their place', async (t) => {
  const cluster = 'k.example.com {\n kuadrant {\n  kubeconfig /nowhere\n }\n}\n'
  const server = await load(t, { text: cluster })
  await t.rejects(server.blocks[0]!.serve(), {
    message: /the records of a cluster are not read offline.*kubectl get dnsrecord/,
    position: { file: 'Corefile', line: 3 },
  })
  await t.rejects(load(t, { text: 'k.example.com {\n bufsize x\n nobody\n}\n' }), InputError)
  await t.rejects(load(t, { database: '/nowhere.mmdb' }), { message: /nowhere\.mmdb/ })
  const two = files(t, COREFILE.replace('geoip eu.mmdb', 'geoip eu.mmdb us.mmdb'))
  await t.rejects(load(t, { text: two, database: 'x' }), { message: /geoip names 2 databases/ })
  t.notOk(existsSync('/nowhere.mmdb'))
})

t.test('one place cannot replace the records of several', async (t) => {
  const text = files(
    t,
    `${COREFILE}l.example.com {\n kuadrant {\n  manifests {DIR}/eu.mmdb\n }\n}\n`,
  )
  const records = { kind: 'directory', directory: join(t.testdirName, 'records') } as const
  const server = await load(t, { text, records })
  await t.rejects(server.blocks[0]!.serve(), { message: /reads records from 2 places: / })
  const plain = await load(t, { text })
  await t.rejects(plain.blocks[1]!.serve(), { message: /cannot be listed/ })
})
