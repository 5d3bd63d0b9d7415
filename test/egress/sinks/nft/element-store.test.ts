import t from 'tap'
import type { PortRange } from '../../../../src/egress/rules/port-range.ts'
import type { AddressPair } from '../../../../src/egress/sinks/enforcer.ts'
import { printElement, setOf } from '../../../../src/egress/sinks/nft/allowed-element.ts'
import {
  type Element,
  ElementStore,
  SLACK_MS,
} from '../../../../src/egress/sinks/nft/element-store.ts'

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
  const store = new ElementStore(6000)
  const allow = (client: string, i: number, endMs = END_MS) => {
    const pair = { client, address: `198.18.${i >> 8}.${i & 255}` }
    return store.allow(pair, endMs === 0 ? [] : [{ ports: undefined, endMs }], 0, [])
  }
  for (let i = 0; i < 2000; i++) allow('10.1.0.1', i)
  t.equal(allow('10.1.0.1', 2000), '10.1.0.1 has too many elements')
  t.equal(store.refused, 1)
  t.equal(allow('10.1.0.2', 2000), '')
  allow('10.1.0.1', 0, 0)
  t.equal(allow('10.1.0.1', 2000), '', 'one less')
  const ports = [tcp(1, 2), tcp(4, 5), tcp(7, 8)].map((ports) => ({ ports, endMs: END_MS }))
  const pair = (i: number) => ({ client: '10.1.0.3', address: `198.18.${i >> 8}.${i & 255}` })
  for (let i = 0; i < 666; i++) t.equal(store.allow(pair(i), ports, 0, []), '')
  const missing: Element[] = []
  store.refused = 0
  const fault = '10.1.0.3 has too many elements'
  for (const _ of 'ab') t.equal(store.allow(pair(666), ports, 0, missing), fault)
  t.equal(store.refused, 2, 'each range')
  t.equal(missing.length, 4, 'what there is room for')
})

t.test(
  'a refresh comes before the kernel forgets the element, and not at each answer',
  async (t) => {
    for (const ttlMs of [5000, 20_000, 60_000, 300_000]) {
      for (const pauseMs of [1000, 20_000]) {
        const store = new ElementStore(10)
        let lost = 0
        let writes = 0
        let endMs = 0
        for (let nowMs = 0; nowMs < 1_200_000; nowMs += 1000) {
          if (nowMs % pauseMs === 0 && nowMs < 600_000) {
            endMs = nowMs + ttlMs
            store.allow(PAIR, [{ ports: undefined, endMs }], nowMs, [])
          }
          if (nowMs % 10_000 === 0) store.expire(nowMs)
          for (const element of store.take(10, nowMs)) {
            store.noteWritten(element, element.endMs < 0 ? element.endMs : element.endMs + SLACK_MS)
            writes++
          }
          const [element] = [...store.all()]
          const kernelMs = element?.kernelMs ?? 0
          if (nowMs <= endMs && kernelMs < nowMs) lost++
          t.ok(kernelMs <= Math.max(0, endMs + 2 * SLACK_MS), 'it is never there for longer')
        }
        t.equal(lost, 0, `${ttlMs} ms, asked for each ${pauseMs} ms`)
        t.equal(store.size, 0)
        if (ttlMs > 60_000) t.ok(writes < 20, `${writes} times`)
      }
    }
  },
)

t.test(
  'an element is in force while a transaction extends it, not while one removes it',
  async (t) => {
    const store = new ElementStore(10)
    const allow = (endMs: number): boolean => {
      const missing: Element[] = []
      store.allow(PAIR, endMs === 0 ? [] : [{ ports: undefined, endMs }], 0, missing)
      return missing.length === 0
    }
    t.notOk(allow(5000))
    const [element] = [...store.take(10, 0)]
    element!.writingMs = 7000
    t.notOk(allow(5000), 'it is being added')
    store.noteWritten(element!, 7000)
    t.ok(allow(60_000))
    element!.writingMs = 62_000
    t.ok(allow(60_000), 'it is being extended')
    t.notOk(allow(0))
    element!.writingMs = Number.NEGATIVE_INFINITY
    t.notOk(allow(60_000), 'it is being removed')
  },
)

t.test('what replies wait for is forgotten with its element', async (t) => {
  const store = new ElementStore(20_000)
  const pairOf = (i: number) => ({ client: '10.1.0.1', address: `198.18.${i >> 8}.${i & 255}` })
  const wanted = [{ ports: undefined, endMs: END_MS }]
  for (let i = 0; i < 5000; i++) {
    const missing: Element[] = []
    store.allow(pairOf(i), wanted, 0, missing)
    t.equal(missing.length, 1)
    store.allow(pairOf(i), [], 0, [])
  }
  t.strictSame([store.urgent.size, store.changed.size, store.size], [0, 0, 0])
  for (let i = 0; i < 3; i++) store.allow(pairOf(i), wanted, 0, [])
  const taken = [...store.take(2, 0)]
  t.strictSame([taken.length, store.urgent.size], [2, 1])
  const [first, second] = taken
  first!.writingMs = END_MS
  store.allow(first!.pair, [], 0, [])
  t.equal(store.urgent.size, 2, 'it is removed while a transaction adds it')
  store.noteWritten(first!, END_MS)
  store.noteWritten(second!, END_MS)
  t.ok(store.urgent.has(first!))
  t.equal([...store.take(1, 0)].length, 1)
})
