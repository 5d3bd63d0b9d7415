import type { Directive, LoadDirectives } from '../../../src/plugin/directive.ts'
import { DIRECTIVE_NAMES, loadDirectives } from '../../../src/plugins/order.ts'

/** `later`: hands every query to the next plugin a turn of the event loop later, as `forward` would. */
const later: Directive = {
  name: 'later',
  setup: () => ({
    handler: (next) => ({
      name: 'later',
      serve: async (tx) => {
        await new Promise((resolve) => setImmediate(resolve))
        return next.serve(tx)
      },
    }),
    waits: true,
  }),
}

/** All directives, and one that waits. */
export const WITH_LATER = {
  loadDirectives: (async (...of) => [...(await loadDirectives(...of)), later]) as LoadDirectives,
  directiveNames: DIRECTIVE_NAMES.flatMap((name) => (name === 'hosts' ? ['later', name] : [name])),
}
