import t from 'tap'
import { CounterSlots, Counts, type SlotLabels } from '../../src/plugin/counter-slots.ts'
import { lonelyServer, transaction } from '../support/transaction.ts'

const tx = (zone: string, view = '', address = 'dns://:53') =>
  transaction({ name: 'a.example.', zone, view }, { ...lonelyServer, address })

t.test('there is one slot for each server, zone and view', async (t) => {
  const made: SlotLabels[] = []
  const slots = new CounterSlots((length, labels) => {
    made.push(labels)
    return new Float64Array(length)
  })
  slots.length = 3
  const table = [
    tx('a.'),
    tx('b.'),
    tx('a.', 'inner'),
    tx('a.', '', 'dns://127.0.0.1:53'),
    tx('a.', 'inner', 'dns://127.0.0.1:53'),
  ]
  const counters = table.map((one) => slots.of(one))
  t.equal(new Set(counters).size, table.length)
  t.ok(counters.every((counts) => counts.length === 3 && counts.every((count) => count === 0)))
  for (const [i, one] of table.entries()) t.equal(slots.of(one), counters[i])
  t.strictSame(
    made.map(({ server, zone, view }) => `${server} ${zone} ${view}`),
    [
      'dns://:53 a. ',
      'dns://:53 b. ',
      'dns://:53 a. inner',
      'dns://127.0.0.1:53 a. ',
      'dns://127.0.0.1:53 a. inner',
    ],
  )
})

t.test('slots of other threads are visited too, and each keeps to itself', async (t) => {
  const slots = new CounterSlots()
  slots.length = 1
  slots.of(tx('a.'))[0]! += 1
  const other = Float64Array.of(5)
  slots.include({ server: 'dns://:53', zone: 'a.', view: '' }, other)
  const visit = (): [string, number][] => {
    const seen: [string, number][] = []
    slots.forEach((counts, { zone }) => {
      seen.push([zone, counts.take(0)])
    })
    return seen
  }
  t.strictSame(visit(), [
    ['a.', 1],
    ['a.', 5],
  ])
  slots.of(tx('a.'))[0]! += 1
  other[0]! += 2
  t.strictSame(
    visit(),
    [
      ['a.', 1],
      ['a.', 2],
    ],
    'what came since',
  )
})

t.test('nothing is counted twice or lost between two readings', async (t) => {
  const now = new Float64Array(2)
  const counts = new Counts(now)
  let total = 0
  for (let i = 1; i <= 10; i++) {
    now[1]! += i
    if (i % 3 === 0) total += counts.take(1)
  }
  t.equal(total + counts.take(1), 55)
  t.equal(counts.take(1), 0)
  t.equal(counts.take(0), 0)
})
