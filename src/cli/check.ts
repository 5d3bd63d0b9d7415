import { AbsentDirectiveWarning, InputError } from '../base/errors.ts'
import { printLine } from '../base/telemetry/lines.ts'
import { escapeControls } from '../base/telemetry/log.ts'
import type { ServerBlock } from '../corefile/parser.ts'
import { DIRECTIVE_NAMES, declaredNames } from '../plugins/order.ts'
import type { Warn } from '../publish/offline/check-manifests.ts'
import { type CorefileSource, loadCorefile } from '../server/corefile-source.ts'
import { describe } from '../server/supervisor.ts'
import { type CheckArgs, scanCheckArgs } from './check-args.ts'
import { chooseCorefile, STDIN } from './corefile.ts'
import { composeInstance } from './offline.ts'
import type { Output } from './output.ts'

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
  const faultLines = linesOf(findings.faults)
  const isFaulty = faultLines.length > 0
  const warnings = findings.warnings.filter((one) => !isFaulty || !isOfAbsent(one))
  const warningLines = linesOf(warnings)
  if (!isFaulty) {
    const read = findings.read.map((line) => `read ${line}`)
    const lines = new Set([...read, ...findings.foreseen])
    for (const line of lines) output.print(escapeControls(line))
  }
  for (const line of warningLines) output.printError(`[WARNING] ${line}`)
  for (const line of faultLines) output.printError(line)
  const count = warningLines.length
  if (isFaulty || (args.strict && count > 0)) return 1
  const besides = count === 0 ? '' : `, ${count} ${count === 1 ? 'warning' : 'warnings'}`
  output.print(`no errors found${besides}`)
  return 0
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
  { conf, dnsPort, offline }: CheckArgs,
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
    const { instance, errors } = await composeInstance(blocks, view, dnsPort, {
      lines: output.lines,
      sink: (line) => printLine(output.lines, line),
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
