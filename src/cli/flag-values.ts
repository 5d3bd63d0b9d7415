import { scanDuration } from '../base/duration.ts'
import { type Cidr, scanCidr } from '../dns/text/address.ts'
import { FALSE, TRUE } from './args.ts'

/** Returns the value of a flag as text; '' = not given. */
export type Get = (name: string) => string

/** The value of a flag is invalid. */
export class BadValue extends Error {
  constructor(name: string, value: string, want: string) {
    super(`invalid value ${JSON.stringify(value)} for --${name}: must be ${want}`)
  }
}

export function duration(name: string, get: Get): number {
  const ms = scanDuration(get(name))
  if (ms === undefined || ms <= 0)
    throw new BadValue(name, get(name), 'a duration above 0, for example 30s or 15m')
  return ms
}

export function networks(name: string, get: Get): readonly Cidr[] {
  return wordsOf(get(name)).map((text) => {
    const cidr = scanCidr(text)
    if (cidr === undefined)
      throw new BadValue(name, text, 'a comma list of networks, for example 192.0.2.0/24')
    return cidr
  })
}

export function wordsOf(list: string): string[] {
  return list
    .split(',')
    .map((word) => word.trim())
    .filter((word) => word !== '')
}

export function boolean(name: string, get: Get): boolean {
  const text = get(name)
  if (TRUE.test(text)) return true
  if (FALSE.test(text)) return false
  throw new BadValue(name, text, 'true or false')
}
