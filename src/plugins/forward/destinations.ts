import { Resolver } from 'node:dns/promises'
import { readFileSync } from 'node:fs'
import { isIPv6 } from 'node:net'
import { createSecureContext } from 'node:tls'
import { InputError } from '../../base/errors.ts'
import { isSystemError } from '../../base/system-error.ts'
import type { TlsSettings, UpstreamSettings } from '../../client/upstream/upstream.ts'
import { addressOfHost, printHostPort } from '../../dns/host-port.ts'
import { scanResolvConf } from '../../dns/resolv-conf.ts'
import { type Destination, type ForwardConfig, tooMany, UPSTREAMS_MAX } from './options.ts'

/** Longest wait for one attempt of one resolver, and attempts with each. */
const LOOKUP_MS = 2000
const LOOKUP_TRIES = 2

/**
 * Returns the settings of all upstreams of a `forward`. Reads the files that it names, and looks up its host names.
 * Rejects with an InputError if a file is missing or invalid, or a name has no address.
 */
export async function findUpstreams(config: ForwardConfig): Promise<UpstreamSettings[]> {
  const { expireMs, maxAgeMs, maxIdleConns, forceTcp, source } = config
  const tls = readTls(config)
  const limits = { expireMs, maxAgeMs, idleMax: maxIdleConns }
  const health = {
    intervalMs: config.checkIntervalMs,
    recursionDesired: config.checkRecursionDesired,
    name: config.checkName,
    failsMax: config.maxFails,
  }
  const found = await Promise.all(config.to.map((to) => findServers(to, config, tls)))
  const servers = found.flat()
  if (servers.length > UPSTREAMS_MAX) throw fault(config, tooMany(servers.length))
  const foreign = servers.find(({ server }) => !isReachable(server.host, source))
  if (foreign !== undefined) {
    const message = `source_address ${source} cannot reach ${printHostPort(foreign.server)}: write an address of the same family`
    throw fault(config, message)
  }
  return servers.map((one) => ({ ...one, source, limits, health, forceTcp }))
}

type Server = Pick<UpstreamSettings, 'server' | 'tls'>

async function findServers(
  to: Destination,
  config: ForwardConfig,
  tls: TlsSettings,
): Promise<Server[]> {
  if (to.kind === 'file') {
    const servers = readResolvConf(to.path, config, to.host === undefined ? to.text : undefined)
    return servers ?? findServers(to.host!, config, tls)
  }
  const { server, tlsName } = to
  const isHost = to.kind === 'host'
  const serverName = tlsName || tls.serverName || (isHost ? server.host : '')
  const settings = tlsName === undefined ? undefined : { ...tls, serverName }
  const hosts = isHost ? await lookUp(server.host, config) : [server.host]
  return hosts.map((host) => ({ server: { ...server, host }, tls: settings }))
}

/** Looks up a host name as it is, without a search list. With `source_address`, only addresses of its family count. */
async function lookUp(host: string, config: ForwardConfig): Promise<string[]> {
  const { resolvers, source } = config
  const resolver = new Resolver({ timeout: LOOKUP_MS, tries: LOOKUP_TRIES })
  if (resolvers.length > 0) resolver.setServers(resolvers.map(printHostPort))
  const name = `${host}.`
  const answers = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)])
  const addresses = answers.flatMap((one) => (one.status === 'fulfilled' ? one.value : []))
  const usable = addresses.filter((address) => isReachable(address, source))
  if (usable.length > 0) return usable
  const failed = answers.find((one) => one.status === 'rejected')
  const asked = resolver.getServers().join(', ')
  const family = addresses.length > 0 ? ` of the family of source_address ${source}` : ''
  const message = `failed to resolve ${JSON.stringify(host)}: no address${family} from ${asked}${reasonOf(failed?.reason)}; write an IP address or an existing file, or correct the name`
  throw fault(config, message, failed?.reason)
}

function reasonOf(error: unknown): string {
  return isSystemError(error) ? ` (${error.code})` : ''
}

/** True if packets can be sent from `source` to `host`; '' = from any address. */
function isReachable(host: string, source: string): boolean {
  return source === '' || isIPv6(source) === isIPv6(addressOfHost(host))
}

function fault({ position }: ForwardConfig, message: string, cause?: unknown): InputError {
  return new InputError(position, message, cause)
}

/**
 * Returns the servers of a file in the form of resolv.conf(5). `text`: what names the file, for the error if it is
 * missing. Undefined = then this returns undefined.
 */
function readResolvConf(
  path: string,
  config: ForwardConfig,
  text: string | undefined,
): Server[] | undefined {
  let content: string
  try {
    content = readFileSync(path, 'utf8')
  } catch (error) {
    if (!isSystemError(error)) throw error
    if (text === undefined && error.code === 'ENOENT') return undefined
    throw fault(
      config,
      `not an IP address, host name or file: ${JSON.stringify(text ?? path)}`,
      error,
    )
  }
  const { servers } = scanResolvConf(content)
  if (servers.length === 0) throw fault(config, `no nameservers found in ${path}`)
  return servers.map((server) => ({ server, tls: undefined }))
}

/** Reads the files of `tls [CERT KEY] [CA]`. */
function readTls(config: ForwardConfig): TlsSettings {
  const { tlsFiles, tlsServerName } = config
  const files = tlsFiles.map((path) => readPem(path, config))
  const [cert, key] = tlsFiles.length >= 2 ? files : []
  const ca = tlsFiles.length === 2 ? undefined : files.at(-1)
  try {
    createSecureContext({ ca, cert, key })
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw fault(config, `tls: invalid certificate or key: ${reason}`, error)
  }
  return { serverName: tlsServerName, ca, cert, key }
}

function readPem(path: string, config: ForwardConfig): Buffer {
  try {
    return readFileSync(path)
  } catch (error) {
    if (!isSystemError(error)) throw error
    throw fault(config, `tls: ${error.message}`, error)
  }
}
