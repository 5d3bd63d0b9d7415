import t from 'tap'
import {
  cutsMessages,
  SEGMENT_SPACE,
  writeSegment,
} from '../../../../../src/transport/udp/batch/grouping/udp-segment.ts'
import { loadLibc } from '../../../../../src/transport/udp/batch/libc.ts'

const libc = loadLibc()

t.test('the control message is as struct cmsghdr has it', async (t) => {
  const octets = new Uint8Array(16 + SEGMENT_SPACE).fill(0xff)
  writeSegment(new Uint32Array(octets.buffer), 8, 300)
  const view = new DataView(octets.buffer)
  t.equal(view.getBigUint64(8, true), 18n, 'cmsg_len')
  t.equal(view.getInt32(16, true), 17, 'cmsg_level: SOL_UDP')
  t.equal(view.getInt32(20, true), 103, 'cmsg_type: UDP_SEGMENT')
  t.equal(view.getUint16(24, true), 300)
  t.equal(view.getBigUint64(0, true), 2n ** 64n - 1n, 'nothing before it is written')
})

t.test('a kernel is asked whether it cuts messages, and the socket for that closed', async (t) => {
  const opened: number[] = []
  const closed: number[] = []
  const calls = {
    ...libc,
    socket: (domain: number, type: number, protocol: number) => {
      const fd = libc.socket(domain, type, protocol)
      opened.push(fd)
      return fd
    },
    close: (fd: number) => {
      closed.push(fd)
      return libc.close(fd)
    },
  }
  t.equal(cutsMessages(calls), true, 'Linux 4.18 or later')
  t.equal(cutsMessages({ ...calls, getsockopt: () => -1 }), false, 'one before it')
  t.equal(opened.length, 2)
  t.strictSame(closed, opened)
  t.equal(cutsMessages({ ...calls, socket: () => -1 }), false, 'no socket')
})
