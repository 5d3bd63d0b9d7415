import { scanNodeArgs } from './node-args.ts'
import type { Output } from './output.ts'

/** `sextant node`: `sextant serve` with a Corefile for the node agent. Resolves to the exit code of `serve`. */
export async function runNode(argv: readonly string[], output: Output): Promise<number> {
  const args = scanNodeArgs(argv)
  if (typeof args === 'string') {
    output.printError(args)
    return 1
  }
  const { corefile, printsConf } = args
  if (printsConf) {
    for (const line of corefile.trimEnd().split('\n')) output.print(line)
    return 0
  }
  const { beginServer } = await import('./process-settings.ts')
  beginServer()
  const { runServer } = await import('./run-server.ts')
  return runServer({ ...args, dnsPort: 53, examples: false }, output)
}
