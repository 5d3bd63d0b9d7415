import t from 'tap'
import { scanName } from '../../../src/dns/name/name.ts'
import { Histories } from '../../../src/plugins/transfer/histories.ts'
import type { ZoneVersion } from '../../../src/xfr/journal/version-view.ts'
import { ZoneVersions } from '../../../src/xfr/zone-versions.ts'
import { recordLog } from '../../support/recorded-log.ts'
import { FakeClock } from '../../support/setup.ts'
import { until } from '../../support/until.ts'
import { imageOf } from '../../support/zone-version.ts'

const APEX = 'example.org.'
const zone = scanName(APEX)!

/** A clock that fails when the test wants it. */
class FailingClock extends FakeClock {
  isBroken = false

  override monotonic(): number {
    if (this.isBroken) throw new Error('no time left')
    return super.monotonic()
  }
}

function version(serial: number): ZoneVersion {
  const text = `@ 60 SOA ns host ${serial} 2 3 4 5\n@ 60 NS ns\nn${serial} 60 A 192.0.2.1\n`
  return imageOf(text, APEX).version
}

t.test('a failure costs the differences up to it, and nothing else', async (t) => {
  const { lines, log } = recordLog()
  const clock = new FailingClock()
  const versions = new ZoneVersions()
  const serials: number[] = []
  const onVersion = ({ serial }: ZoneVersion): void => void serials.push(serial)
  const histories = new Histories(versions, clock, () => true, onVersion, log)
  const source = versions.source()
  const put = async (serial: number): Promise<void> => {
    source.put(version(serial))
    await until(() => serials.includes(serial), `version ${serial}`)
  }
  await put(1)
  await put(2)
  t.equal(histories.since(zone, 1)?.steps?.length, 1)
  clock.isBroken = true
  await put(3)
  t.match(lines.join(), 'Comparing two versions of a zone failed')
  t.match(lines.join(), 'no time left')
  t.equal(histories.since(zone, 2)?.version.serial, 3)
  t.equal(histories.since(zone, 2)?.steps, undefined)
  clock.isBroken = false
  await put(4)
  t.equal(histories.since(zone, 3)?.steps?.length, 1)
})

t.test('a version that moves to other memory keeps its differences', async (t) => {
  const versions = new ZoneVersions()
  const serials: number[] = []
  const onVersion = ({ serial }: ZoneVersion): void => void serials.push(serial)
  const { log } = recordLog()
  const histories = new Histories(versions, new FakeClock(), () => true, onVersion, log)
  const source = versions.source()
  source.put(version(1))
  source.put(version(2))
  await until(() => serials.includes(2), 'version 2')
  const moved = version(2)
  source.put(moved, [])
  await until(() => histories.since(zone, 1)?.version === moved, 'the version that moved')
  t.equal(histories.since(zone, 1)?.steps?.length, 1)
  t.same(serials, [1, 2], 'secondaries are not notified')
  source.put(version(3))
  await until(() => serials.includes(3), 'version 3')
  t.equal(histories.since(zone, 1)?.steps?.length, 2)
})
