import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { applyAll } from './apply.ts'
import type { Cluster } from './cluster.ts'
import { composeManifests } from './kustomize.ts'
import { CHOSEN, OPERATOR, OPERATOR_AT_HOME, rightsInForce, SERVER, SYSTEM } from './rights.ts'

/** Puts what `deploy/` has for the namespace CHOSEN, and that namespace, into a cluster, and waits until it is in force. */
export async function deploy(cluster: Cluster): Promise<void> {
  await cluster.installCrds()
  await cluster.createNamespace(CHOSEN)
  const manifests = composeManifests('deploy/overlays/chosen-namespaces')
  await applyAll(
    cluster,
    manifests.filter(({ kind }) => kind !== 'CustomResourceDefinition'),
  )
  await rightsInForce(cluster, 'server', SERVER(CHOSEN))
  await rightsInForce(cluster, 'operator', [...OPERATOR(CHOSEN), ...OPERATOR_AT_HOME])
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
