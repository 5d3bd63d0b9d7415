/** Shortest and longest slow start. */
export const RAMP_UP_MS_MIN = 1000
export const RAMP_UP_MS_MAX = 24 * 3600 * 1000
