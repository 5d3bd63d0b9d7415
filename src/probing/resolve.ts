import { Resolver } from 'node:dns/promises'
import { isSystemError } from './system-error.ts'

/** What the name of a target leads to; several at most. */
export type Resolution =
  | { readonly kind: 'addresses'; readonly addresses: readonly string[] }
  /** The name has none: a fault of the target. */
  | { readonly kind: 'none' }
  /** Nobody could tell: no fault of the target. */
  | { readonly kind: 'failed'; readonly reason: string }

export type Resolve = (host: string) => Promise<Resolution>

/** Addresses of one name that are probed. */
export const ADDRESSES_MAX = 8
const TIMEOUT_MS = 1500
const TRIES = 2
/** Answers that say that there is nothing, rather than that nothing is known. */
const NOTHING: ReadonlySet<string> = new Set(['ENOTFOUND', 'ENODATA'])

/**
 * Asks the resolvers of the machine for A and AAAA. Not `lookup`: that takes one of the few threads that files
 * are read with, for as long as a resolver is silent.
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

/** What the answers for both families say together. */
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
    if (!isSystemError(error)) throw error
    if (NOTHING.has(error.code)) return { kind: 'none' }
    return { kind: 'failed', reason: `its name can't be resolved: ${error.code}` }
  }
}
