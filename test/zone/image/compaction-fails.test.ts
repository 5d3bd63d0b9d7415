import t from 'tap'
import { InputError } from '../../../src/base/errors.ts'
import { ZoneImage } from '../../../src/zone/image/writer.ts'
import { readRRset } from '../../support/zone-contents.ts'
import { wire } from '../../support/zone-names.ts'

/*
 * A compaction needs a second arena. If there is no memory for it, the image continues without: nothing is lost, and
 * no publish fails.
 */

const TYPE = 65280
const APEX = wire('example.')
const NAMES = Array.from({ length: 400 }, (_, i) => wire(`n${i}.example.`))
const SIZES = { initialOctets: 65_536, compactOctets: 65_536, compactStepOctets: 4096 }

/** Puts a record whose octets are all `value` at each name. */
function fill(image: ZoneImage, names: readonly Uint8Array[], value: number): void {
  const zone = image.findZone(APEX)!
  const data = { type: TYPE, ttlSeconds: 1, rdata: [new Uint8Array(200).fill(value)] }
  for (const name of names) image.putRRset(zone, name, data)
}

function values(image: ZoneImage): Set<number | undefined> {
  const reader = image.reader()
  return new Set(NAMES.map((name) => readRRset(reader, name, TYPE)?.rdata[0]?.[0]))
}

/** Lets no new shared buffer be made while `run` runs. */
function withoutMemory(run: () => void): void {
  const real = globalThis.SharedArrayBuffer
  globalThis.SharedArrayBuffer = class {
    constructor() {
      throw new RangeError('Array buffer allocation failed')
    }
  } as unknown as SharedArrayBufferConstructor
  try {
    run()
  } finally {
    globalThis.SharedArrayBuffer = real
  }
}

function imageWithGarbage(): ZoneImage {
  const image = new ZoneImage(SIZES)
  image.addZone(APEX)
  for (let i = 0; i < 2; i++) {
    fill(image, NAMES, i)
    image.publish()
  }
  return image
}

t.test('without memory for a second arena, publishing goes on, and compacts later', async (t) => {
  const image = imageWithGarbage()
  let swaps = 0
  image.onSwap(() => swaps++)
  withoutMemory(() => {
    for (let i = 2; i < 6; i++) {
      fill(image, NAMES, i)
      image.publish()
      t.same([...values(image)], [i])
    }
  })
  t.equal(swaps, 0, 'it could not compact')
  for (let i = 6; swaps === 0 && i < 60; i++) {
    fill(image, NAMES, i)
    image.publish()
    t.same([...values(image)], [i])
  }
  t.equal(swaps, 1, 'it compacts when there is memory and twice the garbage')
})

t.test('a copy that becomes too large is given up, and nothing is lost', async (t) => {
  // The copy of a name has all its RRsets, whichever changed: it can need three times the memory of the image.
  const owners = NAMES.slice(0, 20)
  const large = [1, 2, 3, 4].map((n) => TYPE + n)
  const maxOctets = 1_150_000
  const image = new ZoneImage({ ...SIZES, maxOctets })
  const zone = image.addZone(APEX)
  const put = (owner: Uint8Array, type: number, octets: number, value: number) => {
    const rdata = [new Uint8Array(octets).fill(value)]
    image.putRRset(zone, owner, { type, ttlSeconds: 1, rdata })
  }
  for (const value of [1, 2]) {
    for (const owner of owners) for (const type of large) put(owner, type, 5000, value)
    image.publish()
  }
  t.ok(image.stats.garbageOctets > SIZES.compactOctets)
  let swaps = 0
  image.onSwap(() => swaps++)
  let last = 0
  const edit = () => {
    for (let i = 1; i < 400; i++) {
      for (const owner of owners) put(owner, TYPE, 1, i & 0xff)
      image.publish()
      last = i & 0xff
    }
  }
  t.throws(edit, InputError, 'in the end the arena is full')
  t.equal(swaps, 0)
  const reader = image.reader()
  const found = owners.flatMap((owner) => {
    return large.map((type) => readRRset(reader, owner, type)?.rdata[0]?.[0])
  })
  t.same([...new Set(found)], [2])
  t.equal(readRRset(reader, owners[0]!, TYPE)?.rdata[0]?.[0], last)
})
