/** How long the data of a silent site is served. */
export const EXPIRY_DEFAULT_MS = 24 * 3600 * 1000
