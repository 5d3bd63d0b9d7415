import t from 'tap'
import { TransferSlots } from '../../../src/plugins/secondary/transfer-slots.ts'

const TRANSFERS_PER_HOST_MAX = 4

t.test('the first transfers start first, and one primary has a limited number', async (t) => {
  const slots = new TransferSlots()
  const started: number[] = []
  const ends: (() => void)[] = []
  for (let i = 0; i < 20; i++) {
    void slots.run(
      () => (i < 10 ? '192.0.2.1' : '192.0.2.2'),
      () => {
        started.push(i)
        return new Promise((resolve) => ends.push(resolve))
      },
    )
  }
  const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
  await settle()
  t.strictSame(started, [0, 1, 2, 3, 10, 11, 12, 13])
  t.equal(started.length, 2 * TRANSFERS_PER_HOST_MAX)
  ends[4]!()
  ends[5]!()
  await settle()
  t.strictSame(started.slice(8), [14, 15], 'a hanging primary leaves room for others')
  ends[0]!()
  await settle()
  t.strictSame(started.slice(10), [4])
})

t.test('the primary counts that the zone has when it starts', async (t) => {
  const slots = new TransferSlots()
  const started: string[] = []
  const hang = (): Promise<void> => new Promise(() => {})
  for (let i = 0; i < TRANSFERS_PER_HOST_MAX; i++) void slots.run(() => 'a', hang)
  let host = 'a'
  void slots.run(
    () => host,
    async () => void started.push(host),
  )
  await new Promise((resolve) => setImmediate(resolve))
  t.strictSame(started, [])
  host = 'b'
  void slots.run(() => 'c', hang)
  await new Promise((resolve) => setImmediate(resolve))
  t.strictSame(started, ['b'])
})
