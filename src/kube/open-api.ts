import type { ApiClient } from './api.ts'
import type { ApiPlace } from './kubeconfig.ts'

export interface OpenedApi {
  readonly api: ApiClient
  /** A remark about the configuration for the operator; '' = none. */
  readonly warning: string
}

/** Returns a client of the API. Throws InputError if the configuration is invalid. */
export async function openApi(place: ApiPlace): Promise<OpenedApi> {
  // The Kubernetes modules are loaded with the first cluster.
  const { HttpsClient } = await import('./https-client.ts')
  const { loadKubeConfig, warningOf } = await import('./kubeconfig.ts')
  const load = () => loadKubeConfig(place)
  const config = await load()
  return { api: new HttpsClient(config, load), warning: warningOf(config) }
}
