import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { Random } from '../../../src/base/random.ts'
import { readSnapshot, restoreSnapshot } from '../../../src/zone/snapshot/read.ts'
import { until } from '../../support/until.ts'

// Long: it starts and kills many processes.

const KILLS = 25
/** More where most of them come too late to cut something short. */
const KILLS_MAX = 200
const NAMES = 20_000

/** A process that writes one snapshot after another, with the number of each as its facts. */
const WRITER = `
  import { writeSnapshot } from './dist/zone/snapshot/write.js'
  import { ZoneImage } from './dist/zone/image/writer.js'
  const image = new ZoneImage()
  const zone = image.addZone(new Uint8Array([1, 107, 0]))
  for (let i = 0; i < ${NAMES}; i++) {
    const label = Buffer.from('n' + i)
    const owner = new Uint8Array([label.length, ...label, 1, 107, 0])
    image.putRRset(zone, owner, { type: 1, ttlSeconds: 1, rdata: [new Uint8Array([1, 2, 3, 4])] })
  }
  image.publish()
  const captured = image.capture()
  for (let number = Number(process.argv[2]); ; number++) {
    writeSnapshot({ path: process.argv[1], image: captured, facts: String(number) })
  }
`

function startWriter(path: string, number: number): ChildProcess {
  const args = ['--input-type=module', '-e', WRITER, path, String(number)]
  return spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'inherit'] })
}

function octetsOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? -1
}

/** Another one for each snapshot that takes the place of the one before. */
function fileOf(path: string): string {
  const stats = statSync(path, { throwIfNoEntry: false })
  return stats === undefined ? '' : `${stats.ino} ${stats.mtimeMs}`
}

t.test('a kill while writing leaves the old file or the new one, whole', async (t) => {
  const path = join(t.testdir({}), 'snapshot')
  const random = new Random(3)
  let last = 0
  let cutShort = 0
  let whole = 0
  for (let kill = 0; kill < KILLS_MAX; kill++) {
    if (kill >= KILLS && cutShort > KILLS / 4) break

    const before = fileOf(path)
    const writer = startWriter(path, last + 1)
    try {
      // The first time before there is any file, later in the middle of one.
      if (kill > 0) await until(() => fileOf(path) !== before, 'a snapshot')
      const enough = random.below(Math.max(1, whole))
      await until(() => octetsOf(`${path}.next`) >= enough, 'one under way')
    } finally {
      writer.kill('SIGKILL')
    }
    await once(writer, 'exit')
    if (octetsOf(`${path}.next`) >= 0) cutShort++
    if (kill === 0 && octetsOf(path) < 0) continue
    const number = numberOf(path)
    if (!(number > last)) t.fail(`snapshot ${number} after ${last}`)
    last = number
    whole = octetsOf(path)
  }
  t.ok(cutShort > KILLS / 4, `${cutShort} writes were cut short`)
})

/** Number of the snapshot; -1 = there is none. Throws where it is not to be used. */
function numberOf(path: string): number {
  const read = readSnapshot(path)
  if (read === undefined) return -1
  if (read.kind === 'refused') throw new Error(read.reason)
  const restored = restoreSnapshot(read, () => true)
  if ('kind' in restored) throw new Error(restored.reason)
  return Number(read.facts)
}
