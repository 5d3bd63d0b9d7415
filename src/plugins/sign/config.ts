import { resolve } from 'node:path'
import type { Position } from '../../base/errors.ts'
import { printName } from '../../dns/name/name.ts'
import { scanZoneArgsOrBlock } from '../../plugin/arguments/zones.ts'
import type { SetupContext } from '../../plugin/directive.ts'

const DIRECTORY_DEFAULT = '/var/lib/coredns'

/** One zone to sign. Paths are absolute. */
export interface SignConfig {
  /** Apex, lower-case wire form. */
  readonly zone: Uint8Array
  /** The file without signatures. */
  readonly path: string
  /** The file to write. */
  readonly signed: string
  /** Key files, with or without `.key` and `.private`. */
  readonly keyFiles: readonly string[]
  /** Directories with keys of zones. */
  readonly keyDirectories: readonly string[]
  /** Position of the line that names the file. */
  readonly position: Position
}

/** Reads the lines of the directive. */
export function scanConfig(c: SetupContext): readonly SignConfig[] {
  const d = c.dispenser
  const configs: SignConfig[] = []
  while (d.next()) {
    if (!d.nextArg()) throw d.argError()
    const position = d.position()
    const path = resolve(c.block.root, d.value())
    const zones = scanZoneArgsOrBlock(d, d.remainingArgs(), c.block)
    const keyFiles: string[] = []
    const keyDirectories: string[] = []
    let directory = DIRECTORY_DEFAULT
    d.eachProperty(() => {
      if (d.value() === 'directory') directory = resolve(c.block.root, d.onlyArg())
      else if (d.value() === 'key') {
        const [kind, ...args] = d.remainingArgs(2)
        const paths = args.map((arg) => resolve(c.block.root, arg))
        if (kind === 'file') keyFiles.push(...paths)
        else if (kind === 'directory') keyDirectories.push(...paths)
        else throw d.error(`unknown kind of key '${kind}'; write \`key file\` or \`key directory\``)
      } else throw d.unknownProperty(d.value(), ['key', 'directory'])
    })
    if (keyFiles.length + keyDirectories.length === 0)
      throw d.error('missing key; add `key file KEY...` or `key directory DIR` to the block')
    for (const zone of zones) {
      const signed = resolve(directory, fileNameOf(printName(zone)))
      const isTaken = configs.some((other) => other.signed === signed)
      if (isTaken) throw d.error(`${signed} belongs to another line of sign; remove one`)
      if (signed === path) throw d.error(`${path} would be replaced by its signed zone`)
      configs.push({ zone, path, signed, keyFiles, keyDirectories, position })
    }
  }
  return configs
}

/** `db.example.org.signed`, as CoreDNS. A slash is legal in names. */
function fileNameOf(zoneText: string): string {
  return `db.${zoneText.replaceAll('%', '%25').replaceAll('/', '%2F')}signed`
}
