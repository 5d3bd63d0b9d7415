import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { describe } from '../server/supervisor.ts'
import { scanHealthArgs } from './health-args.ts'
import type { Output } from './output.ts'

/** Above the time that a server which answers queries needs. */
const REPLY_MS_MAX = 5000

/**
 * `sextant health`: requests the health page of a running server, for container runtimes without HTTP probes. Resolves
 * to 0 if the status is 200, else to 1 with one line.
 */
export async function runHealth(argv: readonly string[], output: Output): Promise<number> {
  try {
    const url = scanHealthArgs(argv)
    const request = get(url, { agent: false, signal: AbortSignal.timeout(REPLY_MS_MAX) })
    const [response]: IncomingMessage[] = await once(request, 'response')
    const { statusCode } = response!
    request.destroy()
    if (statusCode === 200) return 0
    output.printError(`${url}: status ${statusCode}`)
  } catch (error) {
    output.printError(describe(error))
  }
  return 1
}
