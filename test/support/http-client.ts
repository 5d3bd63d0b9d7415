import { type RequestOptions, request } from 'node:http'
import { request as requestTls } from 'node:https'

export interface HttpAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, unknown>>
  readonly body: string
}

/** Sends a request to a server on 127.0.0.1, over TLS if `ca` is set. */
export function fetchLocal(
  port: number,
  options: RequestOptions & { readonly ca?: string; readonly servername?: string },
  body?: string | Buffer,
): Promise<HttpAnswer> {
  return new Promise((resolve, reject) => {
    const send = options.ca === undefined ? request : requestTls
    const sent = send({ host: '127.0.0.1', port, agent: false, ...options }, (response) => {
      let text = ''
      response.on('data', (chunk) => {
        text += String(chunk)
      })
      response.on('error', reject)
      response.on('end', () => {
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: text })
      })
    })
    sent.on('error', reject)
    sent.end(body)
  })
}
