import { systemClock } from '../base/clock.ts'
import { InputError } from '../base/errors.ts'
import { DIRECTIVE_NAMES, loadDirectives } from '../plugins/order.ts'
import type { Warn } from '../record/manifests/check-manifests.ts'
import { loadCorefile } from '../server/corefile-source.ts'
import { ServerTotals } from '../server/counters.ts'
import { Instance } from '../server/instance.ts'
import { namedDirectives } from '../server/setup.ts'
import { describe } from '../server/supervisor.ts'
import { ControlWiring } from '../server/wiring.ts'
import { printLine } from '../telemetry/lines.ts'
import { NO_METRICS } from '../telemetry/metrics.ts'
import { type CheckArgs, scanCheckArgs } from './args.ts'
import { chooseCorefile } from './corefile.ts'
import type { Output } from './output.ts'

/**
 * `sextant check`: validates a Corefile, and with it every file that its directives read, without
 * listening. Prints each fault on a line with its place, and warnings of what is served otherwise than
 * it may be meant. Resolves to 0, or 1 if there is any fault.
 */
export async function check(argv: readonly string[], output: Output): Promise<number> {
  const args = scanCheckArgs(argv)
  if (typeof args === 'string') {
    output.printError(args)
    return 1
  }
  const faults: InputError[] = []
  const warnings: InputError[] = []
  const warn: Warn = (warning) => warnings.push(warning)
  if (args.conf !== undefined || args.manifests === undefined) {
    faults.push(...(await checkCorefile(args, output, warn)))
  }
  if (args.manifests !== undefined) faults.push(...(await checkDirectory(args.manifests, warn)))
  const faultLines = linesOf(faults)
  const warningLines = linesOf(warnings)
  for (const line of warningLines) output.printError(`[WARNING] ${line}`)
  for (const line of faultLines) output.printError(line)
  if (faultLines.length > 0) return 1
  const count = warningLines.length
  const besides = count === 0 ? '' : `, ${count} ${count === 1 ? 'warning' : 'warnings'}`
  output.print(`no errors found${besides}`)
  return 0
}

/** Each once, in order of place: blocks over one directory find the same in it. */
function linesOf(errors: InputError[]): string[] {
  return [...new Set(errors.sort(byPlace).map(describe))]
}

function byPlace(a: InputError, b: InputError): number {
  const [fileA, fileB] = [a.position?.file ?? '', b.position?.file ?? '']
  if (fileA !== fileB) return fileA < fileB ? -1 : 1
  return (a.position?.line ?? 0) - (b.position?.line ?? 0)
}

/** Every fault of the manifests of one directory. */
async function checkDirectory(directory: string, warn: Warn): Promise<readonly InputError[]> {
  try {
    const { checkManifests } = await import('../record/manifests/check-manifests.ts')
    return await checkManifests(directory, warn)
  } catch (error) {
    if (!(error instanceof InputError)) throw error
    return [new InputError(error.code, error.position, `--manifests ${error.message}`, error)]
  }
}

/** Every fault of one Corefile: as far as its syntax allows, one does not hide another. */
async function checkCorefile(
  { conf, dnsPort }: CheckArgs,
  { lines }: Output,
  warn: Warn,
): Promise<InputError[]> {
  const faults: InputError[] = []
  const sink = (line: string): void => printLine(lines, line)
  try {
    const { blocks, view } = loadCorefile(chooseCorefile(conf, dnsPort), dnsPort, {
      env: process.env,
      directiveNames: DIRECTIVE_NAMES,
      warn: sink,
      onUnknown: (error) => faults.push(error),
    })
    const { instance, errors } = Instance.create(blocks, view, {
      directives: await loadDirectives(namedDirectives(blocks)),
      directiveNames: DIRECTIVE_NAMES,
      dnsPort,
      clock: systemClock,
      metrics: NO_METRICS,
      serverCounters: new ServerTotals(),
      sink,
      lines,
      requestReload: () => Promise.resolve('nothing is served'),
      wiring: new ControlWiring(),
    })
    return [...faults, ...errors, ...(await instance.check(warn))]
  } catch (error) {
    if (!(error instanceof InputError)) throw error
    return [...faults, error]
  }
}
