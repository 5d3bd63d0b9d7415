import { validateHeaderName, validateHeaderValue } from 'node:http'
import { isIP } from 'node:net'
import type { Timers } from '../base/timers.ts'
import { look } from './look.ts'
import type { Probe, ProbeOutcome, Prober } from './probe.ts'
import type { ProbePolicy } from './probe-policy.ts'
import type { Resolve } from './resolve.ts'

/** Headers of a Secret: by name; undefined = there is no such Secret, or it can't be read. */
export type ReadHeaders = (
  namespace: string,
  secret: string,
) => Promise<ReadonlyMap<string, string> | undefined>

export interface ProberOptions {
  readonly policy: ProbePolicy
  readonly resolve: Resolve
  /** Undefined = nothing is known of Secrets here. */
  readonly readHeaders: ReadHeaders | undefined
  readonly timers: Timers
}

const NO_HEADERS: ReadonlyMap<string, string> = new Map()
/** What a Secret must not set: it would be another question, or none at all. */
const OWN_HEADERS: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'host',
  'transfer-encoding',
  'upgrade',
])

/** Looks at an address, or at all that a host name leads to: it is healthy where one of them is. */
export function createProber(options: ProberOptions): Prober {
  return async (probe, signal) => {
    const ips = await findAddresses(probe, options)
    if (!isList(ips)) return ips
    const headers = await findHeaders(probe, options)
    if (headers instanceof Map) return lookAtAny(probe, ips, headers, signal, options)
    return headers as ProbeOutcome
  }
}

async function findAddresses(
  { address }: Probe,
  { policy, resolve }: ProberOptions,
): Promise<readonly string[] | ProbeOutcome> {
  const isAddress = isIP(address) !== 0
  const found = isAddress
    ? ({ kind: 'addresses', addresses: [address] } as const)
    : await resolve(address)
  if (found.kind === 'failed') return { kind: 'skipped', reason: found.reason }
  if (found.kind === 'none') {
    return { kind: 'unhealthy', httpStatus: 0, reason: 'its name has no address' }
  }
  const refusals = found.addresses.map((ip) => policy.refusal(ip))
  const allowed = found.addresses.filter((_, i) => refusals[i] === '')
  return allowed.length > 0 ? allowed : { kind: 'skipped', reason: refusals[0] ?? '' }
}

/** What can't be sent would change the answer, so nothing is asked then. */
async function findHeaders(
  { check, namespace }: Probe,
  { readHeaders }: ProberOptions,
): Promise<ReadonlyMap<string, string> | ProbeOutcome> {
  const { headersSecret } = check
  if (headersSecret === '') return NO_HEADERS
  const skipped = (why: string): ProbeOutcome => {
    return { kind: 'skipped', reason: `Secret ${headersSecret} with headers ${why}` }
  }
  if (readHeaders === undefined) return skipped("can't be read here")
  const headers = await readHeaders(namespace, headersSecret)
  if (headers === undefined) return skipped("can't be read")
  const taken = [...headers].filter(([name]) => !OWN_HEADERS.has(name.toLowerCase()))
  return taken.every(([name, value]) => isHeader(name, value))
    ? new Map(taken)
    : skipped('has a name or value that is none of a header')
}

function isHeader(name: string, value: string): boolean {
  try {
    validateHeaderName(name)
    validateHeaderValue(name, value)
    return true
  } catch (error) {
    if (error instanceof TypeError) return false
    throw error
  }
}

/** All at once; the first that is healthy ends the others. */
async function lookAtAny(
  { check, hostname, address }: Probe,
  ips: readonly string[],
  headers: ReadonlyMap<string, string>,
  signal: AbortSignal,
  { timers }: ProberOptions,
): Promise<ProbeOutcome> {
  const isEnough = new AbortController()
  const end = (): void => isEnough.abort()
  if (signal.aborted) end()
  signal.addEventListener('abort', end)
  const name = hostname !== '' || isIP(address) !== 0 ? hostname : address
  const looks = ips.map(async (ip) => {
    const outcome = await look({
      check,
      ip,
      hostname: name,
      headers,
      timers,
      signal: isEnough.signal,
    })
    if (outcome.kind === 'healthy') end()
    return outcome
  })
  const outcomes = await Promise.all(looks)
  signal.removeEventListener('abort', end)
  return (
    outcomes.find((outcome) => outcome.kind === 'healthy') ??
    outcomes.find((outcome) => outcome.kind === 'unhealthy') ??
    outcomes[0]!
  )
}

function isList(found: readonly string[] | ProbeOutcome): found is readonly string[] {
  return Array.isArray(found)
}
