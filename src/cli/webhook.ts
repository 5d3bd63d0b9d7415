import { resolve } from 'node:path'
import { printLine } from '../base/telemetry/lines.ts'
import { createLogger } from '../base/telemetry/log.ts'
import type { Output } from './output.ts'
import { scanWebhookArgs } from './webhook-args.ts'

/**
 * `sextant webhook`: the webhook provider of external-dns, until a signal ends it. Resolves to the exit code: 0, 1 =
 * did not start.
 */
export async function runWebhook(argv: readonly string[], output: Output): Promise<number> {
  const args = scanWebhookArgs(argv, process.env)
  if (typeof args === 'string') {
    output.printError(args)
    return 1
  }
  const log = createLogger(
    '',
    (line) => printLine(output.lines, line),
    () => false,
  )
  try {
    const { serveWebhook } = await import('./serve-webhook.ts')
    const manifests = args.manifests === '' ? '' : resolve(args.manifests)
    const kubeconfig = args.kubeconfig === '' ? '' : resolve(args.kubeconfig)
    return await serveWebhook({ ...args, manifests, kubeconfig }, log)
  } catch (error) {
    output.printError(error instanceof Error ? error.message : String(error))
    return 1
  }
}
