import type { Directive } from '../../../src/plugin/directive.ts'
import { loadDirectives, SUPPORTED_NAMES } from '../../../src/plugins/order.ts'

const block = { keys: [], directives: new Map(SUPPORTED_NAMES.map((name) => [name, []])) }
/** All directives of the server. */
export const DIRECTIVES: readonly Directive[] = await loadDirectives([block], '')
