import { type IncomingMessage, request as requestHttp } from 'node:http'
import { type RequestOptions, request as requestHttps } from 'node:https'
import { VERSION } from '../base/version.ts'
import { type ApiBody, type ApiClient, ApiError, type ApiMethod, type ApiResponse } from './api.ts'
import type { KubeConfig } from './client-library.ts'
import { KeptAgent } from './kept-agent.ts'

/** TCP keepalive detects a lost peer even if no data is sent. */
const KEEP_ALIVE_MS = 15_000

/** Sends requests to an API server over HTTPS, with the credentials of a kubeconfig. */
export class HttpsClient implements ApiClient {
  readonly #load: () => Promise<KubeConfig>
  #config: KubeConfig
  readonly #agent = new KeptAgent()
  #isStale = false
  /** Requests that were aborted while their credentials were fetched. The fetch continues. */
  #abandoned = 0

  /** `config`: the result of the first `load`. */
  constructor(config: KubeConfig, load: () => Promise<KubeConfig>) {
    this.#config = config
    this.#load = load
  }

  get place(): string {
    return this.#config.getCurrentCluster()?.server ?? ''
  }

  refresh(): void {
    this.#isStale = true
  }

  get(path: string, signal: AbortSignal): Promise<ApiResponse> {
    return this.send('GET', path, undefined, signal)
  }

  async send(
    method: ApiMethod,
    path: string,
    body: ApiBody | undefined,
    signal: AbortSignal,
  ): Promise<ApiResponse> {
    if (this.#isStale) {
      this.#config = await this.#load()
      this.#isStale = false
    }
    const url = new URL(this.place.replace(/\/+$/, '') + path)
    const headers: Record<string, string> = {
      Accept: 'application/json',
      'User-Agent': `sextant/${VERSION}`,
    }
    const options: RequestOptions = { method, headers, signal }
    await this.#authenticateInTime(options, signal)
    trimToken(headers)
    if (body !== undefined) {
      headers['Content-Type'] = body.contentType
      // Without it, the body of a DELETE has no length, and the server parses it as the next request.
      headers['Content-Length'] = String(Buffer.byteLength(body.body))
    }
    // The library creates an agent for each request, which is needed only for a proxy.
    if (!this.#config.getCurrentCluster()?.proxyUrl)
      options.agent = this.#agent.of(url.protocol, options)
    const response = await exchange(url, options, body?.body)
    // The header may also hold a date, which is ignored.
    const retryAfter = Number(response.headers['retry-after']) || 0
    return {
      status: response.statusCode ?? 0,
      retryAfterSeconds: Math.max(retryAfter, 0),
      dateMs: Date.parse(response.headers.date ?? '') || undefined,
      body: response,
    }
  }

  /**
   * Fetching credentials has no time limit of its own. While one fetch hangs, no other is started.
   */
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

/** Trims a token: its file may end with a newline, which a header must not contain. */
function trimToken(headers: Record<string, string>): void {
  const { Authorization: value } = headers
  if (value !== undefined) headers.Authorization = value.trim()
}

/** Copies only the code of the original error: the output of a plugin may contain credentials. */
function credentialsError(error: unknown): ApiError {
  const code = error instanceof Error && 'code' in error ? ` (${String(error.code)})` : ''
  const cure = 'check the `exec` command or the files of the kubeconfig'
  return new ApiError(0, `credentials could not be fetched${code}: ${cure}`)
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
}

function exchange(
  url: URL,
  options: RequestOptions,
  body: string | undefined,
): Promise<IncomingMessage> {
  const request = url.protocol === 'http:' ? requestHttp : requestHttps
  return new Promise((resolve, reject) => {
    const sent = request(url, options, resolve)
    sent.on('socket', (socket) => socket.setKeepAlive(true, KEEP_ALIVE_MS))
    sent.on('error', (error) => reject(error))
    sent.end(body)
  })
}
