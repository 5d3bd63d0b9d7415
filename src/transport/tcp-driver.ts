import type { StreamDriver } from './driver.ts'
import type { ReusePortBinder } from './handover/reuse-port-binder.ts'
import { listenTcp, streamProxyOf, type TcpPlace } from './tcp.ts'
import { createTcpCounters } from './tcp-counters.ts'

/** Serves TCP. `reusePortBinder`: see `TcpOptions`; called when a socket is opened. */
export function tcpDriver(
  counters = createTcpCounters(),
  reusePortBinder: () => ReusePortBinder | undefined = () => undefined,
): StreamDriver<TcpPlace> {
  return {
    kind: 'streams',
    name: 'tcp',
    open: (place, handler) => {
      const { host, port, timeouts } = place
      const shared = { counters, reusePortBinder: reusePortBinder(), proxy: streamProxyOf(place) }
      return listenTcp({ host, port, handler, limits: timeouts, ...shared })
    },
    losses: () => ({
      refusedConnections: counters.refused,
      timedOutConnections: counters.timedOut,
      overrunConnections: counters.overrun,
      overloadedConnections: counters.dropped,
      malformedConnections: counters.malformed,
    }),
  }
}
