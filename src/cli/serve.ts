import { SUPPORTED_NAMES } from '../plugins/order.ts'
import type { Output } from './output.ts'
import { scanServeArgs } from './serve-args.ts'
import { versionLines } from './version-lines.ts'

/**
 * `sextant serve`: runs a DNS server until a signal ends it. Resolves to the exit code: 0, 1 = did not
 * start, 2 = interrupted twice, 3 = a socket did not close, 4 = a shutdown hook failed.
 */
export async function serve(argv: readonly string[], output: Output): Promise<number> {
  const args = scanServeArgs(argv)
  if (typeof args === 'string') {
    output.printError(args)
    return 1
  }
  if (args.version || args.plugins) {
    for (const line of args.version ? versionLines() : pluginLines()) output.print(line)
    return 0
  }
  const { beginServer } = await import('./process-settings.ts')
  beginServer()
  const { runServer } = await import('./run-server.ts')
  return runServer(args, output)
}

/** The output of CoreDNS for `-plugins`. */
function pluginLines(): string[] {
  const names = SUPPORTED_NAMES.map((name) => `  dns.${name}`).sort()
  return ['Server types:', '  dns', '', 'Other plugins:', ...names]
}
