import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'
import { listBody, statusBody } from '../support/api-double.ts'

/** An API server that lists what the test gave it, and on whose watches nothing ever comes. */
export class ApiServer {
  /** By plural. */
  readonly objects = new Map<string, readonly object[]>()
  /** Lists of these are never answered. */
  readonly held = new Set<string>()
  /** Connections are cut before there is an answer. */
  isAway = false
  readonly #port: number

  private constructor(port: number) {
    this.#port = port
  }

  static async start(t: Test): Promise<ApiServer> {
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    const api = new ApiServer((server.address() as AddressInfo).port)
    server.on('request', (request, response) => api.#answer(request, response))
    t.teardown(() => {
      server.closeAllConnections()
      server.close()
    })
    return api
  }

  get kubeconfig(): string {
    return `current-context: main
clusters: [{name: c, cluster: {server: "http://127.0.0.1:${this.#port}", insecure-skip-tls-verify: true}}]
users: [{name: u, user: {token: t}}]
contexts: [{name: main, context: {cluster: c, user: u}}]
`
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    if (this.isAway) {
      request.destroy()
      return
    }
    const url = new URL(request.url ?? '', 'http://api')
    const plural = url.pathname.slice(url.pathname.lastIndexOf('/') + 1)
    if (this.held.has(plural)) return
    if (url.searchParams.has('sendInitialEvents')) {
      response.writeHead(422).end(JSON.stringify(statusBody(422, 'not by this one')))
      return
    }
    response.writeHead(200, { 'content-type': 'application/json' })
    if (url.searchParams.has('watch')) response.flushHeaders()
    else response.end(JSON.stringify(listBody('50', this.objects.get(plural) ?? [])))
  }
}
