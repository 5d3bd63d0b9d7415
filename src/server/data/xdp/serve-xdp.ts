import type { QueryHandler } from '../../../transport/exchange.ts'
import type { BatchLoop } from '../../../transport/udp/batch/loop.ts'
import { BatchSocket } from '../../../transport/udp/batch/socket.ts'
import { loadXdpKernel } from '../../../transport/udp/xdp/kernel.ts'
import { Targets } from '../../../transport/udp/xdp/targets.ts'
import { XdpSocket } from '../../../transport/udp/xdp/xdp-socket.ts'
import type { DataXdp } from '../messages.ts'

/**
 * Makes `loop` serve an AF_XDP socket, or changes what a served socket receives. `handlers`: by
 * address of the plan. Returns the reason for a failure; '' = done.
 */
export type ServeXdp = (
  loop: BatchLoop,
  xdp: DataXdp,
  handlers: ReadonlyMap<string, QueryHandler>,
) => string

export const serveXdp: ServeXdp = (loop, xdp, handlers) => {
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
