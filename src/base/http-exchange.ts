import { X509Certificate } from 'node:crypto'
import { type ClientRequest, type IncomingMessage, request } from 'node:http'
import { request as requestTls } from 'node:https'
import { TLSSocket } from 'node:tls'

interface HttpQuestion {
  readonly url: URL
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  /** Undefined = none. */
  readonly body: string | undefined
  /** Path of a Unix socket, which is used in place of the address in `url`; '' = none. */
  readonly socketPath?: string
  /** Certificates of authorities, in PEM; undefined = those of Node.js. */
  readonly ca?: string | undefined
  /** The server must have this certificate, in PEM; undefined = one of an authority. */
  readonly certificate?: string | undefined
  readonly octetsMax: number
  /** Ends the exchange, also while the reply arrives. */
  readonly signal: AbortSignal
}

/**
 * Sends one HTTP request over a connection of its own, and returns the reply as text. Redirects are not followed.
 * Rejects if the server can't be reached, has another certificate, or sends a longer reply.
 */
export function exchangeHttp(question: HttpQuestion): Promise<{ status: number; body: string }> {
  const { url, method, body, socketPath = '', ca, certificate, signal } = question
  return new Promise((resolve, reject) => {
    const place = socketPath === '' ? {} : { socketPath }
    const options = { method, headers: question.headers, agent: false as const, signal, ...place }
    const read = (response: IncomingMessage): void => {
      readAll(response, sent, question.octetsMax)
        .then((text) => resolve({ status: response.statusCode ?? 0, body: text }))
        .catch(reject)
    }
    const isPinned = certificate !== undefined
    const tls = { ...(ca === undefined ? {} : { ca }), rejectUnauthorized: !isPinned }
    const isTls = url.protocol === 'https:'
    const sent = isTls ? requestTls(url, { ...options, ...tls }, read) : request(url, options, read)
    sent.on('error', reject)
    // Without a listener, Node.js closes the connection and reports nothing.
    sent.on('upgrade', (_response, socket) => {
      socket.destroy()
      reject(new Error('the reply is not that of an admin API (status 101)'))
    })
    const send = (): void => void sent.end(body)
    if (isTls && isPinned) sendOnceVerified(sent, certificate, send)
    else send()
  })
}

/** A token must not reach another server, so the headers are sent after the handshake. */
function sendOnceVerified(sent: ClientRequest, certificate: string, send: () => void): void {
  sent.once('socket', (socket) => {
    socket.once('secureConnect', () => {
      const wanted = new X509Certificate(certificate).raw
      const found = socket instanceof TLSSocket ? socket.getPeerX509Certificate()?.raw : undefined
      if (found?.equals(wanted) === true) send()
      else sent.destroy(new Error('the server has another certificate than the file of `tls`'))
    })
  })
}

async function readAll(
  response: IncomingMessage,
  sent: ClientRequest,
  octetsMax: number,
): Promise<string> {
  const pieces: Buffer[] = []
  let octets = 0
  for await (const piece of response) {
    octets += piece.length
    pieces.push(piece)
    if (octets > octetsMax) sent.destroy(new Error('the reply is too long'))
  }
  return Buffer.concat(pieces).toString()
}
