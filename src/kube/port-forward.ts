import type { Socket } from 'node:net'
import { PassThrough } from 'node:stream'
import { type KubeConfig, openPortForward } from './client-library.ts'

/** A port of a Pod. */
export interface PodPort {
  readonly namespace: string
  readonly pod: string
  readonly port: number
}

/**
 * Joins a connection with a port of a Pod, through the API server and the kubelet. The port may be one that listens on
 * loopback only. If that fails, calls `fail` with the reason and ends the connection.
 */
export async function forwardToPod(
  config: KubeConfig,
  to: PodPort,
  local: Socket,
  fail: (reason: string) => void,
): Promise<void> {
  const errors = new PassThrough()
  errors.on('data', (octets: Buffer) => {
    // The first frame has no text.
    const reason = octets.toString().trim()
    if (reason === '') return
    fail(reason)
    local.destroy()
  })
  local.on('error', () => local.destroy())
  try {
    const tunnel = await openPortForward(config, to, { local, errors })
    tunnel.onclose = () => local.end()
    local.on('close', () => tunnel.close())
  } catch (error) {
    fail(refusalOf(error))
    local.destroy()
  }
}

function refusalOf(error: unknown): string {
  const hasMessage = typeof error === 'object' && error !== null && 'message' in error
  const message = hasMessage ? String(error.message) : 'no connection'
  const isRefused = /\b40[13]\b/.test(message)
  const cure = isRefused ? '; you need the rights to get and create pods/portforward' : ''
  return `the API server does not forward a port: ${message}${cure}`
}
