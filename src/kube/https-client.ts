import { type IncomingMessage, request as requestHttp } from 'node:http'
import { type RequestOptions, request as requestHttps } from 'node:https'
import type { KubeConfig } from '@kubernetes/client-node'
import { VERSION } from '../base/version.ts'
import { type ApiClient, ApiError, type ApiResponse } from './api.ts'

/** Finds out that a peer is gone although nothing is sent. */
const KEEP_ALIVE_MS = 15_000

/** Asks an API server over HTTPS, with the credentials of a kubeconfig. */
export class HttpsClient implements ApiClient {
  readonly #load: () => Promise<KubeConfig>
  #config: KubeConfig
  #isStale = false
  /** Requests that were given up while their credentials were fetched, which goes on. */
  #abandoned = 0

  /** `config`: what `load` gave. */
  constructor(config: KubeConfig, load: () => Promise<KubeConfig>) {
    this.#config = config
    this.#load = load
  }

  refresh(): void {
    this.#isStale = true
  }

  async get(path: string, signal: AbortSignal): Promise<ApiResponse> {
    if (this.#isStale) {
      this.#config = await this.#load()
      this.#isStale = false
    }
    const server = this.#config.getCurrentCluster()?.server ?? ''
    const url = new URL(server.replace(/\/+$/, '') + path)
    const headers: Record<string, string> = {
      Accept: 'application/json',
      'User-Agent': `sextant/${VERSION}`,
    }
    const options: RequestOptions = { headers, signal }
    await this.#authenticateInTime(options, signal)
    trimToken(headers)
    const response = await send(url, options)
    // A date, which it may be as well, is no number.
    const retryAfter = Number(response.headers['retry-after']) || 0
    return {
      status: response.statusCode ?? 0,
      retryAfterSeconds: Math.max(retryAfter, 0),
      body: response,
    }
  }

  /** What fetches credentials has no bound of its own: while one hangs no other is started. */
  async #authenticateInTime(options: RequestOptions, signal: AbortSignal): Promise<void> {
    if (this.#abandoned > 0) throw new ApiError(0, 'credentials are still being fetched')
    let isOver = false
    const fetching = this.#authenticate(options).finally(() => {
      isOver = true
    })
    try {
      await Promise.race([fetching, aborted(signal)])
    } catch (error) {
      if (!isOver) this.#abandon(fetching)
      throw error
    }
  }

  #abandon(fetching: Promise<void>): void {
    this.#abandoned++
    const forget = (): void => {
      this.#abandoned--
    }
    fetching.then(forget, forget)
  }

  async #authenticate(options: RequestOptions): Promise<void> {
    try {
      await this.#config.applyToHTTPSOptions(options)
    } catch (error) {
      throw credentialsError(error)
    }
  }
}

/** The file of a token may end with a newline, which no header may hold. */
function trimToken(headers: Record<string, string>): void {
  const { Authorization: value } = headers
  if (value !== undefined) headers.Authorization = value.trim()
}

/** Of the original only the code: what a plugin wrote may hold credentials. */
function credentialsError(error: unknown): ApiError {
  const code = error instanceof Error && 'code' in error ? ` (${String(error.code)})` : ''
  const cure = 'see what the `exec` or the files of the kubeconfig give'
  return new ApiError(0, `credentials could not be fetched${code}: ${cure}`)
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
}

function send(url: URL, options: RequestOptions): Promise<IncomingMessage> {
  const request = url.protocol === 'http:' ? requestHttp : requestHttps
  return new Promise((resolve, reject) => {
    const sent = request(url, options, resolve)
    sent.on('socket', (socket) => socket.setKeepAlive(true, KEEP_ALIVE_MS))
    sent.on('error', (error) => reject(error))
    sent.end()
  })
}
