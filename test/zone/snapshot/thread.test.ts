import { join } from 'node:path'
import t from 'tap'
import { ZoneImage } from '../../../src/zone/image/writer.ts'
import { readSnapshot, restoreSnapshot } from '../../../src/zone/snapshot/read.ts'
import { writeInThread } from '../../../src/zone/snapshot/write-in-thread.ts'
import { wire } from '../../support/zone-names.ts'
import { printImage } from './zone-digest.ts'

// Long: it changes a zone while threads write it.

const NAMES = 3000

t.test('changes while another thread writes are not in the file, not even in part', async (t) => {
  const path = join(t.testdir({}), 'snapshot')
  const image = new ZoneImage({ compactOctets: 256 * 1024 })
  const zone = image.addZone(wire('k.'))
  const put = (i: number, value: number): void => {
    const rdata = [new Uint8Array([10, value >> 16, (value >> 8) & 255, value & 255])]
    image.putRRset(zone, wire(`n${i}.k.`), { type: 1, ttlSeconds: 1, rdata })
  }
  for (let i = 0; i < NAMES; i++) put(i, 0)
  image.publish()
  let compactions = 0
  let value = 0
  image.onSwap(() => compactions++)
  for (let round = 0; round < 4; round++) {
    const want = printImage(image.reader())
    let isDone = false
    const written = writeInThread({ path, image: image.capture(), facts: '' }).finally(() => {
      isDone = true
    })
    while (!isDone) {
      for (let i = 0; i < 200; i++) put(value % (NAMES + 500), ++value)
      image.removeRRset(zone, wire(`n${value % NAMES}.k.`), 1)
      image.putRRset(zone, wire(`n${value}.deep.below.k.`), {
        type: 1,
        ttlSeconds: 1,
        rdata: [new Uint8Array(4)],
      })
      image.publish()
      await new Promise((resolve) => setImmediate(resolve))
    }
    t.ok((await written) > NAMES * 40)
    const read = readSnapshot(path)
    if (read?.kind !== 'read') throw new Error(read?.reason)
    const restored = restoreSnapshot(read, () => true)
    if ('kind' in restored) throw new Error(restored.reason)
    const loaded = new ZoneImage({}, restored)
    t.strictSame(printImage(loaded.reader()), want)
    // The writer's own counts are right too: everything can go.
    const id = loaded.findZone(wire('k.'))!
    for (let i = 0; i < NAMES + 500; i++) loaded.removeRRset(id, wire(`n${i}.k.`), 1)
    loaded.publish()
  }
  t.ok(compactions > 0, `${compactions} compactions meanwhile, ${value} changes`)
})

t.test('a write that fails says why', async (t) => {
  const image = new ZoneImage().capture()
  await t.rejects(writeInThread({ path: join(t.testdir({}), 'no', 'dir'), image, facts: '' }), {
    message: /ENOENT/,
  })
  await t.rejects(writeInThread({ path: t.testdir({}), image, facts: '' }), {
    message: 'it is not a regular file',
  })
})
