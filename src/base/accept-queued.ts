import { type Server, Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { noteConnectionsMs, OtherWork } from './event-loop-budget.ts'

/**
 * Bounds, in milliseconds, of the time for which `acceptMore` accepts connections in one turn of the event loop. Within
 * these bounds, it takes as long as the other work of the thread since it last accepted. With a fixed time, connections
 * of a flood would wait for seconds if turns are long.
 */
const [MORE_MS_MIN, MORE_MS_MAX] = [10, 100]

/**
 * Makes `server` accept several connections in each turn of the event loop. By itself, the event
 * loop accepts one, so a connection would wait for long during a flood of others, or much other work.
 * `accept`: returns the descriptor of a connection that waits, -1 = none.
 */
export function acceptMore(server: Server, accept: () => number): void {
  let isAccepting = false
  const other = new OtherWork()
  // A server with TLS must end a connection that the client ends during the handshake.
  const { allowHalfOpen } = server as Server & { readonly allowHalfOpen: boolean }
  server.on('connection', () => {
    if (isAccepting) return
    isAccepting = true
    const otherMs = other.since(performance.eventLoopUtilization().active)
    const startMs = performance.now()
    const endMs = startMs + Math.min(Math.max(otherMs, MORE_MS_MIN), MORE_MS_MAX)
    while (performance.now() < endMs) {
      const fd = accept()
      if (fd === -1) break
      const socket = new Socket({ fd, readable: true, writable: true, allowHalfOpen })
      socket.setNoDelay(true)
      server.emit('connection', socket)
    }
    isAccepting = false
    noteConnectionsMs(performance.now() - startMs)
    other.begin(performance.eventLoopUtilization().active)
  })
}

/**
 * Waits until `server` has accepted the connections that wait, at most `backlog` of them: closing the server would
 * reset them. The event loop accepts one connection in each of its turns, so none waits after a turn without one.
 */
export async function acceptQueued(server: Server, backlog: number): Promise<void> {
  let accepted = 0
  const count = (): void => void accepted++
  server.on('connection', count)
  for (let before = -1; accepted > before && accepted <= backlog; ) {
    before = accepted
    // The loop accepts between these two.
    await nextTurn()
    await nextTurn()
  }
  server.off('connection', count)
}
