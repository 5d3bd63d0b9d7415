import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { applyAll } from './apply.ts'
import type { Cluster } from './cluster.ts'
import { composeManifests } from './kustomize.ts'

/** Where `deploy/` has its accounts, and the namespace that its overlay `chosen-namespaces` is for. */
export const SYSTEM = 'sextant-system'
export const CHOSEN = 'gateways'

/** Puts what `deploy/` has for the namespace CHOSEN, and that namespace, into a cluster. */
export async function deploy(cluster: Cluster): Promise<void> {
  await cluster.installCrds()
  await cluster.createNamespace(CHOSEN)
  const manifests = composeManifests('deploy/overlays/chosen-namespaces')
  await applyAll(
    cluster,
    manifests.filter(({ kind }) => kind !== 'CustomResourceDefinition'),
  )
}

/** Writes a kubeconfig of a service account of `deploy/`, with its rights alone, into `directory`; its path. */
export async function writeKubeconfig(
  cluster: Cluster,
  account: string,
  directory: string,
): Promise<string> {
  const accounts = `/api/v1/namespaces/${SYSTEM}/serviceaccounts`
  const { status } = await cluster.must('POST', `${accounts}/${account}/token`, { spec: {} })
  const path = join(directory, `${account}.kubeconfig`)
  const here = { server: cluster.url, 'certificate-authority': cluster.caFile }
  const kubeconfig = {
    'current-context': 'main',
    clusters: [{ name: 'here', cluster: here }],
    users: [{ name: account, user: { token: status.token } }],
    contexts: [{ name: 'main', context: { cluster: 'here', user: account } }],
  }
  writeFileSync(path, JSON.stringify(kubeconfig), { mode: 0o600 })
  return path
}
