import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { OvsdbError } from '../../src/ovsdb/connection.ts'
import { selfSigned } from '../support/certificate.ts'
import { NorthboundServer } from '../support/ovsdb.ts'
import { needs } from '../support/peer.ts'
import { until } from '../support/until.ts'
import { ClientStage, insert, remove, update } from './stage.ts'

const NEEDS = needs('ovsdb-server', 'ovn-northd')

t.test('follows rows and commits transactions', NEEDS, async (t) => {
  const server = await NorthboundServer.start(t)
  await server.transact(insert('a', ['192.0.2.1', '192.0.2.2']), insert('b', ['192.0.2.9'], 'you'))
  const { client, ...stage } = new ClientStage(t, server.socket)
  const [inserted] = await client.transact([insert('c', [])])
  t.equal(inserted?.count, 0)
  const results = await client.transact([
    update('a', ['192.0.2.2', '192.0.2.3']),
    update('none', []),
  ])
  t.strictSame(
    results.map(({ count }) => count),
    [1, 0],
  )
  await server.transact(update('c', ['2001:db8::1']))
  await server.transact(remove('a'), update('b', []))
  await until(() => stage.changes.length === 4, 'four changes')
  t.strictSame(stage.changes, [
    'c: none -> ',
    'a: 192.0.2.1 192.0.2.2 -> 192.0.2.2 192.0.2.3',
    'c:  -> 2001:db8::1',
    'a: 192.0.2.2 192.0.2.3 -> none',
  ])
  t.strictSame(
    [...client.rows].map(({ name }) => name),
    ['c'],
  )
  t.equal(client.reason, '')
})

t.test('reports what the server refuses, and changes nothing then', NEEDS, async (t) => {
  const server = await NorthboundServer.start(t)
  const stage = new ClientStage(t, server.remote)
  await stage.client.transact([insert('a', [])])
  const twice = stage.client.transact([insert('b', []), insert('a', [])])
  await t.rejects(twice, new OvsdbError('constraint violation', ''), 'at the commit')
  const bad = stage.client.transact([insert('c', []), { op: 'insert', table: 'Nothing', row: {} }])
  await t.rejects(bad, /No table named Nothing/, 'by an operation')
  await t.rejects(stage.client.transact([{ op: 'abort' }]), { code: 'aborted' })
  t.strictSame(stage.rows(), ['a: '])
  t.equal(stage.syncs, 1)
})

t.test('reconnects to a killed server, and finds out what changed meanwhile', NEEDS, async (t) => {
  const server = await NorthboundServer.start(t)
  const stage = new ClientStage(t, server.remote)
  await stage.client.transact([insert('a', ['192.0.2.1']), insert('b', [])])
  await server.kill()
  await until(() => stage.client.reason !== '', 'the lost connection')
  const waiting = stage.client.transact([insert('c', [])])
  t.strictSame(stage.rows(), ['a: 192.0.2.1', 'b: '], 'rows are kept')
  await server.resume()
  await server.transact(update('a', ['192.0.2.2']), remove('b'))
  await waiting
  await until(() => stage.rows().length === 2, 'the new row')
  t.strictSame(stage.rows(), ['a: 192.0.2.2', 'c: '])
  t.ok(stage.syncs >= 2)
})

t.test('finds a server that starts late', NEEDS, async (t) => {
  const server = await NorthboundServer.start(t)
  await server.kill()
  const stage = new ClientStage(t, server.remote)
  const inserted = stage.client.transact([insert('a', [])])
  await until(() => stage.lines.length > 0, 'a fault')
  t.match(stage.client.reason, /^tcp:127\.0\.0\.1:\d+: connect ECONNREFUSED/)
  await server.resume()
  await inserted
})

t.test('rejects transactions once it is closed', NEEDS, async (t) => {
  const server = await NorthboundServer.start(t)
  const stage = new ClientStage(t, server.remote)
  await stage.client.transact([insert('a', [])])
  server.freeze(true)
  const open = stage.client.transact([insert('b', [])])
  stage.client.close()
  await t.rejects(open, new OvsdbError('', 'the client is closed'))
  await t.rejects(stage.client.transact([]), new OvsdbError('', 'the client is closed'))
  server.freeze(false)
  const never = new ClientStage(t, 'tcp:127.0.0.1:1')
  const waiting = never.client.transact([])
  never.client.close()
  await t.rejects(waiting, new OvsdbError('', 'the client is closed'))
})

t.test('speaks TLS, and checks the server', NEEDS, async (t) => {
  const { key, cert } = selfSigned('nb.example')
  const directory = t.testdir({ 'key.pem': key, 'cert.pem': cert })
  const files = {
    key: join(directory, 'key.pem'),
    certificate: join(directory, 'cert.pem'),
    authority: join(directory, 'cert.pem'),
  }
  const server = await NorthboundServer.start(t, files)
  const other = new ClientStage(t, server.remote, { tls: { ...files, serverName: 'x.example' } })
  await until(() => other.lines.length > 0, 'a fault')
  t.match(other.client.reason, /does not match certificate's altnames/)
  const strange = selfSigned('nb.example')
  writeFileSync(join(directory, 'strange.pem'), strange.cert)
  const authority = join(directory, 'strange.pem')
  const tls = { ...files, serverName: 'nb.example' }
  const untrusted = new ClientStage(t, server.remote, { tls: { ...tls, authority } })
  await until(() => untrusted.lines.length > 0, 'a fault')
  t.match(untrusted.client.reason, /self-signed certificate/)
  const stage = new ClientStage(t, server.remote, { tls })
  await stage.client.transact([insert('a', [])])
  t.strictSame(stage.rows(), ['a: '])
  writeFileSync(authority, cert)
  await untrusted.client.transact([])
  t.equal(untrusted.client.reason, '', 'files are read again')
})

t.test('stays with the leader of a cluster', NEEDS, async (t) => {
  const servers = await NorthboundServer.startCluster(t)
  const stage = new ClientStage(t, servers.map(({ remote }) => remote).join())
  await stage.client.transact([insert('a', ['192.0.2.1'])])
  const leaders = await Promise.all(servers.map((server) => server.isLeader()))
  const leader = servers[leaders.indexOf(true)]!
  t.match(stage.lines.at(-1), `connected to ${leader.remote}`)
  const startMs = performance.now()
  await leader.kill()
  await stage.client.transact([update('a', ['192.0.2.2'])]).catch(() => {})
  await stage.client.transact([update('a', ['192.0.2.3'])])
  t.comment(`committed ${Math.round(performance.now() - startMs)} ms after the leader was killed`)
  t.strictSame(stage.rows(), ['a: 192.0.2.3'])
  t.notMatch(stage.lines.at(-1), `connected to ${leader.remote}`)
})
