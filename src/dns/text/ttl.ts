const SECONDS_OF_UNIT = { w: 604800, d: 86400, h: 3600, m: 60, s: 1 } as const

/**
 * Parses a TTL or another number of seconds: a number, or numbers with the units w d h m s in that
 * order, each at most once, as in `1h30m`. Returns undefined for anything else or above 2^32-1.
 */
export function scanTtl(text: string): number | undefined {
  if (text.length > 60) return undefined
  if (/^\d+$/.test(text)) return withinU32(Number(text))
  const parts = /^(?:\d+w)?(?:\d+d)?(?:\d+h)?(?:\d+m)?(?:\d+s)?$/i.test(text)
  if (!parts || text === '') return undefined
  let seconds = 0
  for (const [, count, unit] of text.toLowerCase().matchAll(/(\d+)([wdhms])/g)) {
    seconds += Number(count) * SECONDS_OF_UNIT[unit as keyof typeof SECONDS_OF_UNIT]
  }
  return withinU32(seconds)
}

function withinU32(seconds: number): number | undefined {
  return seconds <= 0xffffffff ? seconds : undefined
}
