import { BatchSocket } from '../../../transport/udp/batch/socket.ts'
import { loadXdpKernel } from '../../../transport/udp/xdp/kernel.ts'
import { type LaneTarget, Targets } from '../../../transport/udp/xdp/targets.ts'
import { XdpSocket } from '../../../transport/udp/xdp/xdp-socket.ts'
import type { XskPlace } from '../../../transport/udp/xdp/xsk.ts'
import type { ServeBypass } from '../bypass.ts'
import type { DataSocket } from '../messages.ts'

/** One AF_XDP socket that a thread serves, in addition to its UDP sockets. */
export interface DataXdp {
  readonly place: XskPlace
  /** Indexed by LoopCount; shared. */
  readonly counts: Float64Array
  readonly mtuOctets: number
  /** The thread's UDP sockets whose packets the AF_XDP socket receives. */
  readonly lanes: readonly Pick<DataSocket, 'address' | 'fd'>[]
  readonly targets: readonly LaneTarget[]
  /** Source addresses that no reply may go to. */
  readonly refused: readonly Pick<LaneTarget, 'family' | 'address'>[]
}

/** Makes `loop` serve an AF_XDP socket (DataXdp), or changes what a served socket receives. */
export const serveXdp: ServeBypass = (loop, body, handlers) => {
  const xdp = body as DataXdp
  const lanes = xdp.lanes.flatMap(({ address, fd }) => {
    const socket = loop.socketOf(fd)
    const handler = handlers.get(address)
    return socket instanceof BatchSocket && handler !== undefined ? [{ fd, socket, handler }] : []
  })
  if (lanes.length < xdp.lanes.length) return 'the thread does not serve the addresses yet'
  const targets = new Targets(xdp.targets, xdp.refused)
  const routes = { targets, lanes, mtuOctets: xdp.mtuOctets }
  const known = loop.socketOf(xdp.place.fd)
  if (known instanceof XdpSocket) {
    known.setRoutes(routes)
    loop.setLanes(known.fd, lanes)
    return ''
  }
  loop.addLanes(new XdpSocket(loadXdpKernel(), xdp.place, routes), lanes, xdp.counts)
  return ''
}
