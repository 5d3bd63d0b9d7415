import type { RequestOptions } from 'node:https'
import type { Duplex, Readable, Writable } from 'node:stream'
import { InputError } from '../base/errors.ts'

/*
 * The part of @kubernetes/client-node that is used. Declared here because it is an optional dependency: a server
 * without Kubernetes is built and runs without it.
 */

export interface KubeCluster {
  readonly server: string
  readonly caFile?: string
  readonly skipTLSVerify: boolean
  readonly proxyUrl?: string
}

export interface KubeUser {
  readonly name: string
  readonly certFile?: string
  readonly keyFile?: string
  readonly token?: string
  readonly authProvider?: {
    readonly name: string
    readonly config: { readonly tokenFile?: string }
  }
}

export interface KubeConfig {
  clusters: KubeCluster[]
  users: KubeUser[]
  loadFromString(text: string): void
  loadFromCluster(pathPrefix: string): void
  makePathsAbsolute(directory: string): void
  setCurrentContext(name: string): void
  getCurrentContext(): string
  getContextObject(name: string): { readonly cluster: string; readonly user: string } | null
  getCurrentCluster(): KubeCluster | null
  getCurrentUser(): KubeUser | null
  /** Fills in the credentials. */
  applyToHTTPSOptions(options: RequestOptions): Promise<void>
}

const PACKAGE: string = '@kubernetes/client-node'

/** A forwarded port. */
interface Tunnel {
  onclose: () => void
  close(): void
}

interface PortForward {
  portForward(
    namespace: string,
    pod: string,
    ports: readonly number[],
    output: Writable,
    errors: Writable,
    input: Readable,
  ): Promise<Tunnel>
}

interface Library {
  readonly KubeConfig: new () => KubeConfig
  readonly PortForward: new (config: KubeConfig) => PortForward
}

/** Returns a configuration without content. Rejects with InputError if the library is not installed. */
export async function createKubeConfig(): Promise<KubeConfig> {
  const library = await loadLibrary()
  return new library.KubeConfig()
}

/**
 * Opens a port-forward to a Pod: octets go from `local` to the port, and back. `errors` gets what the kubelet reports.
 * Rejects with an error of the library if the API server refuses it.
 */
export async function openPortForward(
  config: KubeConfig,
  { namespace, pod, port }: { namespace: string; pod: string; port: number },
  { local, errors }: { local: Duplex; errors: Writable },
): Promise<Tunnel> {
  const { PortForward } = await loadLibrary()
  return new PortForward(config).portForward(namespace, pod, [port], local, errors, local)
}

/** The first call takes a second and 80 MB of memory. */
async function loadLibrary(): Promise<Library> {
  try {
    return (await import(PACKAGE)) as Library
  } catch (cause) {
    if (!isMissing(cause)) throw cause
    const cure =
      'install Sextant with its optional dependencies: `npm ci` without `--omit=optional`'
    const message = `Kubernetes needs the npm package ${PACKAGE}, which is not installed: ${cure}`
    throw new InputError(undefined, message, cause)
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ERR_MODULE_NOT_FOUND'
}
