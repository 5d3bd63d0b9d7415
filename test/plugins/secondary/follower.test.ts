import t from 'tap'
import { ThreadedFileZones } from '../../../src/authority/threaded-file-zones.ts'
import { scanName } from '../../../src/dns/name/name.ts'
import type { Directive } from '../../../src/plugin/directive.ts'
import {
  Follower,
  TICK_MS,
  TRANSFERS_PER_HOST_MAX,
} from '../../../src/plugins/secondary/follower.ts'
import {
  type SecondaryOptions,
  SecondaryZone,
} from '../../../src/plugins/secondary/secondary-zone.ts'
import { FakeTimers, SetUp } from '../../support/setup.ts'

/** A zone that is never due, and counts how often it was looked at. */
class WatchedZone extends SecondaryZone {
  looks = 0

  override isDue(): boolean {
    this.looks++
    return false
  }
}

/** A zone that is due until it is asked for, which takes for ever. */
class HangingZone extends SecondaryZone {
  readonly #dueMs: number
  readonly #asked: number[]
  #isAsked = false

  constructor(options: SecondaryOptions, dueMs: number, asked: number[]) {
    super(options)
    this.#dueMs = dueMs
    this.#asked = asked
  }

  override get dueMs(): number {
    return this.#dueMs
  }

  override isDue(): boolean {
    return !this.#isAsked
  }

  override refresh(): Promise<boolean> {
    this.#isAsked = true
    this.#asked.push(this.#dueMs)
    return new Promise(() => {})
  }
}

/** A follower of `count` zones, each as `make` has it. */
function setUp<Z extends SecondaryZone>(
  count: number,
  make: (options: SecondaryOptions, index: number) => Z,
) {
  const timers = new FakeTimers()
  const made: { follower: Follower; zones: Z[] }[] = []
  const directive: Directive = {
    name: 'following',
    setup: (c) => {
      c.dispenser.next()
      const options = {
        place: 'here',
        sourceFor: () => '',
        key: () => undefined,
        nsInAuthority: true,
        clock: c.clock,
        timers,
        log: c.log,
        random: () => 0,
        onTransfer: () => {},
      }
      const zones = Array.from({ length: count }, (_, i) => {
        const host = i < 10 ? '127.0.0.1' : '127.0.0.2'
        const zone = scanName(`z${i}.example.`)!
        return make({ ...options, zone, primaries: [{ host, port: 53 }] }, i)
      })
      const follower = new Follower(c, new ThreadedFileZones(c, timers), timers)
      follower.add(zones)
      made.push({ follower, zones })
    },
  }
  const c = new SetUp(directive, 'following')
  return { ...made[0]!, c, timers }
}

t.test('however many NOTIFYs come, zones are looked through once a tick', async (t) => {
  const { follower, zones, c, timers } = setUp(5, (options) => new WatchedZone(options))
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

t.test('zones that have waited longest go first, and one primary has so many', async (t) => {
  const asked: number[] = []
  const { follower } = setUp(20, (options, i) => new HangingZone(options, 100 - i, asked))
  follower.start()
  t.teardown(() => follower.stop())
  t.strictSame(asked, [81, 82, 83, 84, 91, 92, 93, 94])
  t.equal(asked.length, 2 * TRANSFERS_PER_HOST_MAX)
})
