import { didYouMean } from '../../base/nearest.ts'
import { lazyKey } from '../../base/shared-values.ts'
import type { Dispenser } from '../../corefile/dispenser.ts'
import type { Directive } from '../../plugin/directive.ts'
import { type DeclaredDirective, scanDeclared } from './declared.ts'

/** What all blocks of a Corefile declare, by name. */
const DECLARED = lazyKey('plugin', () => new Map<string, DeclaredDirective>())

/**
 * `plugin NAME PACKAGE [before|after DIRECTIVE]`: declares a directive of an npm package. `names`: the directives of
 * Sextant.
 */
export function declaringBeside(names: readonly string[]): Directive {
  return {
    name: 'plugin',
    setup({ dispenser, shared }) {
      const known = new Set(names)
      while (dispenser.next()) {
        const declared = scanDeclared(dispenser)
        check(dispenser, declared, known)
        agree(dispenser, declared, shared.acquire(DECLARED))
        known.add(declared.name)
      }
      return {}
    },
  }
}

function check(d: Dispenser, { name, place }: DeclaredDirective, known: ReadonlySet<string>): void {
  if (known.has(name)) throw d.error(`the name ${name} is taken: choose another one`)
  if (known.has(place.directive)) return
  throw d.error(`unknown directive '${place.directive}'${didYouMean(place.directive, known)}`)
}

/** The order of the chain is the same in all blocks, and so is what a name means. */
function agree(
  d: Dispenser,
  declared: DeclaredDirective,
  all: Map<string, DeclaredDirective>,
): void {
  const { name, source, place } = all.get(declared.name) ?? declared
  all.set(name, { name, source, place })
  const isSamePlace =
    place.isBefore === declared.place.isBefore && place.directive === declared.place.directive
  if (source === declared.source && isSamePlace) return
  throw d.error(`another block declares ${name} in another way: use the same line in all blocks`)
}
