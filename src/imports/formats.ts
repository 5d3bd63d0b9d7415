import { BIND } from './bind.ts'
import type { ImportFormat } from './import-format.ts'

/** All formats, in the order of the documentation. */
export const FORMATS: readonly ImportFormat[] = [BIND]
