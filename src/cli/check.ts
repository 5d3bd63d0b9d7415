import { AbsentDirectiveWarning, InputError } from '../base/errors.ts'
import { printLine } from '../base/telemetry/lines.ts'
import type { ServerBlock } from '../corefile/parser.ts'
import { DIRECTIVE_NAMES } from '../plugins/order.ts'
import { declaredNames } from '../plugins/plugin/declared.ts'
import type { Warn } from '../publish/offline/check-manifests.ts'
import { type CorefileSource, loadCorefile } from '../server/corefile-source.ts'
import { describe } from '../server/supervisor.ts'
import { type CheckArgs, scanCheckArgs } from './check-args.ts'
import { chooseCorefile, STDIN } from './corefile.ts'
import { type DataFormat, printData } from './data-format.ts'
import { composeInstance } from './offline.ts'
import { errorLines, type Output } from './output.ts'
import { toned } from './tones.ts'

/** Collects what a check finds. */
interface Findings {
  readonly faults: InputError[]
  readonly warnings: InputError[]
  /** What was read, one line each. */
  readonly read: string[]
  /** What will happen in an event, one line each. */
  readonly foreseen: string[]
}

/**
 * `sextant check`: validates a Corefile and every file that its directives read, without listening.
 * Prints what it read, each fault on a line with its place, and warnings about data that is served
 * differently from what its author may expect. Resolves to 0, or to 1 if there is any fault, or
 * with `-strict` any warning.
 */
export async function check(argv: readonly string[], output: Output): Promise<number> {
  const args = scanCheckArgs(argv)
  if (typeof args === 'string') {
    output.printError(args)
    return 1
  }
  const findings: Findings = { faults: [], warnings: [], read: [], foreseen: [] }
  if (args.conf !== undefined || args.manifests === undefined) {
    await checkCorefile(args, output, findings)
  }
  if (args.manifests !== undefined) await checkDirectory(args.manifests, findings)
  const isFaulty = findings.faults.length > 0
  const warnings = findings.warnings.filter((one) => !isFaulty || !isOfAbsent(one))
  const isValid = !isFaulty && !(args.strict && warnings.length > 0)
  printFindings({ ...findings, warnings }, isValid, args.format, output)
  return isValid ? 0 : 1
}

function printFindings(
  { faults, warnings, read, foreseen }: Findings,
  isValid: boolean,
  format: DataFormat,
  output: Output,
): void {
  const lines = { warnings: linesOf(warnings), faults: linesOf(faults) }
  const count = lines.warnings.length
  const besides = count === 0 ? '' : `, ${count} ${count === 1 ? 'warning' : 'warnings'}`
  const about = new Set([...read.map((line) => `read ${line}`), ...foreseen])
  printData(output, format, {
    data: () => ({ isValid, read, foreseen, ...lines }),
    table: () => {
      for (const line of faults.length > 0 ? [] : about) output.print(line)
      for (const line of lines.warnings) output.printError(`[WARNING] ${line}`)
      for (const line of lines.faults) output.printError(line)
      return isValid ? [[toned('good', `no errors found${besides}`)]] : []
    },
  })
}

/** The directive that the warning misses may be one of those with a fault. */
function isOfAbsent(warning: InputError): boolean {
  return warning instanceof AbsentDirectiveWarning
}

/** Each line once, ordered by place: blocks over one directory find the same faults in it. */
function linesOf(errors: InputError[]): string[] {
  return [...new Set(errors.sort(byPlace).map(describe))]
}

function byPlace(a: InputError, b: InputError): number {
  const [fileA, fileB] = [a.position?.file ?? '', b.position?.file ?? '']
  if (fileA !== fileB) return fileA < fileB ? -1 : 1
  return (a.position?.line ?? 0) - (b.position?.line ?? 0)
}

/** Every fault of the manifests of one directory. */
async function checkDirectory(
  directory: string,
  { faults, warnings, read }: Findings,
): Promise<void> {
  try {
    const { checkManifests } = await import('../publish/offline/check-manifests.ts')
    const warn: Warn = (warning) => warnings.push(warning)
    faults.push(...(await checkManifests(directory, warn, (what) => read.push(what))))
  } catch (error) {
    if (!(error instanceof InputError)) throw error
    faults.push(new InputError(error.position, `--manifests ${error.message}`, error))
  }
}

/** Every fault of one Corefile. As far as its syntax allows, one fault does not hide another. */
async function checkCorefile(
  { conf, dnsPort, offline, format }: CheckArgs,
  output: Output,
  { faults, warnings, read, foreseen }: Findings,
): Promise<void> {
  try {
    const source = chooseCorefile(conf, dnsPort)
    const { blocks, view } = loadCorefile(source, dnsPort, {
      env: process.env,
      directiveNames: DIRECTIVE_NAMES,
      declaredNames,
      warn: (message) => warnings.push(new InputError(undefined, message)),
      onUnknown: (error) => faults.push(error),
    })
    if (isBuiltIn(source)) foreseen.push(printBuiltIn(dnsPort))
    else read.push(describeBlocks(source, blocks))
    // Log lines must not be between the lines of data.
    const lines = format === 'json' || format === 'yaml' ? errorLines(output) : output.lines
    const { instance, errors } = await composeInstance(blocks, view, dnsPort, {
      lines,
      sink: (line) => printLine(lines, line),
    })
    warnings.push(...instance.warnings)
    faults.push(...errors)
    const found = await instance.check({
      warn: (warning) => void warnings.push(warning),
      read: (what) => void read.push(what),
      foresee: (line) => void foreseen.push(line),
      isOffline: offline,
    })
    faults.push(...found)
  } catch (error) {
    if (!(error instanceof InputError)) throw error
    faults.push(error)
  }
}

/** True if no file and no standard input has a Corefile. */
function isBuiltIn(source: CorefileSource): boolean {
  return source.kind === 'text' && source.name !== STDIN
}

function printBuiltIn(dnsPort: number): string {
  return `no Corefile in this directory: checked the built-in one, .:${dnsPort} { whoami log }; name yours with -conf FILE`
}

/** `Corefile: 2 server blocks: example.org, .:53`. */
function describeBlocks(source: CorefileSource, blocks: readonly ServerBlock[]): string {
  const name = source.kind === 'file' ? source.path : source.name
  const keys = blocks.flatMap((block) => block.keys.map(({ text }) => text))
  const count = `${blocks.length} server ${blocks.length === 1 ? 'block' : 'blocks'}`
  return `${name}: ${count}: ${keys.join(', ')}`
}
