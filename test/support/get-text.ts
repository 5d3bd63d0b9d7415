import { get } from 'node:http'

/**
 * What an HTTP server answers to a GET, over a connection of its own: one that is kept may be closed by the server just when it
 * is used again. Rejects where there is no answer.
 */
export function getText(
  url: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<{ readonly status: number; readonly text: string }> {
  return new Promise((resolve, reject) => {
    const request = get(url, { agent: false, headers }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk) => chunks.push(chunk))
      response.on('error', reject)
      response.on('end', () => {
        resolve({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString() })
      })
    })
    request.on('error', reject)
  })
}
