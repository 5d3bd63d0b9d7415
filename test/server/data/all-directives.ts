import type { Directive } from '../../../src/plugin/directive.ts'
import { loadDirectives, SUPPORTED_NAMES } from '../../../src/plugins/order.ts'

/** All directives of the server. */
export const DIRECTIVES: readonly Directive[] = await loadDirectives(new Set(SUPPORTED_NAMES))
