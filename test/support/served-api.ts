import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { Test } from 'tap'
import type { ApiMethod } from '../../src/kube/api.ts'
import { MemoryApi } from './memory-api.ts'
import { temporaryDirectory } from './temporary-directory.ts'

/** An API server in memory, and how to write kubeconfigs of it. */
export interface ServedApi {
  readonly api: MemoryApi
  /** Each server of a test has its own file: those with the same share what belongs to one process. */
  kubeconfig(user: string): string
}

/** Serves a MemoryApi at a port. A request for which `refuse` returns a status is refused. */
export async function serveApi(t: Test): Promise<ServedApi> {
  const api = new MemoryApi()
  const directory = temporaryDirectory(t)
  const server = createServer(async (request, response) => {
    const chunks: Uint8Array[] = []
    for await (const chunk of request) chunks.push(chunk)
    const body = { contentType: request.headers['content-type'] ?? '', body: '' }
    const sent = { ...body, body: Buffer.concat(chunks).toString('utf8') }
    const signal = new AbortController().signal
    const { method, url = '' } = request
    const isRead = method === 'GET'
    const reply = await api.send(method as ApiMethod, url, isRead ? undefined : sent, signal)
    response.writeHead(reply.status, { 'content-type': 'application/json' })
    for await (const chunk of reply.body) response.write(chunk)
    response.end()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  const kubeconfig = (user: string): string => {
    const path = join(directory, user)
    const config = {
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': 'main',
      clusters: [{ name: 'main', cluster: { server: `http://127.0.0.1:${port}` } }],
      users: [{ name: user, user: { token: user } }],
      contexts: [{ name: 'main', context: { cluster: 'main', user } }],
    }
    writeFileSync(path, JSON.stringify(config), { mode: 0o600 })
    return path
  }
  return { api, kubeconfig }
}
