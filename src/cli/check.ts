import { resolve } from 'node:path'
import { InputError } from '../base/errors.ts'
import { type CorefileSource, loadCorefile } from '../server/corefile-source.ts'
import { Instance } from '../server/instance.ts'
import { describe, type SupervisorParts } from '../server/supervisor.ts'
import { ControlWiring } from '../server/wiring.ts'
import { scanCheckArgs } from './args.ts'
import { composeParts } from './compose.ts'
import { chooseCorefile } from './corefile.ts'
import type { Output } from './output.ts'

/**
 * `sextant check`: validates a Corefile, and with it every file that its directives read, without
 * listening. Prints each fault on a line with its place. Resolves to 0, or 1 if there is any.
 */
export async function check(argv: readonly string[], output: Output): Promise<number> {
  const args = scanCheckArgs(argv)
  if (typeof args === 'string') {
    output.printError(args)
    return 1
  }
  const parts = composeParts(args.dnsPort, output.lines)
  const sources: CorefileSource[] = []
  if (args.conf !== undefined || args.manifests === undefined) {
    sources.push(chooseCorefile(args.conf, args.dnsPort))
  }
  if (args.manifests !== undefined) sources.push(manifestCorefile(args.manifests))
  const faults = (await Promise.all(sources.map((source) => checkOne(source, parts)))).flat()
  const lines = new Set(faults.sort(byPlace).map(describe))
  for (const line of lines) output.printError(line)
  if (lines.size > 0) return 1
  output.print('no errors found')
  return 0
}

function byPlace(a: InputError, b: InputError): number {
  const [fileA, fileB] = [a.position?.file ?? '', b.position?.file ?? '']
  if (fileA !== fileB) return fileA < fileB ? -1 : 1
  return (a.position?.line ?? 0) - (b.position?.line ?? 0)
}

/** A Corefile that reads nothing but the manifests of one directory. */
function manifestCorefile(directory: string): CorefileSource {
  const path = resolve(directory).replaceAll('"', '\\"')
  const text = `. {\nkuadrant {\nmanifests "${path}"\n}\n}\n`
  return { kind: 'text', name: '--manifests', text }
}

/** Every fault of one Corefile: as far as its syntax allows, one does not hide another. */
async function checkOne(source: CorefileSource, parts: SupervisorParts): Promise<InputError[]> {
  const faults: InputError[] = []
  try {
    const { blocks, view } = loadCorefile(source, parts.dnsPort, {
      env: parts.env,
      directiveNames: parts.directiveNames,
      warn: parts.sink,
      onUnknown: (error) => faults.push(error),
    })
    const requestReload = () => Promise.resolve(false)
    const { instance, errors } = Instance.create(blocks, view, {
      ...parts,
      requestReload,
      wiring: new ControlWiring(),
    })
    return [...faults, ...errors, ...(await instance.check())]
  } catch (error) {
    if (!(error instanceof InputError)) throw error
    return [...faults, error]
  }
}
