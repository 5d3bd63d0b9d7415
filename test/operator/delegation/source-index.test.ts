import t from 'tap'
import { SourceIndex } from '../../../src/operator/delegation/source-index.ts'
import { AUTHORITATIVE } from '../../support/delegation-fixture.ts'
import { dnsRecord } from '../../support/operator-objects.ts'

const KEY = `a/${AUTHORITATIVE}`

t.test('records are found by the authoritative record that they delegate to', async (t) => {
  const index = new SourceIndex()
  const plain = dnsRecord({ spec: { delegate: true } })
  const wildcard = dnsRecord({ spec: { delegate: true, rootHost: '*.k.example.com' } })
  index.add('a/one', plain)
  index.add('a/wild', wildcard)
  index.add('a/other', dnsRecord({ spec: { delegate: true, rootHost: 'b.example.com' } }))
  index.add('b/one', dnsRecord({ namespace: 'b', spec: { delegate: true } }))
  index.add('a/merged', dnsRecord())
  const labels = { 'kuadrant.io/authoritative-record': 'true' }
  index.add(KEY, dnsRecord({ metadata: { labels }, spec: { delegate: true } }))
  t.strictSame([...index.of(KEY)], ['a/one', 'a/wild'])
  index.remove('a/one', plain)
  t.strictSame([...index.of(KEY)], ['a/wild'])
  index.remove('a/wild', wildcard)
  index.remove('a/wild', wildcard)
  t.strictSame([...index.of(KEY)], [])
})
