import { createHash } from 'node:crypto'
import { accessSync, closeSync, constants, openSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { parse, YAMLParseError } from 'yaml'
import { InputError } from '../base/errors.ts'
import { readAtMost } from '../base/read.ts'
import {
  createKubeConfig,
  type KubeCluster,
  type KubeConfig,
  type KubeUser,
} from './client-library.ts'

/** API server and credentials. */
export interface ApiPlace {
  /** Absolute path of a kubeconfig; '' = the service account of this process's pod. */
  readonly kubeconfig: string
  /** '' = the current context. */
  readonly context: string
}

/** Loopback hosts in the normalized form of URL. */
const LOOPBACK = /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/
const KUBECONFIG_OCTETS_MAX = 4 * 1024 * 1024

/**
 * Reads configuration and credentials. Throws InputError `KUBECONFIG` that names what is missing.
 * The error never quotes the file, which holds secrets.
 */
export async function loadKubeConfig(
  place: ApiPlace,
  env: NodeJS.ProcessEnv = process.env,
  serviceAccountRoot = '',
): Promise<KubeConfig> {
  const config = await createKubeConfig()
  if (place.kubeconfig === '') {
    loadInCluster(config, env, serviceAccountRoot)
    return config
  }
  const raw = parseText(place.kubeconfig, readText(place.kubeconfig))
  try {
    // Not the text itself: the library's YAML errors quote it.
    config.loadFromString(JSON.stringify(raw))
    allowPlain(config)
  } catch (error) {
    throw fault(place.kubeconfig, error instanceof Error ? error.message : 'is not a kubeconfig')
  }
  config.makePathsAbsolute(dirname(place.kubeconfig))
  followTokenFiles(config, raw, dirname(place.kubeconfig))
  if (place.context !== '') config.setCurrentContext(place.context)
  checkContext(config, place.kubeconfig)
  return config
}

function loadInCluster(config: KubeConfig, env: NodeJS.ProcessEnv, root: string): void {
  if (!env.KUBERNETES_SERVICE_HOST || !env.KUBERNETES_SERVICE_PORT) {
    throw new InputError(undefined, NOT_IN_CLUSTER)
  }
  config.loadFromCluster(root)
  checkServer(config.getCurrentCluster(), 'KUBERNETES_SERVICE_HOST')
  const files = [config.getCurrentCluster()?.caFile, tokenFileOf(config.getCurrentUser())]
  for (const file of files) if (file !== undefined) checkReadable(file)
}

/** The error for a block without a source of records outside a cluster. */
const NOT_IN_CLUSTER =
  'not in a Kubernetes cluster (KUBERNETES_SERVICE_HOST is not set): name a source of records by `kubeconfig FILE` or `manifests DIR`'

function readText(path: string): string {
  let descriptor = -1
  try {
    descriptor = openSync(path, 'r')
    const octets = readAtMost(descriptor, KUBECONFIG_OCTETS_MAX)
    if (octets === undefined) throw fault(path, `is larger than ${KUBECONFIG_OCTETS_MAX} octets`)
    return octets.toString('utf8')
  } catch (error) {
    if (!(error instanceof Error) || !('code' in error) || !('syscall' in error)) throw error
    throw fault(path, `cannot be read: ${error.message}`)
  } finally {
    if (descriptor !== -1) closeSync(descriptor)
  }
}

type RawConfig = {
  readonly users?: readonly {
    readonly name?: unknown
    readonly user?: { tokenFile?: unknown } | null
  }[]
}

function parseText(path: string, text: string): RawConfig {
  try {
    const value: unknown = parse(text, { logLevel: 'error' })
    if (typeof value !== 'object' || value === null) throw fault(path, 'is not a kubeconfig')
    return 'users' in value && !Array.isArray(value.users) ? { ...value, users: [] } : value
  } catch (error) {
    if (!(error instanceof YAMLParseError)) throw error
    throw fault(path, `is not valid YAML (line ${error.linePos?.[0].line ?? 1}: ${error.code})`)
  }
}

/**
 * Applies `tokenFile`, which the library ignores: rotated tokens use it, and it takes precedence
 * over `token`.
 */
function followTokenFiles(config: KubeConfig, raw: RawConfig, directory: string): void {
  config.users = config.users.map((user): KubeUser => {
    const file = raw.users?.find((other) => other.name === user.name)?.user?.tokenFile
    if (typeof file !== 'string' || file === '') return user
    const tokenFile = resolve(directory, file)
    return { ...user, token: '', authProvider: { name: 'tokenFile', config: { tokenFile } } }
  })
}

function checkContext(config: KubeConfig, path: string): void {
  const name = config.getCurrentContext()
  if (!name) throw fault(path, 'has no current-context: name the context after the file')
  const context = config.getContextObject(name)
  if (context === null) throw fault(path, `has no context ${JSON.stringify(name)}`)
  const cluster = config.getCurrentCluster()
  if (cluster === null) throw fault(path, `has no cluster ${JSON.stringify(context.cluster)}`)
  const user = config.getCurrentUser()
  if (user === null) throw fault(path, `has no user ${JSON.stringify(context.user)}`)
  checkServer(cluster, path)
  const files = [cluster.caFile, user.certFile, user.keyFile, tokenFileOf(user)]
  for (const file of files) if (file) checkReadable(file)
}

/** Rejects a server without TLS: an eavesdropper must not get the token. */
export function checkServer(cluster: KubeCluster | null, path: string): void {
  const server = cluster?.server ?? ''
  if (!URL.canParse(server)) throw fault(path, 'names a server that is not a URL')
  const url = new URL(server)
  if (url.protocol === 'https:') return
  if (url.protocol === 'http:' && LOOPBACK.test(url.hostname)) return
  throw fault(
    path,
    'names a server without TLS: credentials are sent only over https:, or to this machine',
  )
}

/** Lets the client library use servers without TLS. `checkServer` allows only those on this machine. */
export function allowPlain(config: KubeConfig): void {
  config.clusters = config.clusters.map((cluster) => {
    return cluster.server.startsWith('http:') ? { ...cluster, skipTLSVerify: true } : cluster
  })
}

/**
 * A digest that changes when the configuration is edited; '' = in a cluster, or the file can't be
 * read.
 */
export function digestOf({ kubeconfig }: ApiPlace): string {
  if (kubeconfig === '') return ''
  try {
    return createHash('sha256').update(readText(kubeconfig)).digest('base64')
  } catch (error) {
    if (!(error instanceof InputError)) throw error
    return ''
  }
}

/** A warning about a usable configuration; '' = none. */
export function warningOf(config: KubeConfig): string {
  const cluster = config.getCurrentCluster()
  if (!cluster?.skipTLSVerify || !cluster.server.startsWith('https:')) return ''
  return `insecure-skip-tls-verify is set for ${cluster.server}: an attacker on the path can read the credentials and forge records; set certificate-authority instead`
}

function tokenFileOf(user: KubeUser | null): string | undefined {
  const provider = user?.authProvider
  return provider?.name === 'tokenFile' ? provider.config.tokenFile : undefined
}

/** Throws InputError if the file cannot be read. */
export function checkReadable(path: string): void {
  try {
    accessSync(path, constants.R_OK)
  } catch (error) {
    if (!(error instanceof Error) || !('code' in error)) throw error
    throw fault(path, `cannot be read: ${error.message}`)
  }
}

function fault(path: string, message: string): InputError {
  return new InputError(undefined, `${path}: ${message}`)
}
