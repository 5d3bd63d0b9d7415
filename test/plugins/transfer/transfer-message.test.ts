import t from 'tap'
import { Random } from '../../../src/base/random.ts'
import { RRType } from '../../../src/dns/iana/index.ts'
import { parseMessage } from '../../../src/dns/message/parse-message.ts'
import { RecordList, WholeZone } from '../../../src/plugins/transfer/transfer-content.ts'
import { TransferMessage } from '../../../src/plugins/transfer/transfer-message.ts'
import type { RecordView } from '../../../src/xfr/journal/record-view.ts'
import { VersionView } from '../../../src/xfr/journal/version-view.ts'
import { imageOf, printView } from '../../support/zone-version.ts'

const HEADER_OCTETS = 12
/** More than the largest record of these zones. */
const LIMIT_MIN = 400

/** Owners and targets: inside the zone, outside of it, and names that only look as if they ended with it. */
function names(apex: string, random: Random): string[] {
  const inside = apex === '.' ? '' : apex
  const pool = ['a', 'b.a', '*.w', 'UPPER', 'x'.repeat(60), 'y'.repeat(60)]
  const owners = pool.map((name) => `${name}.${inside}`)
  return owners.filter(() => random.below(4) > 0)
}

function randomZone(apex: string, random: Random): string {
  const targets = [...names(apex, random), 'a.b.test.', 'notexample.org.', 'www.EXAMPLE.org.', '.']
  const target = (): string => targets[random.below(targets.length)]!
  const lines = [`${apex} 60 SOA ${target()} ${target()} 1 2 3 4 5`, `${apex} 60 NS ${target()}`]
  const kinds = [
    () => ['A', `192.0.2.${random.below(256)}`],
    () => ['MX', `${random.below(9)} ${target()}`],
    () => ['NS', target()],
    () => ['PTR', target()],
    () => ['SRV', `1 2 3 ${target()}`],
    () => ['TXT', `"${'t'.repeat(random.below(250))}"`],
    () => ['HTTPS', `1 ${target()}`],
  ]
  for (const owner of names(apex, random)) {
    if (random.below(5) === 0) lines.push(`${owner} ${random.below(99)} CNAME ${target()}`)
    else
      for (let i = random.below(12); i > 0; i--)
        lines.push([owner, 60, ...kinds[random.below(kinds.length)]!()].join(' '))
  }
  return `${lines.join('\n')}\n`
}

/** Returns the records of all messages, as text, after checking each message. */
function sent(view: VersionView, limit: number, content: WholeZone | RecordList): string[] {
  const message = new TransferMessage(view.zone)
  const texts: string[] = []
  for (let hasMore = true; hasMore; ) {
    const out = new Uint8Array(limit)
    out[5] = 1
    out.set(view.zone, HEADER_OCTETS)
    const start = HEADER_OCTETS + view.zone.length + 4
    out.set([0, RRType.AXFR, 0, 1], start - 4)
    message.begin(out, start, limit)
    hasMore = content.write(message)
    out[6] = message.count >> 8
    out[7] = message.count & 0xff
    const parsed = parseMessage(out.subarray(0, message.at))
    if (message.count === 0 || parsed === undefined) throw new Error('no message')
    for (const { owner, type, ttlSeconds, rdata } of parsed.answer) {
      const rest = { rdata, rdataOffset: 0, rdataOctets: rdata.length }
      texts.push(printView({ owner, ownerOffset: 0, type, ttlSeconds, ...rest }))
    }
  }
  return texts
}

t.test('messages of any size have each record of random zones once, in order', async (t) => {
  const random = new Random(7)
  for (let round = 0; round < 300; round++) {
    const apex = ['example.org.', '.', 'o.', 'a.b.c.example.org.'][round % 4]!
    const { version } = imageOf(randomZone(apex, random), apex)
    const view = VersionView.open(version)!
    const soa = view.soa()!
    const content = Array.from(view.content(), printView)
    const limit = LIMIT_MIN + random.below(1000)
    const whole = sent(view, limit, new WholeZone(soa, view.cursor()))
    const expected = [printView(soa), ...content, printView(soa)]
    t.equal(whole.join('\n'), expected.join('\n'), `round ${round}`)
    const records: RecordView[] = Array.from(view.content(), (record) => ({ ...record }))
    const listed = sent(view, limit, new RecordList([soa, ...records].values()))
    t.equal(listed.join('\n'), expected.slice(0, -1).join('\n'), `list, round ${round}`)
  }
})

t.test('a later version does not change a transfer that has begun', async (t) => {
  const { image, version } = imageOf('@ 60 SOA ns host 1 2 3 4 5\n@ 60 NS ns\n', 'example.org.')
  const view = VersionView.open(version)!
  const zone = image.findZone(version.zone)!
  const cursor = view.cursor()
  for (const rdata of [1, 2]) {
    const data = { type: RRType.NS, ttlSeconds: 60, rdata: [new Uint8Array([1, 96 + rdata, 0])] }
    image.putRRset(zone, version.zone, data)
    image.publish()
  }
  const texts = sent(view, LIMIT_MIN, new WholeZone(view.soa()!, cursor))
  t.strictSame(texts.slice(1, -1), ['example.org. 60 NS ns.example.org.'])
})
