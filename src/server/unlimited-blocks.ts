import { scanAddress } from '../dns/text/address.ts'
import { ProbePolicy } from '../health/probes/probe-policy.ts'
import type { BlockConfig } from '../plugin/directive.ts'
import { LIMITER, LIMITS_CLIENTS, SENDS_LITTLE } from '../plugin/reply-limiter.ts'

/** Reply octets per query octet, measured with DNSSEC. */
const AMPLIFICATION = 26
/** Blocks that the line names. */
const NAMED_MAX = 5
/** Without an exception: refuses the networks that only nearby clients reach. */
const NEARBY = new ProbePolicy()

/** Says which blocks reply to any client without a limit, and what an attacker makes of it; '' = none. */
export function describeUnlimited(blocks: readonly BlockConfig[]): string {
  const open = blocks.filter((block) => {
    const { shared } = block
    const isLimited = shared.find(LIMITER) !== undefined || shared.find(LIMITS_CLIENTS) === true
    const isSmall = shared.find(SENDS_LITTLE) === true
    return !isLimited && !isSmall && block.directives.length > 0 && isPublic(block)
  })
  const keys = [
    ...new Set(
      open.flatMap((block) => block.keys.map(({ zoneText, port }) => `${zoneText}:${port}`)),
    ),
  ]
  if (keys.length === 0) return ''
  const more = keys.length > NAMED_MAX ? ` and ${keys.length - NAMED_MAX} more` : ''
  const named = `${keys.slice(0, NAMED_MAX).join(', ')}${more}`
  const verb = keys.length === 1 ? 'sends' : 'send'
  return `if an attacker forges the address of a victim: ${named} ${verb} the victim up to ${AMPLIFICATION} times the octets of each query; add rrl, or acl if you know the clients`
}

/** True if the block listens on an address that clients of other networks may reach. */
function isPublic({ listenHosts }: BlockConfig): boolean {
  return (
    listenHosts.length === 0 ||
    listenHosts.some((host) => {
      const address = scanAddress(host)
      const isEvery = address?.bytes.every((octet) => octet === 0) === true
      return address !== undefined && (isEvery || NEARBY.findRefused(host) === undefined)
    })
  )
}
