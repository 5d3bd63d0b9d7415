import t from 'tap'
import { addressSetRow, insertRow } from '../../../../src/egress/sinks/ovn/address-set-row.ts'
import { NorthboundServer } from '../../../support/ovsdb.ts'
import { needs } from '../../../support/peer.ts'
import { until } from '../../../support/until.ts'
import { AddressSetStage, deleteAcls, insertAcl } from './stage.ts'

const NEEDS = needs('ovsdb-server', 'ovn-northd')
const WWW = 'www.example.com.'

function isRows(stage: AddressSetStage, ...rows: string[]) {
  return async (): Promise<boolean> => (await stage.rows()).join() === rows.join()
}

t.test('each name has a set for each family, and an update replaces it', NEEDS, async (t) => {
  const stage = await AddressSetStage.start(t)
  stage.set(WWW, '192.0.2.1', '192.0.2.2', '2001:db8::1')
  stage.set('*.example.com.')
  const wild = ['*.example.com. v4: ', '*.example.com. v6: ']
  const first = [`${WWW} v4: 192.0.2.1 192.0.2.2`, `${WWW} v6: 2001:db8::1`]
  await until(isRows(stage, ...wild, ...first), 'the rows')
  await until(() => stage.feed.pending === 0, 'acknowledgements')
  t.strictSame(
    (await stage.stored()).map(({ name }) => name).sort(),
    [WWW, '*.example.com.']
      .flatMap((name) => [1, 2].map((f) => addressSetRow('sextant', name, f as 1 | 2, []).name))
      .sort(),
  )
  for (let i = 1; i <= 100; i++) {
    stage.set(WWW, `192.0.2.${i}`)
    if (i % 10 === 0) await until(() => stage.feed.pending === 0, 'the acknowledgement')
  }
  t.strictSame(await stage.rows(), [...wild, `${WWW} v4: 192.0.2.100`, `${WWW} v6: `])
  t.equal(stage.losses, 0, 'own changes are no losses')
  t.strictSame(stage.faults, [])
})

t.test('only the families of the cluster have rows', NEEDS, async (t) => {
  const server = await NorthboundServer.start(t)
  const both = new AddressSetStage(t, server)
  both.set(WWW, '192.0.2.1', '2001:db8::1')
  await until(() => both.feed.pending === 0, 'both rows')
  both.client.close()
  const stage = new AddressSetStage(t, server, [2])
  stage.set(WWW, '192.0.2.1', '2001:db8::2')
  stage.sink.beginSweeps()
  await until(isRows(stage, `${WWW} v6: 2001:db8::2`), 'the row of IPv6 alone')
})

t.test('a row that another client deletes or changes is made again', NEEDS, async (t) => {
  const stage = await AddressSetStage.start(t)
  stage.set(WWW, '192.0.2.1')
  await until(() => stage.feed.pending === 0, 'the rows')
  const rows = await stage.rows()
  const { name } = (await stage.stored()).find(({ family }) => family === 'v4')!
  const where = [['name', '==', name]]
  await stage.server.transact({ op: 'delete', table: 'Address_Set', where })
  await until(isRows(stage, ...rows), 'the row')
  t.equal(stage.losses, 1)
  stage.set(WWW, '192.0.2.2')
  await until(isRows(stage, `${WWW} v4: 192.0.2.2`, `${WWW} v6: `), 'the update after it')
  t.strictSame(stage.faults, [])
})

t.test(
  'updates find a row that was deleted or made while the sink was stopped',
  NEEDS,
  async (t) => {
    const stage = await AddressSetStage.start(t)
    stage.set(WWW, '192.0.2.1')
    await until(() => stage.feed.pending === 0, 'the rows')
    await stage.server.kill()
    stage.set(WWW, '192.0.2.2')
    await until(() => stage.client.reason !== '', 'the loss')
    await stage.server.resume()
    const row = addressSetRow('sextant', WWW, 1, [])
    // In one transaction: the sink is back, and makes rows that are missing.
    await stage.server.transact(
      { op: 'delete', table: 'Address_Set', where: [] },
      insertRow({ ...row, addresses: ['198.51.100.1'] }),
    )
    await until(isRows(stage, `${WWW} v4: 192.0.2.2`, `${WWW} v6: `), 'the rows')
  },
)

t.test('the rows survive a killed server and a new process', NEEDS, async (t) => {
  const stage = await AddressSetStage.start(t)
  for (let i = 1; i <= 50; i++) stage.set(`n${i}.example.com.`, `192.0.2.${i}`)
  await until(() => stage.feed.pending === 0, 'the rows')
  await stage.server.kill()
  for (let i = 1; i <= 50; i++) stage.set(`n${i}.example.com.`, `198.51.100.${i}`)
  await stage.server.resume()
  await until(() => stage.feed.pending === 0, 'the rows again')
  const rows = await stage.rows()
  t.equal(rows.filter((row) => row.includes('v4: 198.51.100.')).length, 50)
  stage.client.close()
  const next = new AddressSetStage(t, stage.server)
  for (let i = 1; i <= 49; i++) next.set(`n${i}.example.com.`, `198.51.100.${i}`)
  next.sink.beginSweeps()
  await until(() => next.sink.size === 98, 'the end of the name that is gone')
  t.strictSame(
    await next.rows(),
    rows.filter((row) => !row.startsWith('n50.')),
  )
})

t.test('a set that an ACL uses is kept until no ACL does', NEEDS, async (t) => {
  const stage = await AddressSetStage.start(t)
  stage.set(WWW, '192.0.2.1')
  stage.set('other.example.com.', '192.0.2.2')
  await until(() => stage.feed.pending === 0, 'the rows')
  const rows = (await stage.rows()).filter((row) => row.startsWith(WWW))
  const [v4, v6] = [1, 2].map((f) => addressSetRow('sextant', WWW, f as 1 | 2, []).name)
  await stage.server.transact(
    ...insertAcl('pg', `(ip4.dst == $${v4} || ip6.dst == $${v6}) && inport == @pg`),
  )
  stage.sink.beginSweeps()
  stage.remove(WWW)
  stage.remove('other.example.com.')
  await until(isRows(stage, ...rows), 'the end of the other rows')
  t.equal(stage.sink.unclaimed, 2)
  // Before the next sweep: a name that returns keeps its row, and one sweep of another process ends it.
  await stage.server.transact(deleteAcls('pg'))
  const next = new AddressSetStage(t, stage.server)
  next.sink.beginSweeps()
  await until(isRows(stage), 'the end of the rows')
})

t.test('a name that returns has its set', NEEDS, async (t) => {
  const stage = await AddressSetStage.start(t)
  stage.sink.beginSweeps()
  const expected = [`${WWW} v4: 192.0.2.20`, `${WWW} v6: `]
  for (let i = 1; i <= 20; i++) {
    stage.set(WWW, `192.0.2.${i}`)
    if (i % 3 === 0) await until(() => stage.feed.pending === 0, 'the rows')
    stage.remove(WWW)
    if (i % 2 === 0) await until(() => stage.feed.pending === 0, 'the removal')
    if (i % 5 === 0) await until(() => stage.sink.size === 0, 'the end of the rows')
    stage.set(WWW, `192.0.2.${i}`)
  }
  await until(() => stage.feed.pending === 0, 'the rows')
  await until(isRows(stage, ...expected), 'the rows')
  stage.remove(WWW)
  stage.set(WWW)
  await until(isRows(stage, `${WWW} v4: `, `${WWW} v6: `), 'the empty rows')
})

t.test('rows of other owners are never touched', NEEDS, async (t) => {
  const stage = await AddressSetStage.start(t)
  const foreign = addressSetRow('default-network-controller', WWW, 1, [])
  const ids = { ...foreign.externalIds, 'k8s.ovn.org/name': 'taken.example.com.' }
  const own = addressSetRow('sextant', 'taken.example.com.', 1, [])
  await stage.server.transact(
    insertRow({ ...foreign, addresses: ['203.0.113.1'] }),
    insertRow({ name: own.name, externalIds: ids, addresses: ['203.0.113.2'] }),
  )
  stage.sink.beginSweeps()
  stage.set(WWW, '192.0.2.1')
  stage.set('taken.example.com.', '192.0.2.2')
  await until(() => stage.faults.length > 0, 'a fault')
  t.match(stage.faults[0], `address set ${own.name} or a`)
  t.match(stage.faults[0], 'does not belong to sextant')
  t.strictSame(await stage.rows(), [
    'taken.example.com. v4: 203.0.113.2',
    `${WWW} v4: 192.0.2.1`,
    `${WWW} v4: 203.0.113.1`,
    `${WWW} v6: `,
  ])
  await stage.server.transact({
    op: 'delete',
    table: 'Address_Set',
    where: [['name', '==', own.name]],
  })
  await until(() => stage.feed.pending === 0, 'the retry')
  t.equal(stage.faults.at(-1), '')
})

t.test('the time from a change to the committed row', NEEDS, async (t) => {
  const stage = await AddressSetStage.start(t)
  stage.set(WWW)
  await until(() => stage.feed.pending === 0, 'the rows')
  const times: number[] = []
  for (let i = 1; i <= 200; i++) {
    const startMs = performance.now()
    stage.set(WWW, `192.0.2.${i}`)
    // A condition that is checked at intervals would measure these.
    while (stage.feed.pending > 0) await new Promise((next) => setImmediate(next))
    times.push(performance.now() - startMs)
  }
  times.sort((a, b) => a - b)
  const print = (share: number) => times[Math.floor(times.length * share)]!.toFixed(2)
  t.comment(
    `change to commit: median ${print(0.5)} ms, 95 % ${print(0.95)} ms, most ${print(0.999)} ms`,
  )
  t.ok(times[100]! < 50)
})

t.test('thousands of names at once', NEEDS, async (t) => {
  const stage = await AddressSetStage.start(t)
  const startMs = performance.now()
  for (let i = 0; i < 2000; i++) {
    stage.set(`n${i}.example.com.`, `192.0.${i >> 8}.${i & 255}`, `2001:db8::${i.toString(16)}`)
  }
  await until(() => stage.feed.pending === 0, 'the rows')
  t.comment(`2000 names in ${Math.round(performance.now() - startMs)} ms`)
  t.equal(stage.transactions, 2000)
  t.equal(stage.sink.size, 4000)
  t.strictSame(stage.faults, [])
})
