import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { resolve } from 'node:path'
import { isSystemError } from '../../base/system-error.ts'
import type { Dispenser } from '../../corefile/dispenser.ts'
import { type HostPort, splitHostPort } from '../../dns/host-port.ts'
import { scanResolvConf } from '../../dns/resolv-conf.ts'
import type { BlockConfig } from '../../plugin/directive.ts'
import { type AliasOptions, NO_ALIAS } from '../../publish/options.ts'
import { scanNetwork } from './health-options.ts'

/** Maximum number of resolvers. */
const SERVERS_MAX = 15

/** Reads `alias-resolver ADDR...`. An ADDR may be a file in the form of resolv.conf, which is read once. */
export function scanAliasResolver(
  d: Dispenser,
  alias: AliasOptions = NO_ALIAS,
  { root }: BlockConfig,
): AliasOptions {
  if (alias.servers.length > 0) throw d.error('alias-resolver appears twice')
  const servers = d.remainingArgs(1).flatMap((text) => scanServers(d, text, root))
  if (servers.length > SERVERS_MAX) {
    throw d.error(`alias-resolver may have up to ${SERVERS_MAX} addresses`)
  }
  return { ...alias, servers }
}

/** Reads `alias-allow CIDR...`. */
export function scanAliasAllow(d: Dispenser, alias: AliasOptions = NO_ALIAS): AliasOptions {
  const allowed = d.remainingArgs(1).map((text) => {
    return { text, cidr: scanNetwork(d, 'alias-allow', text) }
  })
  return { ...alias, allowed: [...alias.allowed, ...allowed] }
}

function scanServers(d: Dispenser, text: string, root: string): readonly HostPort[] {
  const server = splitHostPort(text)
  if (server !== undefined && isIP(server.host) !== 0) return [server]
  if (!text.includes('/')) {
    const form = 'write it as 192.0.2.53 or 192.0.2.53:5353'
    throw d.error(`alias-resolver: ${text} is not an address; ${form}, or name a file`)
  }
  try {
    const { servers } = scanResolvConf(readFileSync(resolve(root, text), 'utf8'))
    if (servers.length > 0) return servers
  } catch (error) {
    if (!isSystemError(error)) throw error
    throw d.error(`alias-resolver: ${error.message}`)
  }
  throw d.error(`alias-resolver: ${text} has no line \`nameserver ADDR\``)
}
