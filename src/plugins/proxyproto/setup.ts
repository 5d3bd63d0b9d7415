import { scanDuration } from '../../base/duration.ts'
import type { Position } from '../../base/errors.ts'
import type { Dispenser } from '../../corefile/dispenser.ts'
import { type Cidr, scanAddress, scanCidr } from '../../dns/text/address.ts'
import { AddressSet } from '../../dns/text/address-set.ts'
import { collectWhileServing } from '../../plugin/collect.ts'
import type { Directive, SetupContext } from '../../plugin/directive.ts'
import { PROXY_RULES, ProxyAction } from '../../transport/proxy/rules.ts'
import { FaultReports, REASONS } from './faults.ts'
import { printTlvs } from './tlvs.ts'

const SESSIONS_MAX_DEFAULT = 10_240
/** Their memory is allocated at once. */
const SESSIONS_MAX = 1_000_000

const ACTIONS: ReadonlyMap<string, ProxyAction> = new Map([
  ['use', ProxyAction.Use],
  ['ignore', ProxyAction.Ignore],
  ['reject', ProxyAction.Reject],
  ['skip', ProxyAction.Skip],
])

const PROPERTIES = ['allow', 'default', 'udp_session_tracking', 'tlv_metadata']

interface ProxyOptions {
  readonly allowed: Cidr[]
  /** Undefined = as not written. */
  others: ProxyAction | undefined
  trackingMs: number
  sessionsMax: number
  keepsTlvs: boolean
  position: Position
}

/** `proxyproto { allow CIDR... | default ACTION | … }`: proxies name the client in front of its queries. */
export const proxyproto: Directive = {
  name: 'proxyproto',
  setup(c) {
    const options = scanOptions(c.dispenser)
    const { allowed, trackingMs, sessionsMax, keepsTlvs } = options
    const proxies = new AddressSet(allowed)
    const others = actionForOthers(options)
    const reports = new FaultReports(c)
    c.block.shared.acquire(PROXY_RULES).push({
      actionFor: (address, family) => {
        return proxies.has(address, 0, family) ? ProxyAction.Use : others
      },
      trackingMs,
      sessionsMax,
      keepsTlvs,
      noteFault: (server, fault, address, family) => reports.note(server, fault, address, family),
    })
    if (keepsTlvs) c.block.metadata.providers.set('proxyproto/tlv', ({ query }) => printTlvs(query))
    const refused = c.metrics.counter(
      'sextant_proxyproto_refused_total',
      'Counter of datagrams and connections dropped because of their PROXY header.',
      ['server', 'reason'],
    )
    const collecting = collectWhileServing(c, () => {
      reports.slots.forEach((counts, { server }) => {
        for (const [fault, reason] of REASONS.entries()) {
          const count = counts.take(fault)
          if (count > 0) refused.inc({ server, reason }, count)
        }
      })
    })
    return [{ link: () => warnOfTrust(c, options) }, collecting]
  },
}

/** Without `allow` and `default`, every peer is a proxy, as in CoreDNS. */
function actionForOthers({ allowed, others }: ProxyOptions): ProxyAction {
  if (others !== undefined) return others
  return allowed.length === 0 ? ProxyAction.Use : ProxyAction.Ignore
}

function scanOptions(d: Dispenser): ProxyOptions {
  const options: ProxyOptions = {
    allowed: [],
    others: undefined,
    trackingMs: 0,
    sessionsMax: SESSIONS_MAX_DEFAULT,
    keepsTlvs: false,
    position: d.position(),
  }
  while (d.next()) {
    options.position = d.position()
    d.noArgs()
    d.eachProperty(() => scanProperty(d, options))
  }
  return options
}

function scanProperty(d: Dispenser, options: ProxyOptions): void {
  switch (d.value()) {
    case 'allow':
      options.allowed.push(...d.remainingArgs().map((text) => scanNetwork(d, text)))
      return
    case 'default':
      options.others = scanAction(d)
      return
    case 'udp_session_tracking':
      scanTracking(d, options)
      return
    case 'tlv_metadata':
      d.noArgs()
      options.keepsTlvs = true
      return
    default:
      throw d.unknownProperty(d.value(), PROPERTIES)
  }
}

function scanNetwork(d: Dispenser, text: string): Cidr {
  const network = scanCidr(text)
  if (network !== undefined) return network
  const isAddress = scanAddress(text) !== undefined
  const fix = isAddress ? `; write ${text}/${text.includes(':') ? 128 : 32}` : ''
  throw d.error(`invalid CIDR address: ${JSON.stringify(text)}${fix}`)
}

function scanAction(d: Dispenser): ProxyAction {
  const text = d.onlyArg()
  const action = ACTIONS.get(text.toLowerCase())
  if (action !== undefined) return action
  throw d.error(`default is ${JSON.stringify(text)}; use ${[...ACTIONS.keys()].join(', ')}`)
}

function scanTracking(d: Dispenser, options: ProxyOptions): void {
  const [duration = '', max] = d.remainingArgs(1, 2)
  const trackingMs = scanDuration(duration)
  if (trackingMs === undefined) {
    throw d.error(`udp_session_tracking: invalid duration ${JSON.stringify(duration)}; write 28s`)
  }
  // CoreDNS: no tracking.
  options.trackingMs = Math.max(0, trackingMs)
  if (max === undefined) return
  const sessionsMax = /^\+?\d{1,15}$/.test(max) ? Number(max) : 0
  if (sessionsMax === 0 || sessionsMax > SESSIONS_MAX) {
    const range = `use a number from 1 to ${SESSIONS_MAX}`
    throw d.error(`udp_session_tracking: invalid max sessions ${JSON.stringify(max)}; ${range}`)
  }
  options.sessionsMax = sessionsMax
}

/** Warns if any client can choose its address, or if no peer may name one. */
function warnOfTrust(c: SetupContext, options: ProxyOptions): void {
  const { listenHosts } = c.block
  const isLocal = listenHosts.length > 0 && listenHosts.every(isLoopback)
  const trustsAll = actionForOthers(options) === ProxyAction.Use
  const hint = 'list the networks of the proxies with "allow"'
  if (trustsAll && !isLocal) {
    const cause = 'accepts PROXY headers from any client, so any client can claim another address'
    c.warn(`${cause}: ${hint}`, options.position)
  } else if (!trustsAll && options.allowed.length === 0) {
    c.warn(`no PROXY header is used: ${hint}`, options.position)
  }
}

function isLoopback(host: string): boolean {
  const address = scanAddress(host)
  if (address?.family === 1) return address.bytes[0] === 127
  return address?.bytes.every((octet, i) => octet === (i === 15 ? 1 : 0)) === true
}
