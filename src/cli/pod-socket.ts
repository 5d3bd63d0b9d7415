import { once } from 'node:events'
import { createServer } from 'node:net'
import type { KubeConfig } from '../kube/client-library.ts'
import { forwardToPod, type PodPort } from '../kube/port-forward.ts'

/** A Unix socket that leads to a port of a Pod. */
interface PodSocket {
  readonly path: string
  /** Why the last connection did not reach the port; '' = no fault. */
  fault(): string
  close(): void
}

/** Opens a socket at `path`, whose folder is that of one user: any process that opens the socket reaches the port. */
export async function openPodSocket(
  config: KubeConfig,
  to: PodPort,
  path: string,
): Promise<PodSocket> {
  let fault = ''
  const server = createServer((local) => {
    fault = ''
    void forwardToPod(config, to, local, (reason) => {
      fault = withCure(reason)
    })
  })
  server.listen(path)
  await once(server, 'listening')
  return { path, fault: () => fault, close: () => void server.close() }
}

function withCure(reason: string): string {
  const isRefused = /connection refused/i.test(reason)
  return isRefused ? `${reason}; add the directive admin to the Corefile, or use --port N` : reason
}
