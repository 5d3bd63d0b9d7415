import t, { type Test } from 'tap'
import { systemClock } from '../../src/base/clock.ts'
import type { Message, ResourceRecord } from '../../src/dns/message/message.ts'
import { scanName } from '../../src/dns/name/name.ts'
import { HMAC_SHA256 } from '../../src/dns/tsig/algorithm.ts'
import { createTsigKey, type TsigKey } from '../../src/dns/tsig/key.ts'
import { findTsig, parseTsig } from '../../src/dns/tsig/record.ts'
import { ReplySigner } from '../../src/dns/tsig/reply-signer.ts'
import { PeerFollower } from '../../src/peering/peer.ts'
import { peerRecord, record } from '../support/exported-zone.ts'
import { framed, HostilePeer, type Hostility, replyTo } from '../support/hostile-peer.ts'
import { endpoint, targetsOf } from '../support/peer-text.ts'
import { recordLog } from '../support/recorded-log.ts'
import { FakeClock, FakeTimers } from '../support/setup.ts'
import { until } from '../support/until.ts'

// Own process: it measures the memory of the process.
// Long: it attacks servers for tens of seconds.

const HOST = 'app.k.example.com'
const MIB = 1024 * 1024
/** Memory that one attack may cost, beside what was there: most of it is what Node makes of a stream. */
const MEMORY_MAX = 400 * MIB

function soa(serial: number): ResourceRecord {
  return record('kdrnt.', 'SOA', `ns1.kdrnt. hostmaster.kdrnt. ${serial} 7200 1800 86400 60`)
}

/** A peer that behaves until a test changes it: serial 1 with one endpoint. */
class Behaving implements Hostility {
  serial = 1

  datagram(query: Message): Uint8Array | undefined {
    return replyTo(query, [soa(this.serial)])
  }

  *stream(query: Message): Iterable<Uint8Array> {
    yield framed(replyTo(query, [soa(1), peerRecord(endpoint()), soa(1)]))
  }
}

async function setUp(t: Test, key?: TsigKey, hostility: Hostility = new Behaving()) {
  const peer = await HostilePeer.open(t, hostility)
  const clock = new FakeClock()
  const timers = new FakeTimers()
  const { lines, log } = recordLog()
  const address = { host: '127.0.0.1', port: peer.port }
  const follower = new PeerFollower({ peer: address, key, clock, timers, log, random: () => 0 })
  t.teardown(() => follower.close())
  const pass = async (seconds: number): Promise<void> => {
    clock.monotonicMs += seconds * 1000
    clock.nowMs += seconds * 1000
    await timers.advance(seconds * 1000)
    await follower.settled()
  }
  const targets = () => follower.siteStatesOf(HOST).flatMap(({ endpoints }) => targetsOf(endpoints))
  follower.start()
  await pass(0)
  return { peer, clock, timers, follower, lines, pass, targets }
}

/** Replies to a transfer that begin as they should and go on with `messages`. */
function endless(messages: (query: Message) => Iterable<Uint8Array>): Hostility {
  return {
    datagram: (query) => replyTo(query, [soa(2)]),
    *stream(query) {
      yield framed(replyTo(query, [soa(2)]))
      yield* messages(query)
    },
  }
}

/** A message of that many records. */
function fill(query: Message, count: number, make: (i: number) => ResourceRecord): Uint8Array {
  return framed(
    replyTo(
      { ...query, question: undefined },
      Array.from({ length: count }, (_, i) => make(i)),
    ),
  )
}

/**
 * A message of `count` CNAMEs in 14 octets each, which are half a kilobyte each once names are written out: their owner and
 * target are one long name that is written once.
 */
function bomb(query: Message): Uint8Array {
  const label = Buffer.concat([Buffer.of(60), Buffer.alloc(60, 0x61)])
  const long = Buffer.concat([
    label,
    label,
    label,
    label,
    Buffer.of(5),
    Buffer.from('kdrnt'),
    Buffer.of(0),
  ])
  const count = 4600
  const first = Buffer.concat([long, Buffer.of(0, 5, 0, 1, 0, 0, 0, 60, 0, 2, 0xc0, 12)])
  const other = Buffer.of(0xc0, 12, 0, 5, 0, 1, 0, 0, 0, 60, 0, 2, 0xc0, 12)
  const head = Buffer.of(
    query.id >> 8,
    query.id & 255,
    0x84,
    0,
    0,
    0,
    count >> 8,
    count & 255,
    0,
    0,
    0,
    0,
  )
  return framed(Buffer.concat([head, first, ...Array.from({ length: count - 1 }, () => other)]))
}

const manyRecords = (query: Message): Uint8Array =>
  fill(query, 400, (i) => peerRecord(endpoint({ site: `s${i}`, targets: ['192.0.2.9'] })))
const longText = (query: Message): Uint8Array =>
  fill(query, 1, () => ({ ...peerRecord(endpoint()), rdata: new Uint8Array(64_000).fill(249) }))

/** The same message over and over. */
function* again(message: Uint8Array): Generator<Uint8Array> {
  for (;;) yield message
}

const ATTACKS: readonly {
  readonly name: string
  readonly messages: (query: Message) => Iterable<Uint8Array>
  readonly fault: RegExp
}[] = [
  {
    name: 'a zone without end, of useless records',
    messages: (query) => again(fill(query, 2500, () => record('n.kdrnt.', 'A', '192.0.2.1'))),
    fault: /has more than 3000000 records/,
  },
  {
    name: 'compressed names that are many times as long',
    messages: (query) => again(bomb(query)),
    fault: /has more than 536870912 octets/,
  },
  {
    name: 'endpoints of many sites without end',
    messages: (query) => again(manyRecords(query)),
    fault: /v2\.app\.k\.example\.com\.kdrnt\. has more than 65535 records/,
  },
  {
    name: 'hosts without end',
    messages: function* (query) {
      const told = peerRecord(endpoint())
      for (let n = 0; ; n += 400) {
        const ownerOf = (i: number) => scanName(`v2.h${n + i}.k.example.com.kdrnt.`)!
        yield fill(query, 400, (i) => ({ ...told, owner: ownerOf(i) }))
      }
    },
    fault: /the zone has more than 500000 records/,
  },
  {
    name: 'texts of 64 KiB without end',
    messages: (query) => again(longText(query)),
    fault: /the zone has more than 134217728 octets/,
  },
  {
    name: 'differences without end that change nothing',
    messages: function* (query) {
      const empty = fill(query, 1000, () => soa(1))
      yield framed(replyTo(query, [soa(1)]))
      yield* again(empty)
    },
    fault: /too many differences/,
  },
  {
    name: 'a difference without end',
    messages: function* (query) {
      yield framed(replyTo(query, [soa(1), soa(2)]))
      yield* again(manyRecords(query))
    },
    fault: /too many differences/,
  },
  {
    name: 'a message that is none',
    messages: () => [framed(Buffer.alloc(300, 0xc0))],
    fault: /a message is malformed/,
  },
]

for (const { name, messages, fault } of ATTACKS) {
  t.test(`${name}: the last valid state is kept, and the fault is logged`, async (t) => {
    const { peer, follower, pass, targets, lines } = await setUp(t)
    t.strictSame(targets(), ['192.0.2.1'])
    peer.hostility = endless(messages)
    const before = process.memoryUsage().rss
    let most = before
    const watch = setInterval(() => (most = Math.max(most, process.memoryUsage().rss)), 20)
    await pass(1)
    clearInterval(watch)
    t.match(follower.status.error, fault)
    t.match(lines.join('\n'), /its 1 endpoints are kept/)
    t.strictSame(targets(), ['192.0.2.1'])
    t.equal(follower.status.endpoints, 1)
    t.ok(most - before < MEMORY_MAX, `${Math.round((most - before) / MIB)} MiB`)
    t.ok(peer.octetsSent < 300 * MIB, `${Math.round(peer.octetsSent / MIB)} MiB were taken`)
  })
}

t.test('a transfer that goes on octet by octet has an end', async (t) => {
  const { peer, follower, timers, clock, targets } = await setUp(t)
  let stop = false
  peer.hostility = {
    datagram: (query) => replyTo(query, [soa(2)]),
    *stream(query) {
      const message = framed(replyTo(query, [soa(2)]))
      yield message.subarray(0, message.length - 1)
      stop = true
    },
  }
  clock.monotonicMs += 1000
  await timers.advance(1000)
  await until(() => stop, 'the transfer to begin')
  // Nothing of it comes to an end by the clock of sockets here: the limit of the whole does that.
  clock.monotonicMs += 600_000
  await timers.advance(600_000)
  await follower.settled()
  t.match(follower.status.error, /the transfer took longer than 600 s/)
  t.strictSame(targets(), ['192.0.2.1'])
})

t.test('serials that go back and forth cost a transfer each, and change nothing', async (t) => {
  const { peer, follower, pass, targets, lines } = await setUp(t)
  const games = new Behaving()
  const zone = (query: Message) =>
    framed(replyTo(query, [soa(games.serial), peerRecord(endpoint()), soa(games.serial)]))
  games.stream = function* (query) {
    yield zone(query)
  }
  peer.hostility = games
  const changed: string[] = []
  follower.subscribe((hosts) => changed.push(...hosts))
  for (const serial of [0, 0xffff_ffff, 0x8000_0001, 5, 1, 0x7fff_ffff, 2]) {
    games.serial = serial
    await pass(1)
    t.strictSame(targets(), ['192.0.2.1'])
    t.equal(follower.status.serial, serial)
    t.equal(follower.status.error, '')
  }
  t.strictSame(changed, [])
  t.equal(lines.length, 1)
})

t.test('a transfer that is older than what its SOA said is not taken for news', async (t) => {
  const { peer, follower, pass, targets } = await setUp(t)
  peer.hostility = {
    datagram: (query) => replyTo(query, [soa(3)]),
    *stream(query) {
      yield framed(replyTo(query, [soa(0)]))
    },
  }
  await pass(1)
  t.match(follower.status.error, /its zone has serial 0, older than before/)
  t.strictSame(targets(), ['192.0.2.1'])
  peer.hostility = new Behaving()
  await pass(15)
  t.equal(follower.status.error, '')
})

t.test('a transfer that takes long is followed by a rest', async (t) => {
  const { peer, clock, timers, follower, pass } = await setUp(t)
  const slow = new Behaving()
  slow.serial = 2
  slow.stream = function* (query) {
    clock.monotonicMs += 8000
    yield framed(replyTo(query, [soa(slow.serial), peerRecord(endpoint()), soa(slow.serial)]))
  }
  peer.hostility = slow
  await pass(1)
  const { streams } = peer
  slow.serial = 3
  for (let i = 0; i < 7; i++) {
    follower.notify()
    await pass(1)
  }
  t.equal(peer.streams, streams, 'also where it says that it has something new')
  await pass(1)
  t.equal(peer.streams, streams + 1)
  t.ok(timers.count <= 2)
})

t.test(
  'bad properties of records are reported, decide nothing and remove no endpoint',
  async (t) => {
    const { peer, clock, follower, lines, pass, targets } = await setUp(t)
    const nowSeconds = Math.floor(clock.nowMs / 1000)
    const strings = (given: readonly string[]) =>
      Buffer.concat(given.map((text) => Buffer.concat([Buffer.of(text.length), Buffer.from(text)])))
    const bad = [
      `created=${nowSeconds + 10 * 24 * 3600}`,
      'record=a/app',
      'all-down=',
      'sticky=\u001b[2J\nfake log line',
      'failover=DE:DE,DE',
      `drain=${'x'.repeat(240)}`,
      ...Array(4).fill(`+${'x'.repeat(240)}`),
      'shift=to=x steps=100% bake=0s',
    ]
    const endpointOf = (i: number, more: readonly string[]): ResourceRecord => {
      const record = peerRecord(endpoint({ targets: [`192.0.2.${i}`] }))
      return { ...record, rdata: Buffer.concat([record.rdata, strings(more)]) }
    }
    const games = new Behaving()
    games.serial = 2
    games.stream = function* (query) {
      const all = [1, 2, 3].map((i) => endpointOf(i, i === 3 ? ['all-down=closed'] : bad))
      yield framed(replyTo(query, [soa(2), ...all, soa(2)]))
    }
    peer.hostility = games
    lines.length = 0
    await pass(1)
    t.strictSame(targets(), ['192.0.2.1', '192.0.2.2', '192.0.2.3'])
    const found = follower.siteStatesOf(HOST).flatMap(({ endpoints }) => endpoints)
    t.strictSame(
      found.map(({ createdSeconds, recordId, settings }) => [createdSeconds, recordId, settings]),
      [
        [undefined, undefined, undefined],
        [undefined, undefined, undefined],
        [undefined, undefined, { allDown: 'closed' }],
      ],
    )
    const refused = lines.filter((line) => line.includes('refused'))
    t.equal(refused.length, 7, 'once each')
    for (const key of ['created', 'record', 'all-down', 'sticky', 'failover', 'drain', 'shift']) {
      const want = new RegExp(`refused: ${HOST}: site east: ${key} ".*" is ignored: `)
      t.ok(
        refused.some((line) => want.test(line)),
        key,
      )
    }
    for (const line of lines)
      t.notOk(line.trimEnd().includes('\n') || line.includes('\u001b'), line)
    t.equal(follower.problemsOf(HOST).length, 7)
  },
)

const KEY = createTsigKey(scanName('key.example.')!, HMAC_SHA256, new Uint8Array(32).fill(1))
const OTHER = createTsigKey(scanName('key.example.')!, HMAC_SHA256, new Uint8Array(32).fill(2))

t.test(
  'signatures of another key or another time are refused, and the log names the reason',
  async (t) => {
    for (const { key, offSeconds, want } of [
      { key: OTHER, offSeconds: 0, want: /the signature is wrong/ },
      {
        key: KEY,
        offSeconds: 400,
        want: /the time of the signature differs by -?(39|40|41)\d s/,
      },
      {
        key: KEY,
        offSeconds: -400,
        want: /the time of the signature differs by -?(39|40|41)\d s/,
      },
    ]) {
      const { follower, targets } = await setUp(t, KEY, {
        datagram: (query, packet) => signed(key, packet, replyTo(query, [soa(1)]), offSeconds),
        stream: () => [],
      })
      t.match(follower.status.error, want)
      t.strictSame(targets(), [])
    }
  },
)

/** The reply to `packet`, signed as at another time. */
function signed(
  key: TsigKey,
  packet: Uint8Array,
  reply: Uint8Array,
  offSeconds: number,
): Uint8Array {
  const request = parseTsig(packet, findTsig(packet, packet.length), packet.length)!
  const signer = new ReplySigner(request, { key, algorithm: key.algorithm }, 0)
  const message = new Uint8Array(reply.length + signer.octets)
  message.set(reply)
  const seconds = Math.floor(systemClock.now() / 1000) + offSeconds
  return message.subarray(0, signer.sign(message, reply.length, seconds))
}
