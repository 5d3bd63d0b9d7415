import { once } from 'node:events'
import { setImmediate } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import t from 'tap'
import { runWhole } from '../../../src/base/slices.ts'
import { RRType } from '../../../src/dns/iana/types.ts'
import { compareNames } from '../../../src/dns/name/name.ts'
import { ZoneImage } from '../../../src/zone/image/writer.ts'
import { chainBlockSizes } from '../../support/zone-chains.ts'
import { wire } from '../../support/zone-names.ts'

const APEX = wire('example.')
const TYPE = 65280
const LAST = 300
/** Numbers of the names n0 to n2999, in canonical order. */
const SORTED = Array.from({ length: 3000 }, (_, i) => i).sort((a, b) => {
  return compareNames(wire(`n${a}.example.`), wire(`n${b}.example.`))
})

t.test(
  'a reader in another thread sees each chain whole while blocks split and join',
  async (t) => {
    const sizes = { initialOctets: 4096, compactOctets: 65_536, compactStepOctets: 16_384 }
    const image = new ZoneImage(sizes)
    const zone = image.addZone(APEX)
    const nsec = { type: RRType.NSEC, ttlSeconds: 1, rdata: [Uint8Array.of(0, 0, 1, 0x40)] }
    image.putRRset(zone, APEX, nsec)
    runWhole(image.updateChain(zone))
    image.publish()
    const { buffer } = image.handle
    const workerData = { buffer, apex: 'example.', type: TYPE, last: LAST, deadlineMs: 60_000 }
    const worker = new Worker(new URL('./chain-reader-worker.ts', import.meta.url), { workerData })
    t.teardown(() => worker.terminate())
    const [ready] = await once(worker, 'message')
    t.equal(ready, 'ready')
    const report = once(worker, 'message')
    image.onSwap((moved) => worker.postMessage(moved))
    const present = new Set<number>()
    let blocksMost = 0
    for (let i = 1; i <= LAST; i++) {
      // Rows of names join and leave in turn; the start of the next row is anywhere.
      const from = (i * 7919) % SORTED.length
      const row = SORTED.slice(from, from + [1, 40, 400][i % 3]!)
      for (const n of row) {
        const owner = wire(`n${n}.example.`)
        if (present.delete(n)) image.removeRRset(zone, owner, RRType.NSEC)
        else {
          present.add(n)
          image.putRRset(zone, owner, nsec)
        }
      }
      const numbers = Uint32Array.from([i, ...SORTED.filter((n) => present.has(n))])
      const rdata = [new Uint8Array(numbers.buffer)]
      image.putRRset(zone, APEX, { type: TYPE, ttlSeconds: 1, rdata })
      const changed = row.map((n) => wire(`n${n}.example.`))
      runWhole(image.updateChain(zone, changed))
      image.publish()
      blocksMost = Math.max(blocksMost, chainBlockSizes(image.reader(), APEX).length)
      if (i % 16 === 0) await setImmediate()
    }
    const [{ versions, swaps, seen, wrong }] = await report
    t.same(wrong, [])
    t.equal(seen, LAST, 'the reader came to the last version')
    t.ok(versions > 1, `${versions} versions were seen`)
    t.ok(blocksMost > 4, `${blocksMost} blocks`)
    t.ok(swaps > 1, `${swaps} compactions`)
  },
)
