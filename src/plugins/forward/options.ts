import { isIP, isIPv6 } from 'node:net'
import { resolve } from 'node:path'
import { printDuration, scanDuration } from '../../base/duration.ts'
import type { Position } from '../../base/errors.ts'
import { didYouMean } from '../../base/nearest.ts'
import type { Dispenser } from '../../corefile/dispenser.ts'
import { addressOfHost, type HostPort, splitHostPort } from '../../dns/host-port.ts'
import { Rcode } from '../../dns/iana/index.ts'
import { lowerName, ROOT_NAME, scanName } from '../../dns/name/name.ts'
import { scanEndpoint } from '../../plugin/arguments/endpoint.ts'
import { scanZoneArgs } from '../../plugin/arguments/zones.ts'
import type { BlockConfig } from '../../plugin/directive.ts'
import { ZoneSet } from '../../zone/lookup/zone-set.ts'
import type { ForwardOptions } from './forward.ts'
import { POLICIES, type Select } from './select.ts'

/** Maximum number of upstreams. */
export const UPSTREAMS_MAX = 15
const TLS_PORT = 853
const HOST_NAME = /^[\w-]+(?:\.[\w-]+)*\.?$/
const EXPIRE_MS_DEFAULT = 10_000
const READ_TIMEOUT_MS_DEFAULT = 2000
const CHECK_INTERVAL_MS_DEFAULT = 500
const FAILS_MAX_DEFAULT = 2

/** One TO. */
export type Destination =
  | { readonly kind: 'server'; readonly server: HostPort; readonly tlsName: string | undefined }
  | HostDestination
  /**
   * A file in the form of resolv.conf; `text`: as in the Corefile. `host`: what is meant if the file is missing;
   * undefined = the text is no host name.
   */
  | {
      readonly kind: 'file'
      readonly path: string
      readonly text: string
      readonly host: HostDestination | undefined
    }

/** A TO whose addresses are looked up at the start. */
interface HostDestination {
  readonly kind: 'host'
  /** `host`: a name without its final dot. */
  readonly server: HostPort
  readonly tlsName: string | undefined
}

/** One `forward`, as in the Corefile. */
export interface ForwardConfig extends ForwardOptions {
  readonly position: Position
  readonly to: readonly Destination[]
  readonly select: Select
  readonly expireMs: number
  readonly maxAgeMs: number
  readonly maxIdleConns: number
  readonly maxFails: number
  readonly checkIntervalMs: number
  readonly checkRecursionDesired: boolean
  /** Lower-case wire form. */
  readonly checkName: Uint8Array
  /** Paths of the arguments of `tls`. */
  readonly tlsFiles: readonly string[]
  readonly tlsServerName: string
  /** Servers that look up the host names of `to`; empty = those of the system. */
  readonly resolvers: readonly HostPort[]
  /** Address to send from; '' = the system chooses. */
  readonly source: string
}

type Draft = { -readonly [Key in keyof ForwardConfig]: ForwardConfig[Key] }

/** Reads all occurrences of `forward` in a block. */
export function scanForwards(d: Dispenser, block: BlockConfig): ForwardConfig[] {
  const configs: ForwardConfig[] = []
  while (d.next()) configs.push(scanForward(d, block))
  return configs
}

function scanForward(d: Dispenser, block: BlockConfig): ForwardConfig {
  const [from, ...to] = d.remainingArgs()
  if (from === undefined || to.length === 0) throw d.argError()
  const draft: Draft = {
    position: d.position(),
    from: new ZoneSet(scanZoneArgs(d, [from])),
    to: to.map((text) => scanDestination(d, text, block)),
    ...defaults(),
  }
  d.eachProperty(() => scanProperty(d, draft, block))
  const { expireMs, maxAgeMs } = draft
  if (maxAgeMs > 0 && maxAgeMs < expireMs) {
    const [age, expire] = [printDuration(maxAgeMs), printDuration(expireMs)]
    throw d.error(`max_age (${age}) must not be less than expire (${expire})`)
  }
  const namesServer = draft.to.some((one) => one.kind === 'server' && (one.tlsName ?? '') !== '')
  if (draft.tlsServerName !== '' && namesServer) {
    throw d.error('tls_servername cannot be used with a server name in TO')
  }
  if (draft.to.length > UPSTREAMS_MAX) throw d.error(tooMany(draft.to.length))
  return draft
}

export function tooMany(count: number): string {
  return `more than ${UPSTREAMS_MAX} TOs configured: ${count}`
}

function defaults(): Omit<Draft, 'position' | 'from' | 'to'> {
  return {
    except: new ZoneSet([]),
    forceTcp: false,
    preferUdp: false,
    readTimeoutMs: READ_TIMEOUT_MS_DEFAULT,
    maxConcurrent: 0,
    maxConnectAttempts: 0,
    failoverRcodes: new Set(),
    nextRcodes: new Set(),
    nextOnNodata: false,
    failsFast: false,
    mixesCase: false,
    select: POLICIES.get('random')!(),
    expireMs: EXPIRE_MS_DEFAULT,
    maxAgeMs: 0,
    maxIdleConns: 0,
    maxFails: FAILS_MAX_DEFAULT,
    checkIntervalMs: CHECK_INTERVAL_MS_DEFAULT,
    checkRecursionDesired: true,
    checkName: ROOT_NAME,
    tlsFiles: [],
    tlsServerName: '',
    resolvers: [],
    source: '',
  }
}

/** Reads `[dns://|tls://]HOST[%NAME][:PORT]`, where HOST is an address or a name, or the path of a file. */
function scanDestination(d: Dispenser, text: string, { root }: BlockConfig): Destination {
  const [, scheme = 'dns', rest = ''] = /^(?:([a-z0-9]+):\/\/)?(.*)$/is.exec(text) ?? []
  if (scheme === 'tls') return scanTlsServer(d, rest)
  if (scheme !== 'dns') {
    throw d.error(`'${scheme}' is not supported as a destination protocol in forward: ${text}`)
  }
  const found = scanServer(d, rest, undefined)
  if (found?.kind === 'server') return found
  return { kind: 'file', path: resolve(root, rest), text: rest, host: found }
}

/** Reads `HOST[%NAME][:PORT]`. */
function scanTlsServer(d: Dispenser, text: string): Destination {
  const [, host = '', name = '', port] = /^([^%]*)%([^:]+)(?::(\d+))?$/.exec(text) ?? []
  const isNamed = isIP(host) !== 0 || isHostName(host)
  const address = isNamed ? withPort(host, port) : text
  const found = scanServer(d, address, isNamed ? name : '')
  if (found === undefined) throw d.error(`not an IP address or host name: ${JSON.stringify(text)}`)
  const hasPort = /^(\[.*\]|[^:]*):\d+$/.test(address)
  return hasPort ? found : { ...found, server: { ...found.server, port: TLS_PORT } }
}

/** Reads `HOST[:PORT]`; undefined = it is neither an address nor a name. */
function scanServer(
  d: Dispenser,
  text: string,
  tlsName: string | undefined,
): Exclude<Destination, { kind: 'file' }> | undefined {
  const split = splitHostPort(text)
  if (isIP(addressOfHost(split?.host ?? '')) !== 0) {
    return { kind: 'server', server: scanEndpoint(d, text), tlsName }
  }
  if (split === undefined || !isHostName(split.host)) return undefined
  return { kind: 'host', server: { ...split, host: split.host.replace(/\.$/, '') }, tlsName }
}

/** True for a name that can have an address. One that ends in a number is a mistyped address. */
function isHostName(text: string): boolean {
  return HOST_NAME.test(text) && !/(^|\.)\d+\.?$/.test(text) && scanName(text) !== undefined
}

function withPort(host: string, port: string | undefined): string {
  if (port === undefined) return host
  return isIPv6(host) ? `[${host}]:${port}` : `${host}:${port}`
}

const PROPERTIES: Readonly<
  Record<string, (d: Dispenser, draft: Draft, block: BlockConfig) => void>
> = {
  except: (d, draft) => {
    const names = d.remainingArgs(1)
    draft.except = new ZoneSet([...draft.except.zones, ...scanZoneArgs(d, names)])
  },
  force_tcp: (d, draft) => {
    draft.forceTcp = scanFlag(d)
  },
  prefer_udp: (d, draft) => {
    draft.preferUdp = scanFlag(d)
  },
  use_caps_for_id: (d, draft) => {
    draft.mixesCase = scanFlag(d)
  },
  failfast_all_unhealthy_upstreams: (d, draft) => {
    draft.failsFast = scanFlag(d)
  },
  next_on_nodata: (d, draft) => {
    draft.nextOnNodata = scanFlag(d)
  },
  expire: (d, draft) => {
    draft.expireMs = scanTime(d)
  },
  max_age: (d, draft) => {
    draft.maxAgeMs = scanTime(d)
  },
  read_timeout: (d, draft) => {
    draft.readTimeoutMs = scanTime(d)
    if (draft.readTimeoutMs === 0) throw d.error('read_timeout must be above 0')
  },
  max_idle_conns: (d, draft) => {
    draft.maxIdleConns = scanCount(d)
  },
  max_fails: (d, draft) => {
    draft.maxFails = scanCount(d)
  },
  max_concurrent: (d, draft) => {
    draft.maxConcurrent = scanCount(d)
  },
  max_connect_attempts: (d, draft) => {
    draft.maxConnectAttempts = scanCount(d)
  },
  next: (d, draft) => {
    draft.nextRcodes = new Set([...draft.nextRcodes, ...scanRcodes(d)])
  },
  failover: (d, draft) => {
    const rcodes = scanRcodes(d)
    if (rcodes.includes(Rcode.NOERROR)) throw d.error('NOERROR cannot be used in failover')
    draft.failoverRcodes = new Set([...draft.failoverRcodes, ...rcodes])
  },
  policy: (d, draft) => {
    const name = d.onlyArg()
    const create = POLICIES.get(name)
    if (create === undefined)
      throw d.error(`unknown policy '${name}'${didYouMean(name, POLICIES.keys())}`)
    draft.select = create()
  },
  tls: (d, draft, { root }) => {
    draft.tlsFiles = d.remainingArgs(0, 3).map((path) => resolve(root, path))
  },
  tls_servername: (d, draft) => {
    draft.tlsServerName = d.onlyArg()
  },
  resolver: (d, draft) => {
    const servers = d.remainingArgs(1).map((text) => scanEndpoint(d, text))
    // Node.js would drop the zone.
    const zoned = servers.find(({ host }) => host.includes('%'))
    if (zoned !== undefined) throw d.error(`resolver: ${zoned.host} may not have a zone`)
    draft.resolvers = [...draft.resolvers, ...servers]
  },
  source_address: (d, draft) => {
    const text = d.onlyArg()
    if (isIP(text) === 0) throw d.error(`invalid IP address: ${text}`)
    draft.source = text
  },
  health_check: scanHealthCheck,
}

/** Properties of CoreDNS that this version does not have. */
const UNSUPPORTED: readonly string[] = ['doh_method']

function scanProperty(d: Dispenser, draft: Draft, block: BlockConfig): void {
  const name = d.value()
  if (UNSUPPORTED.includes(name)) {
    throw d.error(`property '${name}' is not supported by this version of Sextant`)
  }
  const scan = Object.hasOwn(PROPERTIES, name) ? PROPERTIES[name] : undefined
  if (scan === undefined) throw d.unknownProperty(name, Object.keys(PROPERTIES))
  scan(d, draft, block)
}

function scanHealthCheck(d: Dispenser, draft: Draft): void {
  const [time, ...options] = d.remainingArgs()
  if (time === undefined) throw d.argError()
  draft.checkIntervalMs = toTime(d, 'health_check', time)
  for (let i = 0; i < options.length; i++) {
    switch (options[i]) {
      case 'no_rec':
        draft.checkRecursionDesired = false
        break
      case 'domain': {
        i++
        const text = options[i]
        if (text === undefined) throw d.argError()
        const name = scanName(text)
        if (name === undefined) throw d.error(`health_check: invalid domain name ${text}`)
        draft.checkName = lowerName(name)
        break
      }
      default:
        throw d.error(
          `health_check: unknown option ${options[i]}${didYouMean(options[i]!, ['no_rec', 'domain'])}`,
        )
    }
  }
}

function scanFlag(d: Dispenser): true {
  if (d.nextArg()) throw d.argError()
  return true
}

function scanTime(d: Dispenser): number {
  const property = d.value()
  return toTime(d, property, d.onlyArg())
}

function toTime(d: Dispenser, property: string, text: string): number {
  const ms = scanDuration(text)
  if (ms === undefined) throw d.error(`${property}: invalid duration '${text}'`)
  if (ms < 0) throw d.error(`${property} can't be negative: ${text}`)
  return ms
}

function scanCount(d: Dispenser): number {
  const property = d.value()
  const text = d.onlyArg()
  if (/^-\d+$/.test(text)) throw d.error(`${property} can't be negative: ${text}`)
  if (!/^\d{1,9}$/.test(text)) throw d.error(`${property}: invalid number '${text}'`)
  return Number(text)
}

function scanRcodes(d: Dispenser): number[] {
  const names = d.remainingArgs(1)
  return names.map((name) => {
    const rcode = Object.entries(Rcode).find(([known]) => known === name.toUpperCase())?.[1]
    if (rcode === undefined) throw d.error(`${name} is not a valid rcode`)
    return rcode
  })
}
