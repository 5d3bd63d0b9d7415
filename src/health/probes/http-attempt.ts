import { request as httpRequest, type IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { EXPECTED_STATUS_DEFAULT } from '../../records/checks/http.ts'
import type { CheckOf } from '../../records/health-check.ts'
import { type AttemptListener, type Begin, hostOf, serverNameOf } from './begin.ts'

/** Maximum length of a response's head. */
const HEAD_OCTETS_MAX = 8192
/** Octets of a body that are searched for the expected text. */
const BODY_OCTETS_MAX = 64 * 1024

/** Sends a GET request. Redirects are not followed. */
export const beginHttp: Begin<'HTTP' | 'HTTPS'> = ({ ip, check, hostname, headers }, listener) => {
  const isTls = check.protocol === 'HTTPS'
  const send = isTls ? httpsRequest : httpRequest
  const request = send({
    host: ip,
    port: check.port,
    path: check.path.startsWith('?') ? `/${check.path}` : check.path,
    method: 'GET',
    headers: {
      ...Object.fromEntries(headers),
      Host: hostOf({ hostname, ip }),
      'User-Agent': 'sextant-probe',
    },
    // A new connection each time, because the probe checks that the server accepts connections.
    agent: false,
    maxHeaderSize: HEAD_OCTETS_MAX,
    ...(isTls ? { rejectUnauthorized: !check.allowsInsecureCertificate } : {}),
    ...(isTls ? { servername: serverNameOf(hostname) } : {}),
  })
  request.on('socket', listener.onSocket)
  request.on('error', listener.onError)
  request.on('response', (response) => readResponse(response, check, listener))
  request.on('upgrade', (_response, socket) => {
    socket.destroy()
    listener.onDone({ kind: 'unhealthy', httpStatus: 101, reason: 'status 101' })
  })
  request.end()
  return () => request.destroy()
}

function readResponse(
  response: IncomingMessage,
  { expectedStatus = EXPECTED_STATUS_DEFAULT, expectedBody }: CheckOf<'HTTP' | 'HTTPS'>,
  { onDone, onError }: AttemptListener,
): void {
  const { statusCode: httpStatus = 0 } = response
  const status = `status ${httpStatus}`
  if (!expectedStatus.some(({ first, last }) => first <= httpStatus && httpStatus <= last)) {
    onDone({ kind: 'unhealthy', httpStatus, reason: status })
    return
  }
  if (expectedBody === undefined) {
    onDone({ kind: 'healthy', httpStatus })
    return
  }
  const text = Buffer.from(expectedBody)
  const lacks = (): void => {
    onDone({ kind: 'unhealthy', httpStatus, reason: `${status}, but the body is not as expected` })
  }
  let octetsLeft = BODY_OCTETS_MAX
  // The end of what was received, where the text may have begun.
  let tail = Buffer.alloc(0)
  response.on('error', onError)
  response.on('data', (chunk: Buffer) => {
    const searched = Buffer.concat([tail, chunk.subarray(0, octetsLeft)])
    octetsLeft -= chunk.length
    tail = searched.subarray(-text.length)
    if (searched.includes(text)) onDone({ kind: 'healthy', httpStatus })
    else if (octetsLeft <= 0) lacks()
  })
  response.on('end', lacks)
}
