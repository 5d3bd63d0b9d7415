import { Dispenser } from '../../corefile/dispenser.ts'
import type { Token } from '../../corefile/token.ts'
import type { ChainPlace } from '../../plugin/directive.ts'

/** What a line `plugin NAME PACKAGE [before|after DIRECTIVE]` says. */
export interface DeclaredDirective {
  readonly name: string
  /** Name of the npm package. */
  readonly source: string
  readonly place: ChainPlace
}

/** Below what changes, limits and caches answers, above all that answer. */
const PLACE_DEFAULT: ChainPlace = { isBefore: true, directive: 'hosts' }
const NAME = /^[a-z][a-z0-9_]*$/
/** npm's names: no path, no URL and no file of a package. */
const PACKAGE = /^(?:@[a-z0-9-~][a-z0-9-._~]*\/)?[a-z0-9-~][a-z0-9-._~]*$/
const PACKAGE_CHARACTERS_MAX = 214

/** Returns the names that the lines `plugin` of a block declare, whether or not the rest of a line is valid. */
export function declaredNames(directives: ReadonlyMap<string, readonly Token[]>): string[] {
  const d = new Dispenser(directives.get('plugin') ?? [])
  const names: string[] = []
  while (d.next()) names.push(...d.remainingArgs().slice(0, 1))
  return names
}

/** Reads the line at the dispenser. Throws InputError. */
export function scanDeclared(d: Dispenser): DeclaredDirective {
  const args = d.remainingArgs(2, 4)
  d.noBlock()
  const [name = '', source = '', where, directive] = args
  if (!NAME.test(name)) {
    throw d.error(`${JSON.stringify(name)} is not a name of a directive: use a-z, 0-9 and _`)
  }
  if (!PACKAGE.test(source) || source.length > PACKAGE_CHARACTERS_MAX) {
    throw d.error(`${JSON.stringify(source)} is not a name of an npm package`)
  }
  if (where === undefined) return { name, source, place: PLACE_DEFAULT }
  if ((where !== 'before' && where !== 'after') || directive === undefined) {
    throw d.error(`expect before DIRECTIVE or after DIRECTIVE, not ${args.slice(2).join(' ')}`)
  }
  return { name, source, place: { isBefore: where === 'before', directive } }
}
