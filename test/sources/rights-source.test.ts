import t from 'tap'
import { createLogger } from '../../src/base/telemetry/log.ts'
import { scanName } from '../../src/dns/name/name.ts'
import { packRecord } from '../../src/records/pack.ts'
import { type RecordChange, StoredRecord } from '../../src/records/record-source.ts'
import { SERVED, validateResource } from '../../src/records/validate/resource.ts'
import type { OwnedSource } from '../../src/sources/owned-source.ts'
import { RightsSource } from '../../src/sources/rights-source.ts'
import { ZoneOwnership } from '../../src/sources/zone-ownership.ts'
import { until } from '../support/until.ts'

const SILENT = (): void => {}
const HOST = 'app.k.example.com'

function record(namespace: string, name = 'r', host = HOST): StoredRecord {
  const endpoints = [{ dnsName: host, recordType: 'A', targets: ['192.0.2.1'] }]
  const got = validateResource(
    {
      apiVersion: 'kuadrant.io/v1alpha1',
      kind: 'DNSRecord',
      metadata: { namespace, name },
      spec: { rootHost: host, endpoints },
    },
    SERVED,
  )
  if (got.kind !== 'record') throw new Error(JSON.stringify(got))
  return new StoredRecord(`${namespace}/${name}`, packRecord(got.record))
}

function open(owned: unknown): RightsSource {
  const log = createLogger('', SILENT, () => false)
  const common = { isServed: () => true, shares: [], log, onRefused: () => {} }
  return new RightsSource(owned as OwnedSource, common)
}

t.test('zones that are added together are judged once', async (t) => {
  const all = [record('a'), record('b')]
  let reads = 0
  const source = {
    records: () => {
      reads++
      return all
    },
    find: (key: string) => all.find((one) => one.key === key),
    subscribe: () => () => {},
  }
  const ownership = new ZoneOwnership()
  const judged = open({ source, ownership })
  t.teardown(() => judged.close())
  await judged.decided()
  t.same(
    [...judged.records()].map(({ key }) => key),
    ['a/r'],
  )
  const zones = ['k.example.com.', 'x.example.', 'y.example.'].map((zone) => scanName(zone)!)
  reads = 0
  const release = ownership.claim(zones)
  t.equal(reads, 1)
  release()
  t.equal(reads, 2)
  ownership.claim(zones)()
  t.equal(reads, 4)
})

t.test('the first record of a second namespace lets other work run', async (t) => {
  const all = new Map<string, StoredRecord>()
  const own = record('b')
  for (let i = 0; i < 20_000; i++) {
    const one = new StoredRecord(`b/${i}`, own.packed)
    all.set(one.key, one)
  }
  let emit: (changes: readonly RecordChange[]) => void = () => {}
  const source = {
    records: () => all.values(),
    find: (key: string) => all.get(key),
    subscribe: (listener: typeof emit) => {
      emit = listener
      return () => {}
    },
  }
  const judged = open({ source, ownership: new ZoneOwnership() })
  t.teardown(() => judged.close())
  const got: string[] = []
  judged.subscribe((changes) => {
    for (const { before, after } of changes) got.push(`${before?.key} ${after?.key}`)
  })
  const put = (after: StoredRecord): void => {
    all.set(after.key, after)
    emit([{ before: undefined, after }])
  }
  put(record('a'))
  t.same(got, [], 'the index is being read')
  t.equal(judged.find('a/r'), undefined)
  put(record('b', 'new'))
  await until(() => got.length > 20_000, 'all records to be judged')
  t.equal(got[0], 'undefined b/new', 'records of the first namespace are not held')
  t.equal(judged.find('a/r')?.key, 'a/r')
  t.equal(judged.find('b/1'), undefined, 'the older name of a namespace decides')
})

t.test('decisions about all records let other work run', async (t) => {
  const all = new Map<string, StoredRecord>()
  for (let i = 0; i < 20_000; i++) {
    const one = record(i % 2 === 0 ? 'a' : 'b', `${i}`, `h${i}.k.example.com`)
    all.set(one.key, one)
  }
  let emit: (changes: readonly RecordChange[]) => void = () => {}
  const source = {
    records: () => all.values(),
    find: (key: string) => all.get(key),
    subscribe: (listener: typeof emit) => {
      emit = listener
      return () => {}
    },
  }
  const ownership = new ZoneOwnership()
  const judged = open({ source, ownership })
  t.teardown(() => judged.close())
  const put = (name: string): void => {
    const after = record('b', name, 'h0.k.example.com')
    all.set(after.key, after)
    emit([{ before: undefined, after }])
  }
  let turns = 0
  let isOver = false
  const countTurns = (): void => {
    turns++
    if (!isOver) setImmediate(countTurns)
  }
  setImmediate(countTurns)
  put('early')
  await judged.decided()
  t.ok(turns > 2, `at the start: ${turns} turns`)
  t.equal(judged.find('b/early'), undefined, 'the older name of a namespace decides')
  turns = 0
  ownership.claim([scanName('k.example.com.')!])
  put('late')
  t.equal(judged.find('b/late'), undefined, 'the former decisions count')
  t.equal(judged.find('a/0')?.key, 'a/0')
  await judged.decided()
  isOver = true
  t.ok(turns > 2, `after a change of zones: ${turns} turns`)
  t.strictSame(judged.refused.map(({ key }) => key).sort(), ['b/early', 'b/late'])
})
