import type { HealthCheckDocument } from '../imported-hosts.ts'
import { hashAt, textAt, textsOf, type VscfHash } from './vscf.ts'

/** What a service type of gdnsd becomes. */
interface Monitoring {
  /** Undefined = there is no health check. */
  readonly check: HealthCheckDocument | undefined
  readonly notes: readonly string[]
}

/** Service types that gdnsd has built in: they check nothing. */
const BUILT_IN: readonly string[] = ['up', 'down']
const INTERVAL_SECONDS = 10
const UP_CHECKS = 20
const DOWN_CHECKS = 10

/** `host`: the name in HTTP requests. */
export function readServiceType(
  name: string,
  types: VscfHash | undefined,
  host: string,
): Monitoring {
  const type = hashAt(types, name)
  if (type === undefined) {
    if (name === 'up') return { check: undefined, notes: [] }
    const what = BUILT_IN.includes(name) ? 'has no equivalent' : 'is not defined'
    return { check: undefined, notes: [`service type ${name} ${what}`] }
  }
  const plugin = textAt(type, 'plugin') ?? ''
  const number = (key: string, missing: number): number => Number(textAt(type, key) ?? missing)
  const common = {
    interval: `${number('interval', INTERVAL_SECONDS)}s`,
    // An address is down after one failure more than that.
    failureThreshold: Math.max(1, number('down_thresh', DOWN_CHECKS) - 1),
    successThreshold: number('up_thresh', UP_CHECKS),
  }
  if (plugin === 'tcp_connect')
    return { check: { protocol: 'TCP', port: number('port', 0), ...common }, notes: [] }
  if (plugin !== 'http_status') {
    const fix = plugin === 'extmon' ? ': write a health check with protocol EXEC' : ''
    return {
      check: undefined,
      notes: [`service type ${name}: plugin ${plugin} has no equivalent${fix}`],
    }
  }
  const codes = textsOf(type.entries.get('ok_codes')).join(', ') || '200'
  const path = textAt(type, 'url_path') ?? '/'
  const vhost = textAt(type, 'vhost') ?? ''
  const isOther = vhost !== '' && vhost !== host
  return {
    check: { protocol: 'HTTP', port: number('port', 80), path, expectedStatus: codes, ...common },
    notes: isOther ? [`probes send the host name ${host}, not ${vhost}`] : [],
  }
}
