import { InputError } from '../base/errors.ts'
import { Explainer } from '../explain/explainer.ts'
import type { Explanation } from '../explain/explanation.ts'
import { printExplanation } from '../explain/print.ts'
import { scanExplainQuestion } from '../explain/question.ts'
import { LOCATOR } from '../geo/locator.ts'
import { ExplainableIndex, explainableZones } from '../publish/explainable.ts'
import type { OfflineBlock } from '../publish/offline/offline-block.ts'
import type { Instance } from '../server/instance.ts'
import { describe } from '../server/supervisor.ts'
import type { AdminArgs } from './admin-args.ts'
import { askAdmin, otherReply, readReply } from './admin-client.ts'
import { findAdmin } from './admin-target.ts'
import { chooseCorefile } from './corefile.ts'
import { type DataFormat, linesOfData } from './data-format.ts'
import { type ExplainArgs, scanExplainArgs } from './explain-args.ts'
import { loadOffline } from './offline.ts'
import { chooseRecords } from './offline-flags.ts'
import { errorLines, type Output } from './output.ts'
import { type Line, toned } from './tones.ts'

/**
 * `sextant explain`: prints why a client gets an answer: from a Corefile and the files that it
 * names, without listening, or from a running server. Resolves to 0, or to 1 if the arguments or
 * files are invalid, or the server refuses the request. The explanation is printed also if records
 * are invalid, because a server would serve the others.
 */
export async function runExplain(argv: readonly string[], output: Output): Promise<number> {
  const args = scanExplainArgs(argv)
  if (typeof args === 'string') {
    output.printError(args)
    return 1
  }
  try {
    const { admin } = args
    if (admin === undefined) return await explainOffline(args, output)
    await explainRunning(admin, args, output)
    return 0
  } catch (error) {
    if (!(error instanceof InputError)) throw error
    for (const one of error.all()) output.printError(describe(one))
    return 1
  }
}

async function explainRunning(
  admin: AdminArgs,
  { question, format }: ExplainArgs,
  output: Output,
): Promise<void> {
  scanExplainQuestion(question)
  const reply = await askAdmin(findAdmin(admin), {
    method: 'POST',
    path: '/v1/explain',
    body: question,
  })
  if (!isExplanation(reply)) throw otherReply('an explanation')
  for (const line of readReply('an explanation', () => linesOf(reply, format))) output.print(line)
}

/** Resolves to the exit code. */
async function explainOffline(args: ExplainArgs, output: Output): Promise<number> {
  const { dnsPort } = args
  const request = scanExplainQuestion(args.question)
  const corefile = chooseCorefile(args.conf, dnsPort)
  const records = chooseRecords(args.records)
  const lines = errorLines(output)
  const server = await loadOffline({ corefile, dnsPort, records, answers: true }, { lines })
  // Standard input cannot be read again.
  const rereadMax = args.records === '-' ? 0 : Number.POSITIVE_INFINITY
  const faults = new Set<InputError>()
  try {
    for (const block of server.blocks) {
      await serveExplainable(block, server.instance, output, rereadMax)
      for (const fault of (await block.zones.read()).store.faults.all()) faults.add(fault)
    }
    for (const fault of faults) output.printError(describe(fault))
    const explainer = await Explainer.open(server.instance)
    try {
      if (!explainer.serves) throw new InputError(undefined, 'the Corefile has no server block')
      for (const line of linesOf(explainer.explain(request), args.format)) output.print(line)
    } finally {
      explainer.close()
    }
    return faults.size === 0 ? 0 : 1
  } finally {
    await server.close()
    lines.flush()
  }
}

function linesOf(explanation: Explanation, format: DataFormat): Iterable<Line> {
  const table = (): Line[] => printExplanation(explanation).map(withTone)
  return linesOfData(format, { data: () => explanation, table })
}

/** The first line and each step are headings. */
function withTone(line: string, index: number): Line {
  if (index === 0 || line.startsWith('step ')) return [toned('heading', line)]
  if (line.startsWith('  * ')) return [toned('good', line)]
  return line.startsWith('      dropped:') ? [toned('bad', line)] : line
}

function isExplanation(reply: unknown): reply is Explanation {
  if (typeof reply !== 'object' || reply === null) return false
  const values = reply as Readonly<Record<string, unknown>>
  const objects = ['client', 'server', 'end']
  return (
    Array.isArray(values.steps) &&
    Array.isArray(values.answer) &&
    objects.every((name) => typeof values[name] === 'object' && values[name] !== null)
  )
}

/**
 * Fills the zones of a block, and makes their answers explainable. `rereadMax`: see
 * ExplainableParts.
 */
export async function serveExplainable(
  { block, zones, serve }: OfflineBlock,
  { parts: { resources } }: Instance,
  output: Pick<Output, 'printError'>,
  rereadMax = Number.POSITIVE_INFINITY,
): Promise<void> {
  const { image, table, zones: filled } = await serve()
  const { store, health, warnings } = await zones.read()
  for (const warning of warnings) output.printError(`[WARNING] ${warning}`)
  const index = resources.acquire(ExplainableIndex, '', () => new ExplainableIndex())
  index.item.add(
    explainableZones({
      handle: image.handle,
      table,
      locator: block.shared.find(LOCATOR),
      zone: (key) => {
        const records = filled.get(key)
        return records === undefined ? undefined : { records, serial: undefined }
      },
      placeOf: (key) => store.placeOf(key),
      downReason: (key, address) => health.reasonOf(key, address),
      rereadMax,
    }),
  )
}
