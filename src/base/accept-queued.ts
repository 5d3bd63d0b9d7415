import type { Server } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'

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
