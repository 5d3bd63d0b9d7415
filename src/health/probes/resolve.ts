import { Resolver } from 'node:dns/promises'
import { hasCode } from './print-fault.ts'

/** Addresses of a target's name; at most ADDRESSES_MAX. */
export type Resolution =
  | { readonly kind: 'addresses'; readonly addresses: readonly string[] }
  /** The name has no addresses: a fault of the target. */
  | { readonly kind: 'none' }
  /** The lookup failed: no fault of the target. */
  | { readonly kind: 'failed'; readonly reason: string }

export type Resolve = (host: string) => Promise<Resolution>

/** Maximum number of addresses per name that are probed. */
const ADDRESSES_MAX = 8
const TIMEOUT_MS = 1500
const TRIES = 2
/** Error codes for a name without addresses, as opposed to a failed lookup. */
const NOTHING: ReadonlySet<string> = new Set(['ENOTFOUND', 'ENODATA'])

/**
 * Sends queries for A and AAAA to the system's resolvers. `lookup` is not used, because it blocks
 * one of the few threads that read files while a resolver is silent.
 */
export function systemResolve(): Resolve {
  const resolver = new Resolver({ timeout: TIMEOUT_MS, tries: TRIES })
  return async (host) => {
    const answers = await Promise.all([
      addressesOf(() => resolver.resolve4(host)),
      addressesOf(() => resolver.resolve6(host)),
    ])
    return combine(answers)
  }
}

/** Combines the answers for both address families. */
export function combine(answers: readonly Resolution[]): Resolution {
  const addresses = answers.flatMap((answer) =>
    answer.kind === 'addresses' ? answer.addresses : [],
  )
  const unique = [...new Set(addresses)].sort().slice(0, ADDRESSES_MAX)
  if (unique.length > 0) return { kind: 'addresses', addresses: unique }
  return answers.find((answer) => answer.kind === 'failed') ?? { kind: 'none' }
}

async function addressesOf(ask: () => Promise<string[]>): Promise<Resolution> {
  try {
    return { kind: 'addresses', addresses: await ask() }
  } catch (error) {
    if (!hasCode(error)) throw error
    if (NOTHING.has(error.code)) return { kind: 'none' }
    return { kind: 'failed', reason: `its host name cannot be resolved: ${error.code}` }
  }
}
