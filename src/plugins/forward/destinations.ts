import { readFileSync } from 'node:fs'
import { createSecureContext } from 'node:tls'
import { InputError } from '../../base/errors.ts'
import { isSystemError } from '../../base/system-error.ts'
import type { TlsSettings, UpstreamSettings } from '../../client/upstream/upstream.ts'
import { scanResolvConf } from '../../dns/resolv-conf.ts'
import { type ForwardConfig, tooMany, UPSTREAMS_MAX } from './options.ts'

/**
 * Returns the settings of all upstreams of a `forward`. Reads the files that it names. Throws
 * InputError if a file is missing or invalid.
 */
export function findUpstreams(config: ForwardConfig): UpstreamSettings[] {
  const { expireMs, maxAgeMs, maxIdleConns, forceTcp } = config
  const tls = readTls(config)
  const limits = { expireMs, maxAgeMs, idleMax: maxIdleConns }
  const health = {
    intervalMs: config.checkIntervalMs,
    recursionDesired: config.checkRecursionDesired,
    name: config.checkName,
    failsMax: config.maxFails,
  }
  const servers = config.to.flatMap((to): Pick<UpstreamSettings, 'server' | 'tls'>[] => {
    if (to.kind === 'file') return readResolvConf(to.path, to.text, config)
    const { server, tlsName } = to
    if (tlsName === undefined) return [{ server, tls: undefined }]
    return [{ server, tls: { ...tls, serverName: tlsName || tls.serverName } }]
  })
  if (servers.length > UPSTREAMS_MAX) throw fault(config, tooMany(servers.length))
  return servers.map((one) => ({ ...one, limits, health, forceTcp }))
}

function fault({ position }: ForwardConfig, message: string, cause?: unknown): InputError {
  return new InputError(position, message, cause)
}

/** Returns the servers of a file in the form of resolv.conf(5). */
function readResolvConf(path: string, text: string, config: ForwardConfig) {
  let content: string
  try {
    content = readFileSync(path, 'utf8')
  } catch (error) {
    if (!isSystemError(error)) throw error
    throw fault(config, `not an IP address or file: ${JSON.stringify(text)}`, error)
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
