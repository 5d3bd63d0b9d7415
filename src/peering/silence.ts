import { yieldMsOf } from './merge/choose-site-states.ts'

/** `late`: another nameserver of its site takes precedence. `expired`: its data has expired. */
export type Silence = 'none' | 'late' | 'expired'

/** `checkMs`: interval of the checks. */
export function silenceAfter(silentMs: number, expiryMs: number, checkMs: number): Silence {
  if (silentMs >= expiryMs) return 'expired'
  return silentMs > yieldMsOf(expiryMs) + checkMs ? 'late' : 'none'
}
