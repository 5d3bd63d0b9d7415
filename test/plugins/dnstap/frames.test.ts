import { deepStrictEqual, strictEqual } from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import { LocalChannel } from '../../../src/base/telemetry/local-channel.ts'
import { ENTRY_OCTETS_MAX, EntryWriter, OCTETS } from '../../../src/plugins/dnstap/entry.ts'
import { FrameEncoder } from '../../../src/plugins/dnstap/frames.ts'
import { entryOctets, entryWords, frameOctets } from '../../../src/plugins/dnstap/memory.ts'
import { readProtobuf } from '../../support/dnstap-sink.ts'
import { transaction } from '../../support/transaction.ts'

let written: Uint8Array = new Uint8Array(0)
const channel = new LocalChannel(ENTRY_OCTETS_MAX, (octets) => {
  written = Uint8Array.from(octets)
})
const tx = transaction({ name: 'www.example.org.' })

/** Both levels as objects, without the fields of nanoseconds and the message. */
function withoutTimes({ outer, inner }: ReturnType<typeof messagesOf>[number]) {
  const { 14: _, ...fields } = Object.fromEntries(outer)
  const { 9: _asked, 13: _replied, ...rest } = Object.fromEntries(inner)
  return { outer: fields, inner: rest }
}

/** The messages of one entry, as fields by number. */
function messagesOf(octets: Uint8Array, encoder: FrameEncoder) {
  entryOctets.set(octets)
  strictEqual(entryWords[OCTETS], octets.length)
  const end = encoder.encode(0, 0)
  const messages: { outer: Map<number, unknown>; inner: Map<number, unknown> }[] = []
  for (let at = 0; at < end; ) {
    const next = at + 4 + frameOctets.readUInt32BE(at)
    const outer = new Map(readProtobuf(frameOctets.subarray(at + 4, next)))
    messages.push({ outer, inner: new Map(readProtobuf(outer.get(14) as Buffer)) })
    at = next
  }
  return messages
}

t.test('property: a decoder reads what the query and its reply had', async (t) => {
  const message = fc.uint8Array({ minLength: 12, maxLength: 300 })
  const address = fc.oneof(
    fc.uint8Array({ minLength: 4, maxLength: 4 }),
    fc.uint8Array({ minLength: 16, maxLength: 16 }),
  )
  const entry = fc.record({
    query: fc.oneof(message, fc.constant(new Uint8Array(65_535).fill(7))),
    reply: fc.oneof(message, fc.constant(new Uint8Array(65_535).fill(9))),
    peer: address,
    local: address,
    ports: fc.tuple(fc.nat(65_535), fc.nat(65_535)),
    extra: fc.oneof(fc.string({ maxLength: 300 }), fc.constant('Köln, 東京')),
    nowMs: fc.integer({ min: 0, max: 4_294_967_295_000 }),
    isTcp: fc.boolean(),
  })
  const texts = fc.string({ maxLength: 200 })
  const check = () =>
    fc.assert(
      fc.property(entry, texts, texts, (given, identity, version) => {
        const { query } = tx
        query.packet = given.query
        query.packetOctets = given.query.length
        tx.out = given.reply
        query.protocol = given.isTcp ? 1 : 0
        query.peerAddress.set(given.peer)
        query.peerFamily = given.peer.length === 4 ? 1 : 2
        query.localAddress = Uint8Array.from({ length: 16 }, (_, i) => given.local[i] ?? 0)
        query.localFamily = given.local.length === 4 ? 1 : 2
        ;[query.peerPort, query.localPort] = given.ports
        tx.startedMs = 10
        tx.finishedMs = 10.5
        const clock = { now: () => given.nowMs, monotonic: () => 10 }
        new EntryWriter(channel, clock, true).write(tx, given.reply.length, given.extra)
        const encoder = new FrameEncoder({ identity, version, extra: '' })
        const [asked, replied] = messagesOf(written, encoder)
        const both = {
          1: Buffer.from(identity),
          2: Buffer.from(version),
          ...(given.extra === '' ? {} : { 3: Buffer.from(given.extra) }),
          15: 1,
        }
        const common = {
          2: query.peerFamily,
          3: given.isTcp ? 2 : 1,
          4: Buffer.from(given.peer),
          5: Buffer.from(given.local),
          6: query.peerPort,
          7: query.localPort,
          8: Math.floor(given.nowMs / 1000),
        }
        const later = Math.floor((given.nowMs + 0.5) / 1000)
        deepStrictEqual(withoutTimes(asked!), {
          outer: both,
          inner: { ...common, 1: 5, 10: Buffer.from(given.query) },
        })
        deepStrictEqual(withoutTimes(replied!), {
          outer: both,
          inner: { ...common, 1: 6, 12: later, 14: Buffer.from(given.reply) },
        })
      }),
      { numRuns: 50 },
    )
  t.doesNotThrow(check)
})
