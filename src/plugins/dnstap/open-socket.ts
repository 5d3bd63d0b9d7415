import { connect } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { SinkEndpoint } from './endpoint.ts'
import type { OpenedSocket } from './sink-connection.ts'

/** Opens a connection to a sink. `skipVerify`: its certificate is not verified. */
export function openSocket(endpoint: SinkEndpoint, skipVerify: boolean): OpenedSocket {
  if (endpoint.kind === 'unix') return { socket: connect(endpoint.path), event: 'connect' }
  const { kind, host, port } = endpoint
  if (kind === 'tcp') {
    return { socket: connect({ host, port, noDelay: true, keepAlive: true }), event: 'connect' }
  }
  const socket = connectTls({ host, port, rejectUnauthorized: !skipVerify })
  return { socket, event: 'secureConnect' }
}
