import { validateHeaderName, validateHeaderValue } from 'node:http'
import { isIP } from 'node:net'
import type { Timers } from '../../base/timers.ts'
import type { HealthCheck } from '../../records/health-check.ts'
import { attempt } from './attempt.ts'
import type { Probe, ProbeOutcome, Prober } from './probe.ts'
import type { ProbePolicy } from './probe-policy.ts'
import type { Resolve } from './resolve.ts'

/**
 * Reads the headers of a Secret, by name. `isEncrypted`: how they will be sent. A string says what is wrong with the
 * Secret: `is missing`.
 */
export type ReadHeaders = (
  namespace: string,
  secret: string,
  isEncrypted: boolean,
) => Promise<ReadonlyMap<string, string> | string>

export interface ProberOptions {
  readonly policy: ProbePolicy
  readonly resolve: Resolve
  /** Undefined = this source has no access to Secrets. */
  readonly readHeaders: ReadHeaders | undefined
  /** Program and arguments of the commands that EXEC checks may name; missing = none. */
  readonly commands?: ReadonlyMap<string, readonly string[]> | undefined
  readonly timers: Timers
}

const NO_HEADERS: ReadonlyMap<string, string> = new Map()
const ENCRYPTED: ReadonlySet<HealthCheck['protocol']> = new Set(['HTTPS', 'GRPCS'])
/** Headers that a Secret must not set, because they would change or break the request itself. */
const OWN_HEADERS: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'host',
  'transfer-encoding',
  'upgrade',
])

/**
 * Returns a prober of addresses and host names. A host name is healthy if one of its addresses is.
 */
export function createProber(options: ProberOptions): Prober {
  return async (probe, signal) => {
    const { check } = probe
    if (check.protocol === 'EXEC' && commandOf(probe, options) === undefined) {
      const reason = `no command ${check.command} is configured with probe-exec`
      return { kind: 'skipped', reason }
    }
    const ips = await findAddresses(probe, options)
    if (!isList(ips)) return ips
    const headers = await findHeaders(probe, options)
    if (headers instanceof Map) return attemptAny(probe, ips, headers, signal, options)
    return headers as ProbeOutcome
  }
}

/** Returns the command of an EXEC check; undefined = it is not configured, or it is another check. */
function commandOf({ check }: Probe, { commands }: ProberOptions): readonly string[] | undefined {
  return check.protocol === 'EXEC' ? commands?.get(check.command) : undefined
}

async function findAddresses(
  { address: target, testAddress: address = target }: Probe,
  { policy, resolve }: ProberOptions,
): Promise<readonly string[] | ProbeOutcome> {
  const isAddress = isIP(address) !== 0
  const found = isAddress
    ? ({ kind: 'addresses', addresses: [address] } as const)
    : await resolve(address)
  if (found.kind === 'failed') return { kind: 'skipped', reason: found.reason }
  if (found.kind === 'none') {
    return { kind: 'unhealthy', httpStatus: 0, reason: 'its host name has no address' }
  }
  const refusals = found.addresses.map((ip) => policy.refusal(ip))
  const allowed = found.addresses.filter((_, i) => refusals[i] === '')
  return allowed.length > 0 ? allowed : { kind: 'skipped', reason: refusals[0] ?? '' }
}

/**
 * A missing header would change the response. If a header can't be sent, the attempt is skipped.
 */
async function findHeaders(
  { check, namespace }: Probe,
  { readHeaders }: ProberOptions,
): Promise<ReadonlyMap<string, string> | ProbeOutcome> {
  const { headersSecret } = check
  if (headersSecret === '') return NO_HEADERS
  const skipped = (why: string): ProbeOutcome => {
    return { kind: 'skipped', reason: `Secret ${headersSecret} with headers ${why}` }
  }
  if (readHeaders === undefined) return skipped('cannot be read here')
  const headers = await readHeaders(namespace, headersSecret, ENCRYPTED.has(check.protocol))
  if (typeof headers === 'string') return skipped(headers)
  const taken = [...headers].filter(([name]) => !OWN_HEADERS.has(name.toLowerCase()))
  return taken.every(([name, value]) => isHeader(name, value))
    ? new Map(taken)
    : skipped('has a name or value that is not valid in a header')
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

/** Probes all addresses at once; the first healthy one ends the other attempts. */
async function attemptAny(
  probe: Probe,
  ips: readonly string[],
  headers: ReadonlyMap<string, string>,
  signal: AbortSignal,
  options: ProberOptions,
): Promise<ProbeOutcome> {
  const { check, hostname, address } = probe
  const isEnough = new AbortController()
  const end = (): void => isEnough.abort()
  if (signal.aborted) end()
  signal.addEventListener('abort', end)
  const name = hostname !== '' || isIP(address) !== 0 ? hostname : address
  const attempts = ips.map(async (ip) => {
    const outcome = await attempt({
      check,
      ip,
      hostname: name,
      headers,
      command: commandOf(probe, options) ?? [],
      timers: options.timers,
      signal: isEnough.signal,
    })
    if (outcome.kind === 'healthy') end()
    return outcome
  })
  const outcomes = await Promise.all(attempts)
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
