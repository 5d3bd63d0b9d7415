import t from 'tap'
import {
  BYPASS_REGION,
  giveRegion,
  packetOctets,
  packetView,
  REGION_OCTETS,
  SCRATCH,
  takeRegion,
} from '../../src/base/packet-memory.ts'

t.test('regions are lent once each, empty, until there are no more', async (t) => {
  const taken: number[] = []
  for (let region = takeRegion(); region !== -1; region = takeRegion()) taken.push(region)
  t.equal(new Set(taken).size, taken.length)
  t.equal(taken.length * REGION_OCTETS, BYPASS_REGION)
  t.equal(BYPASS_REGION + REGION_OCTETS, SCRATCH)
  t.ok(taken.every((start) => start % 64 === 0))
  packetOctets[taken[3]! + 5] = 1
  giveRegion(taken[3]!)
  t.equal(takeRegion(), taken[3])
  t.equal(packetOctets[taken[3]! + 5], 0)
  t.equal(takeRegion(), -1)
  for (const region of taken) giveRegion(region)
})

t.test('octets and the view are one memory', async (t) => {
  packetOctets[8] = 0x12
  t.equal(packetView.getUint32(8, true), 0x12)
  packetOctets[8] = 0
})
