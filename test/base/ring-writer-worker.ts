import { parentPort, workerData } from 'node:worker_threads'
import { RingWriter } from '../../src/base/ring.ts'

/*
 * Writes `count` records into a ring: record n has tag n and n % 200 octets of value n. Waits now and
 * then, so that the ring is now full and now empty.
 */
const { memory, count } = workerData as { memory: SharedArrayBuffer; count: number }
const writer = new RingWriter(memory)
const pause = new Int32Array(new SharedArrayBuffer(4))
for (let n = 1; n <= count; n++) {
  const octets = n % 200
  const at = writer.begin(octets)
  if (at === -1) continue
  writer.octets.fill(n, at, at + octets)
  if (writer.end(n, octets)) parentPort!.postMessage({ kind: 'wakeup' })
  if (n % 64 === 0) Atomics.wait(pause, 0, 0, 0.05)
}
