import { key } from '../base/shared-values.ts'

/** Provided if traffic is counted for the console. */
export const COUNTS_TRAFFIC = key<true>('traffic is counted')
