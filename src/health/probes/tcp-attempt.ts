import { connect } from 'node:net'
import type { Begin } from './begin.ts'

/** Opens a connection, which is enough. */
export const beginTcp: Begin<'TCP'> = ({ ip, check }, { onSocket, onError, onDone }) => {
  const socket = connect({ host: ip, port: check.port })
  socket.on('error', onError)
  socket.once('connect', () => onDone({ kind: 'healthy', httpStatus: 0 }))
  onSocket(socket)
  return () => socket.destroy()
}
