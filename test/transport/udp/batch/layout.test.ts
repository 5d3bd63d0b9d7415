import t from 'tap'
import {
  BATCH,
  IOVEC_LEN,
  Layout,
  MMSGHDR_OCTETS,
  PACKET_HEAD_OCTETS,
  REPLY_CHUNK_OCTETS,
  REPLY_CHUNKS,
  UNIT_CONTROL,
  UNIT_PACKET,
} from '../../../../src/transport/udp/batch/layout.ts'
import { loadLibc } from '../../../../src/transport/udp/batch/libc.ts'
import { QUERY_OCTETS_MAX, REPLY_OCTETS_MAX } from '../../../../src/transport/udp/udp.ts'

/** `struct iovec`. */
const IOVEC_OCTETS = 16

const layout = new Layout(loadLibc())
const view = new DataView(layout.octets.buffer)

/** Offset that the 64-bit pointer at `at` leads to. */
const follow = (at: number): number => Number(view.getBigUint64(at, true)) - layout.base

const slots = [...Array(BATCH).keys()]

t.test('receive headers point to the units of their slots, as struct mmsghdr has it', async (t) => {
  for (const slot of slots) {
    const header = layout.receiveHeader(slot)
    const unit = layout.unit(slot)
    const iovec = follow(header + 16)
    t.same(
      {
        name: follow(header),
        buffers: view.getBigUint64(header + 24, true),
        control: follow(header + 32),
        packet: follow(iovec),
        octets: view.getBigUint64(iovec + IOVEC_LEN, true),
        tail: follow(iovec + IOVEC_OCTETS),
        tailOctets: view.getBigUint64(iovec + IOVEC_OCTETS + IOVEC_LEN, true),
      },
      {
        name: unit,
        buffers: 2n,
        control: unit + UNIT_CONTROL,
        packet: unit + UNIT_PACKET,
        octets: BigInt(PACKET_HEAD_OCTETS),
        tail: layout.tail(slot),
        tailOctets: BigInt(QUERY_OCTETS_MAX - PACKET_HEAD_OCTETS),
      },
    )
  }
})

t.test('send headers point to the addresses of units and to rooms of their own', async (t) => {
  for (const slot of slots) {
    const header = layout.sendHeader(slot)
    t.same(
      {
        name: follow(header),
        buffers: view.getBigUint64(header + 24, true),
        control: follow(header + 32),
        iovec: follow(header + 16),
        reply: follow(layout.sendIovec(slot)),
      },
      {
        name: layout.unit(slot),
        buffers: 1n,
        control: layout.unit(slot) + UNIT_CONTROL,
        iovec: layout.sendIovec(slot),
        reply: layout.chunk(slot),
      },
    )
  }
  layout.pointPlace(3, layout.sendPlace(3))
  t.same(
    [follow(layout.sendHeader(3)), follow(layout.sendHeader(3) + 32)],
    [layout.sendPlace(3), layout.sendPlace(3) + UNIT_CONTROL],
  )
  layout.pointPlace(3, layout.unit(3))
  layout.pointReply(3, layout.chunk(7))
  t.equal(follow(layout.sendIovec(3)), layout.chunk(7))
  layout.pointReply(3, layout.chunk(3))
})

t.test('no two rooms overlap, and all are where words and addresses may be', async (t) => {
  const rooms: [string, number, number][] = [
    ['scratch', layout.scratch, 256],
    ['unit for other addresses', layout.unit(BATCH), UNIT_PACKET + PACKET_HEAD_OCTETS],
    ['replies', layout.chunk(0), (REPLY_CHUNKS - 1) * REPLY_CHUNK_OCTETS + REPLY_OCTETS_MAX],
    ...slots.flatMap((slot): [string, number, number][] => [
      [`receive header ${slot}`, layout.receiveHeader(slot), MMSGHDR_OCTETS],
      [`receive iovecs ${slot}`, follow(layout.receiveHeader(slot) + 16), 2 * IOVEC_OCTETS],
      [`send header ${slot}`, layout.sendHeader(slot), MMSGHDR_OCTETS],
      [`send iovec ${slot}`, layout.sendIovec(slot), IOVEC_OCTETS],
      [`send place ${slot}`, layout.sendPlace(slot), UNIT_PACKET],
      [`unit ${slot}`, layout.unit(slot), UNIT_PACKET + PACKET_HEAD_OCTETS],
      [`tail ${slot}`, layout.tail(slot), QUERY_OCTETS_MAX - PACKET_HEAD_OCTETS],
    ]),
  ]
  rooms.sort(([, a], [, b]) => a - b)
  const overlaps = rooms.flatMap(([name, at], i) => {
    const [before, start, octets] = rooms[i - 1] ?? ['', 0, 0]
    return start + octets > at ? [`${before} and ${name}`] : []
  })
  t.strictSame(overlaps, [])
  t.ok(rooms.every(([, at]) => at % 8 === 0))
  const [, at, octets] = rooms.at(-1)!
  t.ok(at + octets <= layout.octets.length)
})
