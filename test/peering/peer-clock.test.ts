import t from 'tap'
import { OptionCode } from '../../src/dns/iana/options.ts'
import type { Edns, EdnsOption } from '../../src/dns/message/message.ts'
import { PeerClock, readCookieTime } from '../../src/peering/peer-clock.ts'
import { FakeClock } from '../support/setup.ts'

const CLIENT = '0102030405060708'
const ASKED: EdnsOption = { code: OptionCode.COOKIE, data: Buffer.from(CLIENT, 'hex') }
const HASH = 'aabbccddeeff0011'

for (const { name, hex, time } of [
  { name: 'a server cookie', hex: `${CLIENT}010000006b49d200${HASH}`, time: 1_800_000_000 },
  { name: 'the greatest time', hex: `${CLIENT}01000000ffffffff${HASH}`, time: 0xffff_ffff },
  { name: 'the cookie of another query', hex: `0002030405060708010000006b49d200${HASH}` },
  { name: 'another version', hex: `${CLIENT}020000006b49d200${HASH}` },
  { name: 'one octet less', hex: `${CLIENT}010000006b49d200${HASH.slice(2)}` },
  { name: 'one octet more', hex: `${CLIENT}010000006b49d200${HASH}00` },
  { name: 'a client cookie alone', hex: CLIENT },
  { name: 'nothing', hex: '' },
]) {
  t.test(`the time in a reply: ${name}`, async (t) => {
    const options = [{ code: OptionCode.COOKIE, data: Buffer.from(hex, 'hex') }]
    const edns: Edns = { payloadOctets: 1232, version: 0, flags: 0, options }
    t.equal(readCookieTime(ASKED, edns), time)
  })
}

const WRAP = 2 ** 32

for (const { name, nowSeconds, timeSeconds, aheadSeconds } of [
  { name: 'equal', nowSeconds: 1_800_000_000, timeSeconds: 1_800_000_000, aheadSeconds: 0 },
  { name: 'never set', nowSeconds: 1_800_000_000, timeSeconds: 0, aheadSeconds: -1_800_000_000 },
  { name: 'after 2106', nowSeconds: WRAP + 5, timeSeconds: 5, aheadSeconds: 0 },
  { name: '2106 there, not here', nowSeconds: WRAP - 5, timeSeconds: 15, aheadSeconds: 20 },
  { name: '2106 here, not there', nowSeconds: WRAP + 5, timeSeconds: WRAP - 15, aheadSeconds: -20 },
]) {
  t.test(`the clock of a peer beside ours: ${name}`, async (t) => {
    const peer = new PeerClock()
    const clock = { now: () => nowSeconds * 1000, monotonic: () => 0 }
    t.equal(peer.note(timeSeconds, clock), aheadSeconds !== 0)
    t.equal(peer.aheadMs, aheadSeconds * 1000)
  })
}

/** Notes that a peer is ahead by these seconds, one after the other. Returns what was news, and what is known then. */
function noteAll(aheads: readonly (number | undefined)[], everyMs: number): readonly string[] {
  const clock = new FakeClock()
  const peer = new PeerClock()
  return aheads.map((ahead) => {
    clock.pass(everyMs)
    const seconds = Math.floor(clock.now() / 1000)
    const isNews = peer.note(ahead === undefined ? undefined : seconds + ahead, clock)
    return `${isNews} ${peer.aheadMs}`
  })
}

t.test('three seconds count: two peers can differ although neither differs from us', async (t) => {
  t.strictSame(noteAll([1, 9, 8, 10, 11, -9, undefined, 0], 30_000), [
    'false 1000',
    'true 9000',
    'false 9000',
    'false 9000',
    'false 9000',
    'true -9000',
    'false -9000',
    'true 0',
  ])
})

t.test('a clock that changes all the time does not cause a merge each time', async (t) => {
  const aheads = Array.from({ length: 120 }, (_, i) => (i % 2) * 20)
  const news = noteAll(aheads, 1000).filter((line) => line.startsWith('true'))
  t.ok(news.length <= 4, `${news.length} in two minutes`)
})
