import { scanJsonText } from '../base/json-text.ts'
import type { StateKind } from '../base/persist/state-file.ts'
import { SLOW_START_MS_MAX } from './slow-start-bounds.ts'

/** An address of a record that was in slow start when the file was written. */
interface SlowStartAddress {
  readonly key: string
  /** Key of the record's root host. */
  readonly hostKey: string
  readonly address: string
  /** Milliseconds from the recovery to the write of the file. */
  readonly elapsedMs: number
}

export interface SlowStartState {
  /** Wall clock at the write, in milliseconds since the epoch. */
  readonly writtenMs: number
  readonly addresses: readonly SlowStartAddress[]
}

/**
 * A file with the addresses in slow start: the wall clock at the write, then one line per address,
 * as JSON:
 *
 *     WRITTEN_MS
 *     [ELAPSED_MS, HOST_KEY, ADDRESS, NAMESPACE/NAME]
 */
export const SLOW_START_STATE: StateKind<SlowStartState> = {
  what: 'ramp-up',
  version: '1',
  octetsMax: 64 * 1024 * 1024,
  mode: 0o644,
  gapMs: 0,
  isLarge: false,
  contents: 'slow starts',
  loss: 'every address has its full weight',
  scan,
}

/** Prints the addresses in slow start, one per line. */
export function* printSlowStarts({ writtenMs, addresses }: SlowStartState): Iterable<string> {
  yield `${Math.round(writtenMs)}\n`
  for (const { key, hostKey, address, elapsedMs } of addresses) {
    yield `${JSON.stringify([Math.round(elapsedMs), hostKey, address, key])}\n`
  }
}

/**
 * Returns the milliseconds since an address recovered. If the wall clock was set back, the slow
 * start continues from the last write. If the clock was set forward, the slow start ends early.
 */
export function elapsedSince(
  { elapsedMs }: SlowStartAddress,
  writtenMs: number,
  nowMs: number,
): number {
  return elapsedMs + Math.min(SLOW_START_MS_MAX, Math.max(0, nowMs - writtenMs))
}

function scan([first = '', ...lines]: readonly string[]): SlowStartState | undefined {
  if (!/^\d{1,15}$/.test(first)) return undefined
  const addresses: SlowStartAddress[] = []
  for (const line of lines) {
    const found = scanLine(line)
    if (found === undefined) return undefined
    addresses.push(found)
  }
  return { writtenMs: Number(first), addresses }
}

function scanLine(line: string): SlowStartAddress | undefined {
  const values = scanJsonText(line)
  if (!Array.isArray(values) || values.length !== 4) return undefined
  const [elapsedMs, hostKey, address, key] = values as readonly unknown[]
  const isTime = Number.isSafeInteger(elapsedMs) && Number(elapsedMs) >= 0
  if (!isTime || Number(elapsedMs) > SLOW_START_MS_MAX) return undefined
  if (typeof hostKey !== 'string' || typeof address !== 'string') return undefined
  if (typeof key !== 'string') return undefined
  return { key, hostKey, address, elapsedMs: Number(elapsedMs) }
}
