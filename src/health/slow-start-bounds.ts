/** Shortest and longest slow start. */
export const SLOW_START_MS_MIN = 1000
export const SLOW_START_MS_MAX = 24 * 3600 * 1000
