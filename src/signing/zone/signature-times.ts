import type { SignatureTimes } from '../../dns/dnssec/rrsig.ts'
import type { SigningPolicy } from '../zone-keys.ts'

/** The basis and the prime of 32-bit FNV-1a. */
const FNV_BASIS = 0x811c9dc5
const FNV_PRIME = 0x01000193

/**
 * Returns the times of a new signature. The jitter depends on the name and type only, so that signatures that were made
 * together expire one after the other, and those of one RRset together.
 */
export function timesOf(
  policy: SigningPolicy,
  nowSeconds: number,
  key: string,
  type: number,
): SignatureTimes {
  const jitterSeconds = Math.floor(policy.jitterSeconds * fractionOf(key, type))
  return {
    inceptionSeconds: nowSeconds - policy.inceptionOffsetSeconds,
    expirationSeconds: nowSeconds + policy.validitySeconds - jitterSeconds,
  }
}

/** Returns a number from 0 to below 1. */
function fractionOf(key: string, type: number): number {
  let hash = FNV_BASIS ^ type
  for (let i = 0; i < key.length; i++) hash = Math.imul(hash ^ key.charCodeAt(i), FNV_PRIME)
  return ((hash ^ (hash >>> 15)) >>> 0) / 2 ** 32
}
