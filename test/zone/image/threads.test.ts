import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import t from 'tap'
import { ZoneImage } from '../../../src/zone/image/writer.ts'
import { wire } from '../../support/zone-names.ts'

const TYPE = 65280
const NAMES = ['a.example.org.', 'deep.below.an.empty.name.example.org.']
const LAST = 6000

t.test(
  'a reader in another thread sees each publish whole, through growth of arena and index',
  async (t) => {
    const image = new ZoneImage({ initialOctets: 4096, compactOctets: 2 ** 30 })
    const zone = image.addZone(wire('example.org.'))
    image.publish()
    const before = image.stats.arenaOctets
    const worker = new Worker(new URL('./zone-reader-worker.ts', import.meta.url), {
      workerData: { buffer: image.handle.buffer, names: NAMES, last: LAST, deadlineMs: 300_000 },
    })
    t.teardown(() => worker.terminate())
    const [ready] = await once(worker, 'message')
    t.equal(ready, 'ready')
    const report = once(worker, 'message')
    for (let i = 1; i <= LAST; i++) {
      const rdata = new Uint8Array(4)
      new DataView(rdata.buffer).setUint32(0, i)
      for (const name of NAMES) {
        image.putRRset(zone, wire(name), { type: TYPE, ttlSeconds: 1, rdata: [rdata] })
      }
      const other = wire(`n${i}.example.org.`)
      image.putRRset(zone, other, { type: TYPE, ttlSeconds: 1, rdata: [rdata] })
      image.publish()
    }
    const [{ looks, torn, versions, value }] = await report
    t.equal(value, LAST, 'the reader came to the last version')
    t.equal(torn, 0, 'the two names never differed')
    t.ok(versions > 1, `${versions} versions were seen in ${looks} looks`)
    t.ok(image.stats.arenaOctets > before, 'the arena grew meanwhile')
  },
)
