import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseAllDocuments } from 'yaml'
import { cacheFolder } from './cache-folder.ts'
import type { Manifest } from './kustomize.ts'
import { isInstalled, run } from './peer.ts'
import { root } from './server.ts'

export const CHART = join(root, 'deploy/chart')
/** The values of `deploy/chart/examples/NAME.yaml`. */
export const exampleValues = (name: string) => join(CHART, 'examples', `${name}.yaml`)

/** `helm` of PATH, or the one that `.ci/helm` makes; undefined = none. */
export function findHelm(): string | undefined {
  if (isInstalled('helm')) return 'helm'
  const hash = createHash('sha256')
  for (const file of ['go.mod', 'go.sum']) {
    hash.update(readFileSync(join(root, 'test/cluster/helm', file)))
  }
  const key = hash.digest('hex').slice(0, 16)
  const built = join(cacheFolder(), `helm-${key}`)
  return existsSync(built) ? built : undefined
}

/** Options for a test that needs helm: skipped where there is none on a user's machine; in CI it runs, and so fails. */
export function needsHelm(): { skip?: string } {
  if (findHelm() !== undefined || process.env.CI === 'true') return {}
  return { skip: 'no helm in PATH: install Go, and .ci/helm makes one' }
}

/** Runs helm to its end. */
export function helm(...args: readonly string[]): ReturnType<typeof run> {
  return run(findHelm() ?? 'helm', args)
}

/** The objects of a release `sextant` in `namespace`, without those of `crds/`. `args`: more arguments. */
export async function renderChart(
  namespace: string,
  args: readonly string[],
  chart = CHART,
): Promise<Manifest[]> {
  const words = ['template', 'sextant', chart, '--namespace', namespace, ...args]
  const { code, stdout, stderr } = await helm(...words)
  if (code !== 0) throw new Error(stderr)
  return parseManifests(stdout)
}

/** The objects of what helm prints. */
export function parseManifests(text: string): Manifest[] {
  const documents = parseAllDocuments(text).map((document) => {
    const [problem] = [...document.errors, ...document.warnings]
    if (problem !== undefined) throw new Error(`${problem.message} in:\n${text}`)
    return document.toJS()
  })
  return documents.filter((manifest) => manifest !== null)
}
