import { scanTierKey, type TierKey } from '../../../steering/tier-key.ts'
import type { ContentSerial } from '../../zone/serials/serial-index.ts'

/** The metadata of a snapshot file beside its zone image (its `facts`, as JSON). */
export interface SnapshotFacts {
  /** Digest of the options that affect the zones. No white space. */
  readonly options: string
  /** Wall clock at which the content was current, in milliseconds since the epoch. */
  readonly takenMs: number
  /** The tier keys of each policy, by its number in the encoded steering; empty = unused. */
  readonly policies: readonly (readonly TierKey[])[]
  readonly zones: readonly ContentSerial[]
}

export function printFacts(facts: SnapshotFacts): string {
  const policies = facts.policies.map((keys) => keys.map(({ text }) => text))
  return JSON.stringify({ ...facts, policies })
}

/** Undefined = the text is not in the format of `printFacts`. */
export function scanFacts(text: string): SnapshotFacts | undefined {
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch {
    return undefined
  }
  if (!isObject(json) || !Array.isArray(json.zones) || !Array.isArray(json.policies)) {
    return undefined
  }
  const { options, takenMs } = json
  const zones = json.zones.map(scanZone)
  const policies = json.policies.map(scanPolicy)
  const isWhole = !zones.includes(undefined) && !policies.includes(undefined)
  const isTimed = typeof takenMs === 'number' && Math.abs(takenMs) <= DATE_MS_MAX
  if (!isWhole || typeof options !== 'string' || !isTimed) return undefined
  const known = policies.filter((policy) => policy !== undefined)
  const used = known.filter((keys) => keys.length > 0)
  const texts = new Set(used.map((keys) => keys.map(({ text }) => text).join(' ')))
  if (texts.size !== used.length) return undefined
  const named = zones.filter((zone) => zone !== undefined)
  return { options, takenMs, policies: known, zones: named }
}

/** Largest date (ECMA-262, 21.4.1.1). */
const DATE_MS_MAX = 8.64e15

function scanZone(json: unknown): ContentSerial | undefined {
  if (!isObject(json)) return undefined
  const { zone, digest, serial } = json
  if (typeof zone !== 'string' || typeof digest !== 'string' || /\s/.test(digest)) return undefined
  const isSerial = Number.isInteger(serial) && Number(serial) >= 1 && Number(serial) <= 0xffffffff
  return isSerial ? { zone, digest, serial: Number(serial) } : undefined
}

function scanPolicy(json: unknown): readonly TierKey[] | undefined {
  if (!Array.isArray(json)) return undefined
  const keys = json.map((text) => (typeof text === 'string' ? scanTierKey(text) : undefined))
  return keys.includes(undefined) ? undefined : keys.filter((key) => key !== undefined)
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
