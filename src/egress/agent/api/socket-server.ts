import { once } from 'node:events'
import { chmodSync, lstatSync, mkdirSync, renameSync, rmSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { dirname } from 'node:path'
import { isSystemError } from '../../../base/system-error.ts'
import type { NamesReply } from './names-api.ts'

/** Of the socket: only the user of this process. */
const MODE = 0o600
const CONNECTIONS_MAX = 16
/** From the start of a connection to the end of its headers. */
const HEADERS_MS_MAX = 2000
const REPLY_MS_MAX = 30_000
const KEEP_ALIVE_MS = 1000
const HEADER_OCTETS_MAX = 8192
/** Characters of a reply that are made at once. */
const PIECE_LENGTH = 65_536

/** Answers one request; `target` is its path and query. */
export type AnswerNames = (method: string, target: string) => NamesReply | Promise<NamesReply>

/**
 * Serves an API on a UNIX socket. A later process that opens the same path gets the next connections: it
 * replaces the file, which this process then leaves alone. Throws the system's error, or an Error that names what is
 * in the way.
 */
export async function openSocket(path: string, answer: AnswerNames): Promise<SocketServer> {
  mkdirSync(dirname(path), { recursive: true })
  refuseOthers(path)
  const server = createServer({
    headersTimeout: HEADERS_MS_MAX,
    requestTimeout: HEADERS_MS_MAX,
    keepAliveTimeout: KEEP_ALIVE_MS,
    maxHeaderSize: HEADER_OCTETS_MAX,
    connectionsCheckingInterval: 500,
  })
  server.maxConnections = CONNECTIONS_MAX
  server.on('request', (request, response) => void reply(request, response, answer))
  const temporary = `${path}.${process.pid}`
  rmSync(temporary, { force: true })
  // No other user may connect before the mode is set.
  const umask = process.umask(0o777 & ~MODE)
  try {
    server.listen(temporary)
  } finally {
    process.umask(umask)
  }
  await once(server, 'listening')
  server.on('error', () => {})
  chmodSync(temporary, MODE)
  const { ino } = lstatSync(temporary)
  renameSync(temporary, path)
  return new SocketServer(server, path, ino)
}

/** An open socket. */
export class SocketServer {
  readonly #server: Server
  readonly #path: string
  readonly #inode: number

  constructor(server: Server, path: string, inode: number) {
    this.#server = server
    this.#path = path
    this.#inode = inode
  }

  /** Ends all connections. Removes the socket, unless it is another process's. */
  close(): void {
    this.#server.close()
    this.#server.closeAllConnections()
    if (stat(this.#path)?.ino === this.#inode) rmSync(this.#path, { force: true })
  }
}

/** Throws if the path is something that must not be replaced. */
function refuseOthers(path: string): void {
  const found = stat(path)
  if (found !== undefined && !found.isSocket()) {
    throw new Error(`${path} exists and is not a socket; remove it, or name another path`)
  }
}

function stat(path: string) {
  try {
    return lstatSync(path)
  } catch (error) {
    if (isSystemError(error) && error.code === 'ENOENT') return undefined
    throw error
  }
}

async function reply(
  request: IncomingMessage,
  response: ServerResponse,
  answer: AnswerNames,
): Promise<void> {
  const deadline = setTimeout(() => request.socket.destroy(), REPLY_MS_MAX)
  response.once('close', () => clearTimeout(deadline))
  request.resume()
  try {
    const answered = await answer(request.method ?? '', request.url ?? '')
    const { status, rows, json, fault, allow } = answered
    if (allow !== undefined) response.setHeader('allow', allow)
    response.setHeader('content-type', 'application/json')
    response.writeHead(status)
    if (rows !== undefined) await writeRows(response, rows)
    else if (json !== undefined) response.write(`${JSON.stringify(json)}\n`)
    else if (fault !== undefined) response.write(`${JSON.stringify(fault)}\n`)
    response.end()
  } catch {
    // A target that is not a URL.
    if (!response.headersSent) response.writeHead(400)
    response.end()
  }
}

/** Writes a JSON array as fast as the client reads it. */
async function writeRows(response: ServerResponse, rows: Iterable<unknown>): Promise<void> {
  let piece = '['
  let separator = ''
  for (const row of rows) {
    piece += `${separator}${JSON.stringify(row)}`
    separator = ','
    if (piece.length < PIECE_LENGTH) continue
    await write(response, piece)
    if (response.destroyed) return
    piece = ''
  }
  response.write(`${piece}]\n`)
}

/** Resolves once there is room for more, or the connection has ended. */
function write(response: ServerResponse, piece: string): Promise<void> {
  return new Promise((resolve) => {
    if (response.write(piece)) {
      // Other work runs between two pieces.
      setImmediate(resolve)
      return
    }
    const done = (): void => {
      response.off('drain', done)
      response.off('close', done)
      resolve()
    }
    response.on('drain', done)
    response.on('close', done)
  })
}
