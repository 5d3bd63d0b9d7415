import fc from 'fast-check'
import t from 'tap'
import { systemClock } from '../../../src/base/clock.ts'
import { runWhole } from '../../../src/base/slices.ts'
import { lowerName, scanName } from '../../../src/dns/name/name.ts'
import { adoptArena } from '../../../src/zone/image/adopt.ts'
import { ZoneImage } from '../../../src/zone/image/writer.ts'
import { fillImage } from '../../../src/zone/zonefile/fill.ts'
import { type ImageJob, loadImage } from '../../../src/zone/zonefile/image-load.ts'
import { loadLog } from '../../../src/zone/zonefile/load.ts'
import { loadWithoutPause } from '../../../src/zone/zonefile/load-in-thread.ts'
import { RecordLog, readLog } from '../../../src/zone/zonefile/record-log.ts'
import { runs } from '../../support/runs.ts'

const zone = lowerName(scanName('z.example.')!)

interface Given {
  readonly label: string
  readonly type: number
  readonly ttlSeconds: number
  readonly rdata: Uint8Array
}

function logOf(given: readonly Given[]): RecordLog {
  const log = new RecordLog(zone, 'a test')
  // As of a transfer: the memory of one record is used again for the next.
  const owner = new Uint8Array(255)
  given.forEach(({ label, type, ttlSeconds, rdata }, i) => {
    const name = scanName(label, zone)!
    owner.set(name)
    const sizes = { ownerOctets: name.length, rdataOffset: 3, rdataOctets: rdata.length }
    const shifted = Buffer.concat([Buffer.from('abc'), rdata, Buffer.from('d')])
    log.add({ owner, type, ttlSeconds, rdata: shifted, ...sizes }, i + 1)
  })
  return log
}

const SOA = {
  label: '@',
  type: 6,
  ttlSeconds: 60,
  rdata: Uint8Array.from({ length: 22 }, (_, i) => (i === 5 ? 7 : 0)),
}

const arbitrary = fc.record({
  label: fc.constantFrom('@', 'a', 'a', 'b', 'x.b', '*.b', 'l'.repeat(63)),
  type: fc.constantFrom(1, 16, 65_280),
  ttlSeconds: fc.nat(0x7fff_ffff),
  rdata: fc.oneof(fc.uint8Array({ maxLength: 40 }), fc.constant(new Uint8Array(65_535).fill(1))),
})

const show = ({ label, type, ttlSeconds, rdata }: Given, line: number): string =>
  `${Buffer.from(scanName(label, zone)!).toString('hex')} ${type} ${ttlSeconds} ${line} ${Buffer.from(rdata).toString('hex')}`

t.test('a log returns its records, in its order', async () => {
  const property = fc.property(fc.array(arbitrary, { maxLength: 60 }), (given) => {
    const got: string[] = []
    const log = logOf(given).finish()
    const add = (record: Parameters<Parameters<typeof readLog>[1]['add']>[0]): boolean => {
      const { owner, ownerOctets, type, ttlSeconds, line, rdata, rdataOffset, rdataOctets } = record
      const name = Buffer.from(owner.subarray(0, ownerOctets)).toString('hex')
      const data = Buffer.from(rdata.subarray(rdataOffset, rdataOffset + rdataOctets))
      got.push(`${name} ${type} ${ttlSeconds} ${line} ${data.toString('hex')}`)
      return true
    }
    runWhole(readLog(log, { add }))
    return got.join() === given.map((one, i) => show(one, i + 1)).join()
  })
  fc.assert(property, { seed: 1, numRuns: runs(200) })
})

t.test('a writer continues an image that was filled from a log', async () => {
  const property = fc.property(fc.array(arbitrary, { maxLength: 40 }), (given) => {
    const load = runWhole(loadImage({ log: logOf([SOA, ...given]).finish(), nowSeconds: 0 }))
    const plain = runWhole(loadLog(logOf([SOA, ...given]).finish(), 0))
    if (load.kind !== 'loaded' || plain.kind !== 'loaded') return false
    const filled = runWhole(fillImage(plain.records, zone))
    const adopted = new ZoneImage({}, adoptArena(load.image))
    const states = [filled, adopted].map((image) => {
      const before = image.stats
      const id = image.findZone(zone)!
      image.removeRRset(id, scanName('a', zone)!, 16)
      image.putRRset(id, scanName('new', zone)!, {
        type: 1,
        ttlSeconds: 1,
        rdata: [new Uint8Array(4)],
      })
      image.publish()
      image.compact()
      return JSON.stringify([before, image.stats])
    })
    return load.serial === 7 && states[0] === states[1]
  })
  fc.assert(property, { seed: 1, numRuns: runs(100) })
})

t.test('a thread loads a log as the caller does', async (t) => {
  const given = Array.from({ length: 5000 }, (_, i) => ({
    label: `n${i >> 1}`,
    type: 1,
    ttlSeconds: 60,
    rdata: Buffer.from([10, 0, i >> 8, i & 255]),
  }))
  const job = (): ImageJob => ({ log: logOf([SOA, ...given]).finish(), nowSeconds: 0 })
  const [inThread, here] = [
    await loadWithoutPause(job(), systemClock, { octetsMin: 1 }),
    await loadWithoutPause(job(), systemClock, { octetsMin: Number.POSITIVE_INFINITY }),
  ]
  if (inThread.kind !== 'loaded' || here.kind !== 'loaded') return t.fail('not loaded')
  t.match(inThread.warnings[0]?.print(), /has no NS records/)
  const octets = ({ buffer }: { buffer: SharedArrayBuffer }): Buffer => Buffer.from(buffer)
  t.ok(octets(inThread.image).equals(octets(here.image)))
  t.strictSame(inThread.image.zones, here.image.zones)
})

t.test('a log of a zone that no image can have', async (t) => {
  const many = Array.from({ length: 65_536 }, (_, i) => ({
    ...SOA,
    type: 1,
    rdata: Buffer.from([i >> 16, i >> 8, i & 255]),
  }))
  for (const octetsMin of [1, Number.POSITIVE_INFINITY]) {
    const job = { log: logOf([SOA, ...many]).finish(), nowSeconds: 0 }
    const load = await loadWithoutPause(job, systemClock, { octetsMin })
    t.match(load.kind === 'failed' && load.errors[0]?.print(), /has more than 65535 records/)
  }
})

t.test('a thread that cannot start, and took the log', async (t) => {
  const job = { log: logOf([SOA]).finish(), nowSeconds: 0 }
  for (const { buffer } of job.log.chunks) structuredClone(buffer, { transfer: [buffer] })
  const load = await loadWithoutPause(job, systemClock, { octetsMin: 0 })
  t.match(load.kind === 'failed' && load.errors[0]?.print(), /^the thread that loads the zone/)
})
