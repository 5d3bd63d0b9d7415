import type { Server } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'

/**
 * Waits until `server` has accepted the connections that wait, for at most `limitMs`: closing it would reset them. The event
 * loop accepts one connection in each of its turns, so none waits after a turn without one.
 */
export async function acceptQueued(server: Server, limitMs: number): Promise<void> {
  const endMs = performance.now() + limitMs
  let accepted: number
  const count = (): void => void accepted++
  server.on('connection', count)
  do {
    accepted = 0
    // The loop accepts between these two.
    await nextTurn()
    await nextTurn()
  } while (accepted > 0 && performance.now() < endMs)
  server.off('connection', count)
}
