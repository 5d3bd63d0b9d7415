import type { RequestOptions } from 'node:https'
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

/**
 * Returns a configuration without content. Loads the library at the first call: this takes a second and 80 MB of
 * memory. Rejects with InputError if the library is not installed.
 */
export async function createKubeConfig(): Promise<KubeConfig> {
  try {
    const library = (await import(PACKAGE)) as { readonly KubeConfig: new () => KubeConfig }
    return new library.KubeConfig()
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
