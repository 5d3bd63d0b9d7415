import { existsSync } from 'node:fs'
import { InputError } from '../../base/errors.ts'
import type { Directive } from '../../plugin/directive.ts'

/** `root PATH`: base directory of relative paths in the block's other directives. */
export const root: Directive = {
  name: 'root',
  setup(c) {
    let position = c.dispenser.position()
    while (c.dispenser.next()) {
      position = c.dispenser.position()
      c.block.root = c.dispenser.onlyArg()
    }
    // The folder may be created later, so a missing one causes only a warning.
    const fault = (): string =>
      existsSync(c.block.root) ? '' : `Root path does not exist: ${c.block.root}`
    return {
      start: () => {
        const text = fault()
        if (text !== '') c.log.warning(text, 'root-warning')
      },
      check: ({ warn }) => {
        const text = fault()
        if (text !== '') warn(new InputError(position, text))
        return []
      },
    }
  },
}
