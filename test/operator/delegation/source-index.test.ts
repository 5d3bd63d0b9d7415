import t from 'tap'
import { SourceIndex } from '../../../src/operator/delegation/source-index.ts'
import { DnsRecordView } from '../../../src/operator/record/record-view.ts'
import { AUTHORITATIVE } from '../../support/delegation-fixture.ts'
import { dnsRecord, type RecordParts } from '../../support/operator-objects.ts'

const KEY = `a/${AUTHORITATIVE}`

t.test('records are found by the authoritative record that they delegate to', async (t) => {
  const index = new SourceIndex()
  const record = (parts: RecordParts) => new DnsRecordView(dnsRecord(parts))
  const one = record({ name: 'one', spec: { delegate: true } })
  const wildcard = record({ name: 'wild', spec: { delegate: true, rootHost: '*.k.example.com' } })
  index.add(one)
  index.add(wildcard)
  index.add(record({ name: 'other', spec: { delegate: true, rootHost: 'b.example.com' } }))
  index.add(record({ name: 'one', namespace: 'b', spec: { delegate: true } }))
  index.add(record({ name: 'merged' }))
  const authoritative = { 'kuadrant.io/authoritative-record': 'true' }
  const [name, spec] = [AUTHORITATIVE, { delegate: true }]
  index.add(record({ name, metadata: { labels: authoritative }, spec }))
  const derived = { 'kuadrant.io/type': 'merged' }
  index.add(record({ name: 'merged-one', metadata: { labels: derived }, spec }))
  t.strictSame([...index.of(KEY)], ['a/one', 'a/wild'])
  index.remove(one)
  t.strictSame([...index.of(KEY)], ['a/wild'])
  index.remove(wildcard)
  index.remove(wildcard)
  t.strictSame([...index.of(KEY)], [])
})
