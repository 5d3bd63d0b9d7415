import { existsSync } from 'node:fs'
import type { Directive } from '../../plugin/directive.ts'

/** `root PATH`: where relative paths of the block's other directives start. */
export const root: Directive = {
  name: 'root',
  setup(c) {
    while (c.dispenser.next()) {
      const args = c.dispenser.remainingArgs()
      if (args.length !== 1) throw c.dispenser.argError()
      c.block.root = args[0]!
    }
    // The folder may appear later, so that this is no error; but whoever mistyped it should know.
    c.onStartup(() => {
      if (!existsSync(c.block.root)) c.log.warning(`Root path does not exist: ${c.block.root}`)
    })
  },
}
