import t from 'tap'
import { Query } from '../../../src/dns/message/query.ts'
import { VerifyBudget } from '../../../src/plugins/tsig/verify-budget.ts'
import { FakeClock } from '../../support/setup.ts'

const UNKNOWN_PER_SECOND = 20
const KNOWN_PER_SECOND = 500
const ALL_PER_SECOND = 1000

/** Signatures per second of a flood, all wrong. */
const FLOOD_PER_SECOND = 20_000
const FLOOD_SECONDS = 5
const PEER = [192, 0, 2, 1]

function from(octets: readonly number[]): Query {
  const query = new Query()
  query.peerFamily = 1
  query.peerAddress.set(octets)
  return query
}

t.test('during a flood, signatures are verified at the stated rates', async (t) => {
  for (const [what, addressOf, perSecond] of [
    ['a peer whose address is forged', () => PEER, KNOWN_PER_SECOND],
    ['a network without a peer', () => [198, 51, 100, 1], UNKNOWN_PER_SECOND],
    ['many networks', (i: number) => [10, i & 255, (i >> 8) & 255, 1], ALL_PER_SECOND],
  ] as const) {
    const clock = new FakeClock()
    const budget = new VerifyBudget(clock)
    const peer = from(PEER)
    t.ok(budget.take(peer))
    budget.succeed(peer)
    const query = new Query()
    query.peerFamily = 1
    let verified = 0
    for (let i = 0; i < FLOOD_SECONDS * FLOOD_PER_SECOND; i++) {
      clock.monotonicMs += 1000 / FLOOD_PER_SECOND
      query.peerAddress.set(addressOf(i))
      // The first second has the credit of the one before, too.
      if (budget.take(query) && i >= FLOOD_PER_SECOND) verified++
    }
    const rate = verified / (FLOOD_SECONDS - 1)
    t.ok(rate > 0.9 * perSecond && rate < 1.1 * perSecond, `${what}: ${rate} per second`)
  }
})
