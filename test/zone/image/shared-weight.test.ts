import t from 'tap'
import { countShared } from '../../../src/zone/image/shared-weight.ts'
import { until } from '../../support/until.ts'

const OCTETS = 64 * 1024 * 1024
const BUFFERS = 20

t.test('a thread that makes no other garbage collects buffers that it no longer uses', async () => {
  let made = 0
  let collected = 0
  const registry = new FinalizationRegistry(() => collected++)
  const isOneCollected = (): boolean => {
    if (made++ < BUFFERS) {
      const buffer = new SharedArrayBuffer(4096, { maxByteLength: OCTETS })
      buffer.grow(OCTETS)
      countShared(buffer)
      registry.register(buffer, undefined)
    }
    return collected > 0
  }
  await until(isOneCollected, 'a collection', 20_000)
})
