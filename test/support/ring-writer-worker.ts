import { parentPort, workerData } from 'node:worker_threads'
import { RingWriter } from '../../src/base/ring.ts'

/*
 * Writes `count` records into a ring: record n has tag n and n % 200 octets of value n. Waits now and
 * then, so that the ring is now full and now empty; and for the reader, which comes late on a busy machine:
 * `heard` is how many bells it has heard.
 */
const { memory, count, heard } = workerData as {
  memory: SharedArrayBuffer
  count: number
  heard: Int32Array
}
const HEARD_MS_MAX = 60_000
const writer = new RingWriter(memory)
const pause = new Int32Array(new SharedArrayBuffer(4))
let heardBefore = 0
for (let n = 1; n <= count; n++) {
  if (n % 10_000 === 0) {
    Atomics.wait(heard, 0, heardBefore, HEARD_MS_MAX)
    heardBefore = Atomics.load(heard, 0)
  }
  const octets = n % 200
  const at = writer.begin(octets)
  if (at === -1) continue
  writer.octets.fill(n, at, at + octets)
  if (writer.end(n, octets)) parentPort!.postMessage({ kind: 'bell' })
  if (n % 64 === 0) Atomics.wait(pause, 0, 0, 0.05)
}
