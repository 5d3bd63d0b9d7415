import t from 'tap'
import type { PortRange } from '../../../src/egress/rules/port-range.ts'
import type { AddressPair } from '../../../src/node/enforcer.ts'
import { printElement, setOf } from '../../../src/node/nft/allowed-element.ts'
import { ElementStore } from '../../../src/node/nft/element-store.ts'

const PAIR: AddressPair = { client: '10.1.0.1', address: '192.0.2.1' }
const END_MS = 60_000

function tcp(first: number, last: number): PortRange {
  return { protocol: 'tcp', first, last }
}

t.test('a range of another process that may overlap a wanted one goes', async (t) => {
  const store = new ElementStore(1000)
  const adopt = (ports: PortRange) => {
    const text = printElement(PAIR, ports)
    const listed = { pair: PAIR, text, expiresMs: END_MS }
    return store.adopt(setOf(1, ports), listed, 'foreign', 0)!
  }
  const range = adopt(tcp(80, 90))
  const port = adopt(tcp(443, 443))
  t.equal(store.allow(PAIR, [{ ports: tcp(8080, 8080), endMs: END_MS }], 0, []), '')
  t.ok(range.endMs > 0, 'a port overlaps no range: they are in different sets')
  t.equal(store.allow(PAIR, [{ ports: tcp(85, 95), endMs: END_MS }], 0, []), '')
  t.ok(range.endMs < 0)
  t.ok(port.endMs > 0)
})

t.test('one client does not fill a set for all', async (t) => {
  const store = new ElementStore(20_000)
  const allow = (client: string, i: number, endMs = END_MS) => {
    const pair = { client, address: `198.18.${i >> 8}.${i & 255}` }
    return store.allow(pair, endMs === 0 ? [] : [{ ports: undefined, endMs }], 0, [])
  }
  for (let i = 0; i < 2000; i++) allow('10.1.0.1', i)
  t.equal(allow('10.1.0.1', 2000), '10.1.0.1 has too many elements in set any4')
  t.equal(store.refused, 1)
  t.equal(allow('10.1.0.2', 2000), '')
  allow('10.1.0.1', 0, 0)
  t.equal(allow('10.1.0.1', 2000), '', 'one less')
})
