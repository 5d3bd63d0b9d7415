import t from 'tap'
import { InputError } from '../../../../src/base/errors.ts'
import type { SigningKey } from '../../../../src/dns/dnssec/dnskey.ts'
import { RRType } from '../../../../src/dns/iana/types.ts'
import { CLIENTS } from '../../../steering/stage.ts'
import { until } from '../../../support/until.ts'
import { readRRset } from '../../../support/zone-contents.ts'
import { wire } from '../../../support/zone-names.ts'
import { keysOf, newCsk, SignedStage, TestKeys } from './stage.ts'

const KEY = await newCsk()
/** A key that fails to sign. */
const BROKEN: SigningKey = Object.defineProperty({ ...KEY }, 'privateKey', {
  get() {
    throw new Error('broken')
  },
})

/** A record of APEX, or of SECOND. */
function given(zone: 'k' | 'second', last: number) {
  const domain = zone === 'k' ? 'k.example.com' : 'second.example'
  return { name: zone, rootHost: domain, endpoints: [`a.${domain} A 192.0.2.${last}`] }
}

/** The last octet of the address that is served; undefined = none. */
function served({ image }: SignedStage, zone: 'k' | 'second'): number | undefined {
  const name = wire(zone === 'k' ? 'a.k.example.com.' : 'a.second.example.')
  return readRRset(image.reader(), name, RRType.A)?.rdata[0]?.[3]
}

async function open(first: TestKeys, second: TestKeys): Promise<SignedStage> {
  const givens = [given('k', 1), given('second', 1)]
  return await SignedStage.open({ keys: first, secondKeys: second }, givens)
}

async function pass({ clock, timers }: SignedStage): Promise<void> {
  clock.pass(1000)
  await timers.advance(1000)
}

async function untilServed(stage: SignedStage, zone: 'k' | 'second', last: number): Promise<void> {
  await until(async () => {
    await pass(stage)
    return served(stage, zone) === last
  }, `${last} in ${zone}`)
}

t.test('a zone that fails to sign does not hold up the others', async (t) => {
  const second = new TestKeys(keysOf([KEY]))
  const stage = await open(new TestKeys(keysOf([KEY])), second)
  const [first, other] = stage.zones.zones
  second.change(keysOf([BROKEN]))
  await pass(stage)
  const serial = other!.serial
  for (const last of [2, 3, 4]) {
    stage.put(given('second', last))
    stage.put(given('k', last))
    await untilServed(stage, 'k', last)
    t.equal(served(stage, 'second'), 1, 'its last signed version is served')
    t.strictSame(stage.faultsOf(wire('a.k.example.com.'), RRType.A, CLIENTS.nowhere), [])
    t.equal(other!.serial, serial)
  }
  t.match(other!.signatures!.fault, /broken/)
  t.equal(first!.signatures!.fault, '')
  t.ok(stage.image.isPublished)
  second.change(keysOf([KEY]))
  await untilServed(stage, 'second', 4)
  t.ok(other!.serial > serial)
  stage.stop()
})

t.test('a zone that was never signed is not served, and the others are', async (t) => {
  const second = new TestKeys(keysOf([BROKEN]))
  const stage = await open(new TestKeys(keysOf([KEY])), second)
  const [, other] = stage.zones.zones
  t.equal(served(stage, 'k'), 1)
  t.equal(stage.image.findZone(other!.apex), undefined)
  t.equal(stage.zones.facts.length, 1, 'a snapshot does not have it')
  t.notOk(other!.isServed)
  stage.put(given('second', 2))
  stage.put(given('k', 2))
  await untilServed(stage, 'k', 2)
  for (let seconds = 0; seconds < 90; seconds++) await pass(stage)
  t.equal(served(stage, 'second'), undefined)
  second.change(keysOf([KEY]))
  await untilServed(stage, 'second', 2)
  t.ok(other!.isServed)
  t.equal(stage.zones.facts.length, 2)
  stage.stop()
})

t.test('an image that is full while held changes are put, or get a serial', async (t) => {
  for (const type of [RRType.A, RRType.SOA]) {
    const second = new TestKeys(keysOf([KEY]))
    const stage = await open(new TestKeys(keysOf([KEY])), second)
    const { image } = stage
    second.change(keysOf([BROKEN]))
    stage.put(given('second', 2))
    await pass(stage)
    const putRRset = image.putRRset.bind(image)
    let faults = 0
    image.putRRset = (zone, owner, data) => {
      if (zone !== image.findZone(wire('second.example.')) || data.type !== type || faults > 0)
        return putRRset(zone, owner, data)
      faults++
      throw new InputError(undefined, 'the image is full')
    }
    second.change(keysOf([KEY]))
    await untilServed(stage, 'second', 2)
    t.equal(faults, 1)
    const soa = readRRset(image.reader(), wire('second.example.'), RRType.SOA)!.rdata[0]!
    const serial = Buffer.from(soa).readUInt32BE(soa.length - 20)
    t.equal(serial, stage.zones.zones[1]!.serial, 'the SOA has the serial of the version')
    stage.put(given('k', 2))
    await untilServed(stage, 'k', 2)
    t.strictSame(stage.faultsOf(wire('a.k.example.com.'), RRType.A, CLIENTS.nowhere), [])
    stage.stop()
  }
})

t.test('an image that is full while content is taken back is not published', async (t) => {
  const second = new TestKeys(keysOf([KEY]))
  const stage = await open(new TestKeys(keysOf([KEY])), second)
  const { image } = stage
  second.change(keysOf([BROKEN]))
  const { updateChain } = image
  image.updateChain = () => {
    throw new InputError(undefined, 'the image is full')
  }
  stage.put(given('second', 2))
  await pass(stage)
  t.notOk(image.isPublished)
  t.equal(served(stage, 'second'), 1)
  image.updateChain = updateChain
  stage.put(given('k', 2))
  await untilServed(stage, 'k', 2)
  t.equal(served(stage, 'second'), 1)
  second.change(keysOf([KEY]))
  await untilServed(stage, 'second', 2)
  stage.stop()
})
