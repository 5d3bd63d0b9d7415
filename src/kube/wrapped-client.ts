import type { ApiBody, ApiClient, ApiMethod, ApiResponse } from './api.ts'

/** A client that passes requests to another one, and does something around each. */
export abstract class WrappedClient implements ApiClient {
  readonly #client: ApiClient

  constructor(client: ApiClient) {
    this.#client = client
  }

  get place(): string {
    return this.#client.place
  }

  get(path: string, signal: AbortSignal): Promise<ApiResponse> {
    return this.around('GET', () => this.#client.get(path, signal))
  }

  send(
    method: ApiMethod,
    path: string,
    body: ApiBody | undefined,
    signal: AbortSignal,
  ): Promise<ApiResponse> {
    return this.around(method, () => this.#client.send(method, path, body, signal))
  }

  refresh(): void {
    this.#client.refresh()
  }

  /** Calls `exchange`, which makes the request, and returns the response. */
  protected abstract around(
    method: ApiMethod,
    exchange: () => Promise<ApiResponse>,
  ): Promise<ApiResponse>
}
