/** How long the word of a silent site holds. */
export const EXPIRY_DEFAULT_MS = 24 * 3600 * 1000
