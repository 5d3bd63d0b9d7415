import { InputError } from '../base/errors.ts'
import type { ListenPlan } from './listen-plan.ts'
import type { Registrations } from './setup.ts'

const EVERY_HOST = new Set(['', '0.0.0.0', '[::]'])

/** A TCP listen address and its user. */
interface Listener {
  readonly host: string
  readonly port: string
  readonly address: string
  readonly kind: 'dns' | 'http' | 'admin'
  /** `health (Corefile:3)`. */
  readonly user: string
}

/**
 * Finds HTTP addresses that conflict with another HTTP address or with a DNS address: one port, on
 * the same host or on all hosts. Equal HTTP addresses are one listener, which serves the paths of
 * all. They cause a warning, because a client of one path reaches the others. An admin API shares no address.
 */
export function findHttpConflicts(
  { http, admin }: Pick<Registrations, 'http' | 'admin'>,
  plans: readonly ListenPlan[],
): { faults: InputError[]; warnings: InputError[] } {
  const faults: InputError[] = []
  const warnings: InputError[] = []
  const listeners = plans.map(listenerOfDns)
  const wanted = [
    ...http.map(({ address, directive, position }) => {
      return { address, directive, position, kind: 'http' as const }
    }),
    ...admin.map(({ address, position }) => {
      return { address, directive: 'admin', position, kind: 'admin' as const }
    }),
  ]
  for (const { address, directive, position, kind } of wanted) {
    const user = `${directive} (${position.file}:${position.line})`
    const own = { ...listenerOf(address, user), kind }
    const rival = listeners.find((other) => overlap(own, other))
    const report = (message: string): InputError => {
      return new InputError(position, `plugin/${directive}: ${message}`)
    }
    if (rival === undefined) listeners.push(own)
    else if (rival.address !== address || rival.kind !== kind) {
      const taken = `${address} overlaps ${rival.address} of ${rival.user}`
      const advice = kind === 'http' ? ', or the same address for both' : ''
      faults.push(report(`${taken}; write another port${advice}`))
    } else if (!rival.user.startsWith(`${directive} `)) {
      warnings.push(report(`${address} also serves the paths of ${rival.user}; write another port`))
    }
  }
  return { faults, warnings }
}

function listenerOfDns({ host, port, address, asked }: ListenPlan): Listener {
  const { file, line } = asked.position
  const shown = host.includes(':') ? `[${host}]` : host
  return {
    host: shown,
    port: String(port),
    address,
    kind: 'dns',
    user: `server block ${asked.key} (${file}:${line})`,
  }
}

function listenerOf(address: string, user: string): Omit<Listener, 'kind'> {
  const colon = address.lastIndexOf(':')
  const host = address.slice(0, colon)
  return {
    host: host === 'localhost' ? '127.0.0.1' : host,
    port: address.slice(colon + 1),
    address,
    user,
  }
}

function overlap(a: Listener, b: Listener): boolean {
  if (a.port !== b.port || a.port === '0') return false
  return a.host === b.host || EVERY_HOST.has(a.host) || EVERY_HOST.has(b.host)
}
