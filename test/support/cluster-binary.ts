import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { cacheFolder } from './cache-folder.ts'
import { root } from './server.ts'

/** How etcd and the API server are started: a program and its first arguments. */
export interface ClusterBinaries {
  readonly etcd: readonly [string, ...string[]]
  readonly apiServer: readonly [string, ...string[]]
}

/** Those of KUBEBUILDER_ASSETS, of PATH, or the binary that `test/cluster/build` makes; undefined = none. */
export function findClusterBinaries(): ClusterBinaries | undefined {
  const folders = [
    process.env.KUBEBUILDER_ASSETS ?? '',
    ...(process.env.PATH ?? '').split(delimiter),
  ]
  for (const folder of folders) {
    const [etcd, apiServer] = [join(folder, 'etcd'), join(folder, 'kube-apiserver')]
    const isHere = folder !== '' && existsSync(etcd) && existsSync(apiServer)
    if (isHere) return { etcd: [etcd], apiServer: [apiServer] }
  }
  const built = builtBinary('')
  if (!existsSync(built)) return undefined
  return { etcd: [built, 'etcd'], apiServer: [built, 'kube-apiserver'] }
}

/** Where `test/cluster/build FOLDER` puts what it makes of the sources as they are. */
function builtBinary(folder: '' | 'external-dns'): string {
  const hash = createHash('sha256')
  for (const file of ['go.mod', 'go.sum', 'main.go']) {
    hash.update(readFileSync(join(root, 'test/cluster', folder, file)))
  }
  return join(cacheFolder(), `${folder || 'cluster'}-${hash.digest('hex').slice(0, 16)}`)
}

/** external-dns, which `test/cluster/external-dns/build` makes. */
export function externalDnsBinary(): string {
  return builtBinary('external-dns')
}

/** As `needsCluster`, for a test that needs external-dns, too. */
export function needsExternalDns(): { skip?: string } {
  if (existsSync(externalDnsBinary()) || process.env.CI === 'true') return needsCluster()
  return { skip: 'no external-dns: test/cluster/external-dns/build makes one' }
}

/**
 * Options for a test that needs an API server: skipped with the reason where there is none on a user's
 * machine; in CI it runs, and so fails.
 */
export function needsCluster(): { skip?: string } {
  if (findClusterBinaries() !== undefined || process.env.CI === 'true') return {}
  let hasGo = true
  try {
    execFileSync('go', ['version'], { stdio: 'ignore' })
  } catch {
    hasGo = false
  }
  const cure = hasGo
    ? 'test/cluster/build makes one'
    : 'install Go, and test/cluster/build makes one'
  return { skip: `no kube-apiserver and etcd in KUBEBUILDER_ASSETS or PATH: ${cure}` }
}
