import { parentPort, workerData } from 'node:worker_threads'
import { loadLibc } from '../../../../src/transport/udp/batch/libc.ts'
import { type WakeCall, WakeReader } from '../../../../src/transport/udp/batch/wake.ts'

/*
 * Sleeps until it is called, like a loop, and copies word 0 to word 1 at each call, up to `last`. A sleep
 * that ended by its timeout although word 0 had changed is a call that was missed.
 */
const { wake, words, last } = workerData as { wake: WakeCall; words: Int32Array; last: number }
const SLEEP_MS = 3000
const libc = loadLibc()
const reader = new WakeReader(libc, wake)
const fds = Int32Array.of(wake.fd, 1)
const address = libc.addressOf(fds)
let [slept, missed] = [0, 0]
while (words[1] !== last) {
  if (reader.isCalled()) Atomics.store(words, 1, Atomics.load(words, 0))
  if (words[1] === last) break
  fds[1] = 1
  slept++
  if (libc.poll(address, 1, SLEEP_MS) > 0) reader.clear()
  else if (Atomics.load(words, 0) !== words[1]) {
    missed++
    Atomics.store(words, 1, Atomics.load(words, 0))
  }
}
parentPort!.postMessage({ slept, missed })
