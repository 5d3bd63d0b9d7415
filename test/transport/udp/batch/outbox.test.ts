import fc from 'fast-check'
import t from 'tap'
import { writeSockaddr } from '../../../../src/transport/sockaddr.ts'
import {
  BATCH,
  Layout,
  MMSGHDR_OCTETS,
  UNIT_CONTROL,
} from '../../../../src/transport/udp/batch/layout.ts'
import { type Libc, loadLibc } from '../../../../src/transport/udp/batch/libc.ts'
import { Outbox } from '../../../../src/transport/udp/batch/outbox.ts'

const libc = loadLibc()
const [EPERM, EINTR, EIO, EAGAIN, EINVAL] = [1, 4, 5, 11, 22]
const [EMSGSIZE, ENOBUFS, ENETUNREACH, ECONNREFUSED] = [90, 105, 101, 111]
const [IP_PKTINFO, UDP_SEGMENT] = [8, 103]

/** A datagram that left: to whom, from where ('' = as bound), and what is in it. */
type Sent = string

/** Reads messages out of the memory that a kernel would, and cuts them as it would. */
class Kernel {
  readonly sent: Sent[] = []
  /** By call: how many messages were offered. */
  readonly offered: number[] = []
  /** For each call what it does: sends at most so many messages; a negative number is an error. */
  plan: number[] = []
  /** Error for messages that are to be cut; 0 = they are cut. */
  groupErrno = 0
  /** The port to which nothing can be sent. */
  unreachable = -1
  errno = 0
  readonly libc: Libc = {
    ...libc,
    sendmmsg: (_fd, headers, count) => this.#sendmmsg(headers, count),
    errno: () => this.errno,
  }
  layout = new Layout(libc)
  #view = new DataView(this.layout.octets.buffer, this.layout.octets.byteOffset)

  #sendmmsg(headers: number, count: number): number {
    this.offered.push(count)
    const step = this.plan.shift() ?? count
    if (step < 0) return this.#fail(-step)
    const at = headers - this.layout.base
    for (let i = 0; i < Math.min(step, count); i++) {
      const errno = this.#send(at + i * MMSGHDR_OCTETS)
      if (errno !== 0) return i > 0 ? i : this.#fail(errno)
    }
    return Math.min(step, count)
  }

  #fail(errno: number): number {
    this.errno = errno
    return -1
  }

  #follow(at: number): number {
    return Number(this.#view.getBigUint64(at, true)) - this.layout.base
  }

  #send(header: number): number {
    const name = this.#follow(header)
    const port = this.#view.getUint16(name + 2, false)
    const iovecs = this.#follow(header + 16)
    const payload: number[] = []
    for (let i = 0; i < this.#view.getUint32(header + 24, true); i++) {
      const start = this.#follow(iovecs + i * 16)
      const octets = this.#view.getUint32(iovecs + i * 16 + 8, true)
      payload.push(...this.layout.octets.subarray(start, start + octets))
    }
    const { from, segment } = this.#readControl(header)
    if (segment !== 0 && this.groupErrno !== 0) return this.groupErrno
    if (port === this.unreachable) return ENETUNREACH
    for (let at = 0; at < payload.length; at += segment || payload.length) {
      const octets = payload.slice(at, at + (segment || payload.length))
      this.sent.push(`${port}<${from}: ${octets}`)
    }
    return 0
  }

  #readControl(header: number): { from: string; segment: number } {
    let from = ''
    let segment = 0
    const control = this.#follow(header + 32)
    const end = control + this.#view.getUint32(header + 40, true)
    for (let at = control; at < end; ) {
      const octets = this.#view.getUint32(at, true)
      const type = this.#view.getUint32(at + 12, true)
      if (type === IP_PKTINFO) from = [...this.layout.octets.subarray(at + 20, at + 24)].join('.')
      if (type === UDP_SEGMENT) segment = this.#view.getUint16(at + 16, true)
      at += (octets + 7) & ~7
    }
    return { from, segment }
  }
}

interface Reply {
  readonly port: number
  /** 0 = on a socket of one address. */
  readonly from: number
  readonly octets: readonly number[]
}

/** Puts a reply into the outbox as the socket does for the packet in `slot`; returns what is to leave. */
function queue(outbox: Outbox, { layout }: Kernel, slot: number, reply: Reply): Sent {
  const place = layout.unit(slot)
  writeSockaddr(layout.octets, place, '192.0.2.1', reply.port)
  const view = new DataView(layout.octets.buffer, layout.octets.byteOffset)
  const control = place + UNIT_CONTROL
  layout.octets.fill(0, control, control + 64)
  if (reply.from !== 0) {
    // CMSG_LEN, IPPROTO_IP, IP_PKTINFO; an interface, 127.0.0.from.
    view.setUint32(control, 28, true)
    view.setUint32(control + 12, IP_PKTINFO, true)
    view.setUint32(control + 16, 1, true)
    layout.octets.set([127, 0, 0, reply.from], control + 20)
  }
  const room = outbox.room()
  if (room === undefined) outbox.sendErrors++
  else outbox.reply(place, Uint8Array.from(reply.octets), reply.octets.length)
  const from = reply.from === 0 ? '' : `127.0.0.${reply.from}`
  return `${reply.port}<${from}: ${reply.octets}`
}

const queueAll = (outbox: Outbox, kernel: Kernel, given: readonly Reply[]): Sent[] =>
  given.map((reply, slot) => queue(outbox, kernel, slot, reply))

function open(kernel: Kernel, hasControl = false) {
  const refusals: number[] = []
  const outbox = new Outbox(kernel.libc, kernel.layout, {
    fd: -1,
    nameOctets: 16,
    hasControl,
    grouping: { onRefused: (errno) => refusals.push(errno) },
  })
  return { outbox, refusals }
}

const replies = (count: number, port = 1000): Reply[] =>
  Array.from({ length: count }, (_, i) => ({ port, from: 0, octets: [i, 7] }))

t.test('replies to one peer leave in one message, others in theirs', async (t) => {
  const kernel = new Kernel()
  const { outbox } = open(kernel)
  const given = [...replies(3), ...replies(1, 1001), ...replies(2)]
  const want = queueAll(outbox, kernel, given)
  t.equal(outbox.flush(), true)
  t.strictSame(kernel.offered, [2])
  t.strictSame(kernel.sent.toSorted(), want.toSorted())
})

t.test('replies that the kernel refuses as a group are sent one by one', async (t) => {
  const table = [
    {
      name: 'a device that can not',
      errno: EIO,
      offered: [1, 3, 3],
      refusals: [EIO],
    },
    { name: 'a kernel that can not', errno: EINVAL, offered: [1, 3, 3], refusals: [EINVAL] },
    { name: 'a path too narrow', errno: EMSGSIZE, offered: [1, 3, 1, 3], refusals: [] },
    { name: 'a firewall that is full', errno: EPERM, offered: [1, 3, 1, 3], refusals: [] },
    { name: 'a want of memory', errno: ENOBUFS, offered: [1, 3, 1, 3], refusals: [] },
  ]
  for (const { name, errno, offered, refusals } of table) {
    const kernel = new Kernel()
    const { outbox, refusals: seen } = open(kernel)
    kernel.groupErrno = errno
    const want: Sent[] = []
    for (let round = 0; round < 2; round++) {
      want.push(...queueAll(outbox, kernel, replies(3)))
      t.equal(outbox.flush(), true, name)
    }
    t.strictSame(kernel.sent.toSorted(), want.toSorted(), name)
    t.strictSame(kernel.offered, offered, name)
    t.strictSame(seen, refusals, name)
    t.equal(outbox.sendErrors, 0, name)
  }
})

t.test('a peer that can not be reached at all does not end grouping', async (t) => {
  const kernel = new Kernel()
  const { outbox, refusals } = open(kernel)
  kernel.unreachable = 1001
  const given = [...replies(2), ...replies(2, 1001), ...replies(2, 1002)]
  const want = queueAll(outbox, kernel, given)
  t.equal(outbox.flush(), true)
  t.strictSame(kernel.sent.toSorted(), [...want.slice(0, 2), ...want.slice(4)].toSorted())
  t.strictSame([outbox.sendErrors, refusals], [2, []])
  kernel.offered.length = 0
  queueAll(outbox, kernel, replies(4))
  t.equal(outbox.flush(), true)
  t.strictSame(kernel.offered, [1])
})

t.test('if no client port repeats, only some batches are checked', async (t) => {
  const kernel = new Kernel()
  const { outbox } = open(kernel)
  const flush = (given: readonly Reply[]): number => {
    queueAll(outbox, kernel, given)
    kernel.offered.length = 0
    outbox.flush()
    return kernel.offered[0]!
  }
  for (let i = 0; i < 20; i++) t.equal(flush([...replies(1), ...replies(1, 1001)]), 2)
  const found = Array.from({ length: 16 }, () => flush(replies(2)))
  t.strictSame(found, [...Array(11).fill(2), ...Array(5).fill(1)])
})

t.test(
  'replies that remain when the outbox is closed are counted, groups by their replies',
  async (t) => {
    const kernel = new Kernel()
    const { outbox } = open(kernel)
    const given = [...replies(3), ...replies(4, 1001), ...replies(2, 1002)]
    queueAll(outbox, kernel, given)
    kernel.plan = [1, -EAGAIN]
    t.equal(outbox.flush(), false)
    queue(outbox, kernel, 9, replies(1)[0]!)
    outbox.drop()
    t.equal(outbox.sendErrors, 4 + 2 + 1)
    t.equal(kernel.sent.length, 3)
    t.equal(outbox.flush(), true)
    t.equal(kernel.sent.length, 3)
  },
)

/** What of `want` was not sent; undefined if something else was sent, or the same twice. */
function lostOf(want: readonly Sent[], sent: readonly Sent[]): Sent[] | undefined {
  const lost = [...want]
  for (const one of sent) {
    const at = lost.indexOf(one)
    if (at === -1) return undefined
    lost.splice(at, 1)
  }
  return lost
}

const reply = fc.record({
  port: fc.constantFrom(1000, 1001, 2000, 3),
  from: fc.integer({ min: 1, max: 2 }),
  octets: fc.array(fc.integer({ min: 0, max: 255 }), { minLength: 1, maxLength: 3 }),
})

const scene = fc.record({
  batches: fc.array(fc.array(reply, { minLength: 1, maxLength: BATCH }), {
    minLength: 1,
    maxLength: 4,
  }),
  plan: fc.array(
    fc.oneof(fc.integer({ min: 1, max: 20 }), fc.constantFrom(-EAGAIN, -EINTR, -ECONNREFUSED)),
    { maxLength: 12 },
  ),
  groupErrno: fc.constantFrom(0, 0, EIO, EINVAL, EMSGSIZE),
  unreachable: fc.constantFrom(-1, 1001),
})

t.test(
  'each reply leaves once, to its peer and from the address asked, or is counted',
  async () => {
    fc.assert(
      fc.property(scene, ({ batches, plan, groupErrno, unreachable }) => {
        const kernel = new Kernel()
        const { outbox, refusals } = open(kernel, true)
        Object.assign(kernel, { plan: [...plan], groupErrno, unreachable })
        const want: Sent[] = []
        for (const batch of batches) {
          want.push(...queueAll(outbox, kernel, batch))
          // The buffer of a socket is emptied in the end.
          for (let i = 0; i <= plan.length && !outbox.flush(); i++);
        }
        const lost = lostOf(want, kernel.sent)
        if (lost === undefined || lost.length !== outbox.sendErrors || refusals.length > 1)
          return false
        // After two errors in a row about earlier replies, it drops one.
        const errors = plan.filter((step) => step === -ECONNREFUSED).length
        return lost.filter((one) => !one.startsWith(`${unreachable}<`)).length <= errors / 2
      }),
      { seed: 1, numRuns: 400 },
    )
  },
)
