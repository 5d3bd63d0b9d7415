import type { ApiClient } from './api.ts'
import { createKubeConfig, type KubeConfig } from './client-library.ts'
import { HttpsClient } from './https-client.ts'
import { allowPlain, checkReadable, checkServer } from './kubeconfig.ts'

/** Absolute paths of PEM files. */
export interface EndpointFiles {
  readonly certificate: string
  readonly key: string
  readonly authority: string
}

/**
 * Returns a client of the API server at `server`, a URL, with a client certificate if `files` has
 * one. Throws InputError if the URL has no TLS or a file cannot be read.
 */
export async function openEndpoint(
  server: string,
  files: EndpointFiles | undefined,
): Promise<ApiClient> {
  const load = async (): Promise<KubeConfig> => {
    const { certificate, key, authority } = files ?? { certificate: '', key: '', authority: '' }
    for (const file of [certificate, key, authority]) if (file !== '') checkReadable(file)
    const trust = authority === '' ? {} : { 'certificate-authority': authority }
    const own = certificate === '' ? {} : { 'client-certificate': certificate, 'client-key': key }
    const name = 'endpoint'
    const config = await createKubeConfig()
    const raw = {
      'current-context': name,
      clusters: [{ name, cluster: { server, ...trust } }],
      users: [{ name, user: own }],
      contexts: [{ name, context: { cluster: name, user: name } }],
    }
    config.loadFromString(JSON.stringify(raw))
    allowPlain(config)
    checkServer(config.getCurrentCluster(), 'endpoint')
    return config
  }
  return new HttpsClient(await load(), load)
}
