import t from 'tap'
import { OptionCode } from '../../src/dns/iana/options.ts'
import type { Edns, EdnsOption } from '../../src/dns/message/message.ts'
import { PeerClock, readCookieTime } from '../../src/peering/peer-clock.ts'

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
    const clock = new PeerClock()
    t.equal(clock.note(timeSeconds, nowSeconds * 1000), aheadSeconds !== 0)
    t.equal(clock.aheadMs, aheadSeconds * 1000)
  })
}

t.test(
  'a change counts from three seconds on: of two peers, each may differ little from us',
  async (t) => {
    const clock = new PeerClock()
    const nowSeconds = 1_800_000_000
    const noted = [1, 9, 8, 10, 11, -9, undefined, 0].map((ahead) => {
      const isChange = clock.note(
        ahead === undefined ? undefined : nowSeconds + ahead,
        nowSeconds * 1000,
      )
      return `${isChange} ${clock.aheadMs}`
    })
    t.strictSame(noted, [
      'false 1000',
      'true 9000',
      'false 9000',
      'false 9000',
      'false 9000',
      'true -9000',
      'false -9000',
      'true 0',
    ])
  },
)
