import type { Cluster } from './cluster.ts'
import type { Manifest } from './kustomize.ts'

const FIRST = ['Namespace', 'CustomResourceDefinition']

/** The path of objects of a manifest's kind, from the API server's discovery. */
async function pathOf(cluster: Cluster, { apiVersion, kind, metadata }: Manifest): Promise<string> {
  const group = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`
  const { resources } = await cluster.must('GET', group)
  const found = resources.find(
    (resource: { kind: string; name: string }) =>
      resource.kind === kind && !resource.name.includes('/'),
  )
  if (found === undefined) throw new Error(`${apiVersion} knows no ${kind}`)
  const scope = found.namespaced ? `/namespaces/${metadata.namespace ?? 'no namespace given'}` : ''
  return `${group}${scope}/${found.name}`
}

/** As `kubectl apply --server-side --validate=strict`. */
async function apply(cluster: Cluster, manifest: Manifest): Promise<void> {
  const path = `${await pathOf(cluster, manifest)}/${manifest.metadata.name}`
  const query = 'fieldManager=test&fieldValidation=Strict'
  const contentType = 'application/apply-patch+yaml'
  const reply = await cluster.call('PATCH', `${path}?${query}`, manifest, { contentType })
  if (reply.status >= 300) throw new Error(`${path}: ${JSON.stringify(reply.body)}`)
}

/** All of them, in an order in which each finds what it needs. */
export async function applyAll(cluster: Cluster, manifests: readonly Manifest[]): Promise<void> {
  const isFirst = ({ kind }: Manifest) => FIRST.includes(kind)
  for (const manifest of manifests.filter(isFirst)) await apply(cluster, manifest)
  const hasKinds = manifests.some(({ kind }) => kind === 'CustomResourceDefinition')
  if (hasKinds) await cluster.servesCrds()
  for (const manifest of manifests.filter((m) => !isFirst(m))) await apply(cluster, manifest)
}
