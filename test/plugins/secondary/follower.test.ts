import t from 'tap'
import { scanName } from '../../../src/dns/name/name.ts'
import type { Directive } from '../../../src/plugin/directive.ts'
import { SharedFileZones } from '../../../src/plugin/shared-file-zones.ts'
import { Follower, TICK_MS } from '../../../src/plugins/secondary/follower.ts'
import { SecondaryZone } from '../../../src/plugins/secondary/secondary-zone.ts'
import { FakeTimers, SetUp } from '../../support/setup.ts'

/** A zone that is never due, and counts how often it was looked at. */
class WatchedZone extends SecondaryZone {
  looks = 0

  override isDue(): boolean {
    this.looks++
    return false
  }
}

t.test('however many NOTIFYs come, zones are looked through once a tick', async (t) => {
  const timers = new FakeTimers()
  const made: { follower: Follower; zones: WatchedZone[] }[] = []
  const directive: Directive = {
    name: 'following',
    setup: (c) => {
      c.dispenser.next()
      const zones = Array.from({ length: 5 }, (_, i) => {
        return new WatchedZone({
          zone: scanName(`z${i}.example.`)!,
          primaries: [{ host: '127.0.0.1', port: 53 }],
          place: 'here',
          sourceFor: () => '',
          key: () => undefined,
          nsInAuthority: true,
          clock: c.clock,
          timers,
          log: c.log,
          random: () => 0,
          onTransfer: () => {},
        })
      })
      const follower = new Follower(c, new SharedFileZones(c), timers)
      follower.add(zones)
      made.push({ follower, zones })
    },
  }
  const c = new SetUp(directive, 'following')
  const { follower, zones } = made[0]!
  const looks = (): number[] => zones.map((zone) => zone.looks)
  follower.start()
  t.teardown(() => follower.stop())
  t.strictSame(looks(), [1, 1, 1, 1, 1])
  for (let i = 0; i < 100; i++) follower.takeNotice(`${i % 5} 7 127.0.0.1`)
  t.strictSame(looks(), [1, 1, 1, 1, 1])
  t.equal(await c.metric('coredns_secondary_notifies_total'), 100)
  await timers.advance(TICK_MS)
  t.strictSame(looks(), [2, 2, 2, 2, 2])
})
