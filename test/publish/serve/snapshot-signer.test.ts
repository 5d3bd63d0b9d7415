import t from 'tap'
import { MetricsRegistry } from '../../../src/base/telemetry/metrics.ts'
import { RRType } from '../../../src/dns/iana/types.ts'
import { SnapshotSigner } from '../../../src/publish/serve/snapshot-signer.ts'
import { DEFAULT_SIGNING, type ZoneKeys } from '../../../src/signing/zone-keys.ts'
import { CLIENTS } from '../../steering/stage.ts'
import { recordLog } from '../../support/recorded-log.ts'
import { FakeTimers } from '../../support/setup.ts'
import { until } from '../../support/until.ts'
import { readRRset } from '../../support/zone-contents.ts'
import { wire } from '../../support/zone-names.ts'
import { APEX } from '../record-zone-stage.ts'
import {
  keysOf,
  leftSeconds,
  newCsk,
  optionsOf,
  SignedStage,
  TestKeys,
} from '../zone/signing/stage.ts'

const DAY_MS = 86_400_000
const RECORDS = { endpoints: ['a.k.example.com A 192.0.2.1', '*.w.k.example.com TXT text'] }
const NAMES = ['k', 'a.k', 'x.w.k', 'nope.k'].map((label) => wire(`${label}.example.com.`))
const KEY = await newCsk()

/** A signed zone of which only the image is left, as of a snapshot. `now`: its keys at the restart. */
async function open(keys = new TestKeys(keysOf([KEY])), now?: ZoneKeys) {
  const stage = await SignedStage.open({ keys }, [RECORDS])
  stage.stop()
  if (now !== undefined) keys.change(now)
  const { image, serials, clock, zones } = stage
  const { log, lines } = recordLog()
  const timers = new FakeTimers()
  const metrics = new MetricsRegistry()
  const parts = {
    image,
    serials,
    serialFile: undefined,
    place: 'here',
    clock,
    timers,
    log,
    metrics,
  }
  const signer = new SnapshotSigner(optionsOf({ keys }), zones.facts, parts)
  const faults = (): string[] => {
    return NAMES.flatMap((name) => {
      return [RRType.A, RRType.SOA, RRType.TXT, RRType.DNSKEY].flatMap((type) => {
        return stage.faultsOf(name, type, CLIENTS.nowhere)
      })
    })
  }
  const serial = (): number => signer.serialOf('k.example.com.')!
  return { stage, keys, image, signer, timers, clock, lines, faults, serial }
}

t.test('signatures of a snapshot are made again before they expire', async (t) => {
  const { stage, image, signer, timers, clock, lines, faults, serial } = await open()
  const [{ version }, before] = [image, serial()]
  await timers.advance(60_000)
  t.equal(image.version, version, 'what is good stays')
  let last = before
  for (let days = 4; days <= 40; days += 4) {
    clock.pass(4 * DAY_MS)
    t.strictSame(faults(), [], `after ${days} days`)
    await until(async () => {
      await timers.advance(600_000)
      return leftSeconds(stage) >= DEFAULT_SIGNING.refreshSeconds
    }, 'new signatures')
    t.ok(serial() >= last)
    last = serial()
  }
  t.ok(last > before)
  t.match(
    lines.at(-1),
    /zone k\.example\.com\.: signatures of the snapshot were made again, serial/,
  )
  await signer.close()
  const { keys, table, serials } = stage
  const earlier = signer.facts
  const next = await SignedStage.open({ keys, table, serials, clock, image, earlier }, [RECORDS])
  t.equal(next.made, 0, 'the records use the signatures again')
  t.equal(next.serial, last)
  t.strictSame(faults(), [])
})

t.test('a snapshot with keys that are no longer those of the zone', async (t) => {
  const other = await newCsk()
  const table = [
    { what: 'a key was only published', before: keysOf([KEY], [other]) },
    { what: 'a key signed', before: keysOf([other], [KEY]) },
    { what: 'both signed', before: keysOf([KEY, other]) },
    { what: 'a key is new', before: keysOf([KEY]), now: keysOf([KEY], [other]) },
  ]
  for (const { what, before, now = keysOf([KEY]) } of table) {
    const { stage, image, signer, faults, serial } = await open(new TestKeys(before), now)
    const { serial: oldSerial } = stage
    const text = (rdata: readonly Uint8Array[]): string => {
      return String(rdata.map((one) => Buffer.from(one).toString('hex')).sort())
    }
    const isServed = (): boolean => {
      const served = readRRset(image.reader(), APEX, RRType.DNSKEY)!.rdata
      return text(served) === text(now.dnskeys)
    }
    await until(isServed, `${what}: the present keys`)
    t.strictSame(faults(), [], what)
    t.ok(serial() > oldSerial, what)
    await signer.close()
  }
})

t.test('a snapshot that is older than its signatures', async (t) => {
  const { timers, clock, faults } = await open()
  clock.pass(0)
  t.strictSame(faults(), [])
  clock.nowMs += 30 * DAY_MS
  t.not(faults().length, 0)
  await timers.advance(60_000)
  t.not(faults().length, 0, 'the clock may be wrong')
  clock.pass(3_600_000)
  await timers.advance(10_000)
  await until(async () => {
    await timers.advance(1000)
    return faults().length === 0
  }, 'new signatures')
})

t.test('a snapshot without usable keys keeps its signatures, and says why', async (t) => {
  const { stage, keys, timers, clock, lines, faults } = await open()
  keys.change(undefined)
  clock.pass(10 * DAY_MS)
  await timers.advance(60_000)
  t.strictSame(faults(), [])
  t.match(lines.at(-1), /can't be signed, so its last signed version is served: .* no key/)
  keys.change(keysOf([KEY]))
  await until(async () => {
    await timers.advance(1000)
    return leftSeconds(stage) >= DEFAULT_SIGNING.refreshSeconds
  }, 'new signatures')
  await timers.advance(1000)
  t.match(lines.join('\n'), /can be signed again/)
})

t.test(
  'a signer that fails leaves the last version, and tries again, later each time',
  async (t) => {
    const { keys, image, timers, clock, lines, faults, signer, serial } = await open()
    const [{ version }, before] = [image, serial()]
    const { signatures } = signer.zones[0]!
    const other = { ...(await newCsk()), privateKey: {} as never }
    keys.change(keysOf([other], [KEY]))
    const pass = async (milliseconds: number): Promise<void> => {
      clock.pass(milliseconds)
      await timers.advance(milliseconds)
    }
    let tries = 0
    for (let seconds = 0; seconds < 180; seconds++) {
      const { fault } = signatures
      await pass(1000)
      if (fault !== '' && signatures.isRetryDue) tries++
      await until(() => image.isPublished, 'the last version')
    }
    t.strictSame(faults(), [])
    t.equal(serial(), before)
    t.ok(image.version > version)
    t.equal(lines.filter((line) => /k\.example\.com\. can't be signed/.test(line)).length, 1)
    t.ok(tries < 12, `${tries} tries`)
    keys.change(keysOf([KEY]))
    await pass(60_000)
    await until(async () => {
      await pass(1000)
      return signatures.fault === ''
    }, 'the good key')
    t.strictSame(faults(), [])
    t.ok(serial() > before)
  },
)
