/** Shortest and longest slow start. */
export const SLOW_START_MS_MIN = 1000
export const SLOW_START_MS_MAX = 24 * 3600 * 1000
/**
 * Time for which a new record may still be incomplete, in milliseconds. Addresses that sites or
 * peers add during this time have no slow start. Otherwise the site that is reported first would
 * receive all clients.
 */
export const SETTLE_MS = 30_000
