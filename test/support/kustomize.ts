import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { parse, parseAllDocuments } from 'yaml'
import { root } from './server.ts'

/** An object of the Kubernetes API as a manifest has it. */
export interface Manifest {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly name: string; readonly namespace?: string }
  // biome-ignore lint/suspicious/noExplicitAny: whatever the kind has
  readonly [field: string]: any
}

interface Operation {
  readonly op: string
  readonly path: string
  readonly value: unknown
}

interface Kustomization {
  readonly resources: readonly string[]
  readonly images?: readonly { readonly name: string; newName: string; newTag: string }[]
  readonly configMapGenerator?: readonly {
    readonly name: string
    readonly namespace: string
    readonly files: readonly string[]
  }[]
  readonly generatorOptions?: {
    readonly disableNameSuffixHash: boolean
    readonly labels: Readonly<Record<string, string>>
  }
  readonly patches?: readonly {
    readonly target: { readonly kind: string; readonly name: string }
    readonly patch: string
  }[]
}

const FIELDS = ['resources', 'patches', 'images', 'configMapGenerator', 'generatorOptions']
const KNOWN = ['apiVersion', 'kind', ...FIELDS]

/**
 * Composes a folder of the repository as `kubectl kustomize` does, in the order of its files. Supports what our
 * kustomizations use: resources, patches that replace or add, images, ConfigMaps of files. Throws on anything else.
 */
export function composeManifests(folder: string): Manifest[] {
  const kustomization: Kustomization = parse(read(join(folder, 'kustomization.yaml')))
  const unknown = Object.keys(kustomization).filter((key) => !KNOWN.includes(key))
  if (unknown.length > 0) throw new Error(`${folder}: ${unknown} is not known here`)
  const manifests = kustomization.resources.flatMap((resource) => {
    const path = join(folder, resource)
    return statSync(join(root, path)).isDirectory() ? composeManifests(path) : readManifests(path)
  })
  for (const { target, patch } of kustomization.patches ?? []) {
    const met = manifests.filter(
      ({ kind, metadata }) => kind === target.kind && metadata.name === target.name,
    )
    if (met.length === 0) throw new Error(`${folder}: nothing is called ${target.name}`)
    for (const manifest of met)
      for (const operation of parse(patch)) applyOperation(manifest, operation)
  }
  setImages(manifests, kustomization.images ?? [])
  return [...manifests, ...makeConfigMaps(folder, kustomization)]
}

function setImages(manifests: readonly Manifest[], images: Kustomization['images'] & {}): void {
  const containers = manifests.flatMap(({ spec }) => spec?.template?.spec?.containers ?? [])
  for (const { name, newName, newTag } of images) {
    for (const container of containers) {
      if (container.image.split(':')[0] === name) container.image = `${newName}:${newTag}`
    }
  }
}

function makeConfigMaps(
  folder: string,
  { configMapGenerator, generatorOptions }: Kustomization,
): Manifest[] {
  if (configMapGenerator === undefined) return []
  if (!generatorOptions?.disableNameSuffixHash) throw new Error(`${folder}: names get a suffix`)
  const { labels } = generatorOptions
  return configMapGenerator.map(({ name, namespace, files }) => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name, namespace, labels },
    data: Object.fromEntries(
      files.map((file) => file.split('=')).map(([key, path]) => [key, read(join(folder, path!))]),
    ),
  }))
}

/** The folder of deploy/ that users copy. */
export const SITE = 'deploy/examples/site'

/** Corefiles and keys of SITE, to join with an overlay. */
export function siteParts(): Manifest[] {
  const overlay = composeManifests('deploy/overlays/all-namespaces')
  return composeManifests(SITE).slice(overlay.length)
}

/** The documents of one file of the repository. */
function readManifests(path: string): Manifest[] {
  return parseAllDocuments(read(path)).map((document) => {
    const [problem] = [...document.errors, ...document.warnings]
    if (problem !== undefined) throw new Error(`${path}: ${problem.message}`)
    return document.toJS()
  })
}

/** The one of that kind and name. */
export function manifestOf(manifests: readonly Manifest[], kind: string, name: string): Manifest {
  const found = manifests.find((m) => m.kind === kind && m.metadata.name === name)
  if (found === undefined) throw new Error(`no ${kind} ${name}`)
  return found
}

function applyOperation(manifest: Manifest, { op, path, value }: Operation): void {
  const keys = path.split('/').slice(1)
  const last = keys.pop()!
  // biome-ignore lint/suspicious/noExplicitAny: whatever the kind has
  const parent = keys.reduce((at: any, key) => at?.[key], manifest)
  const isThere = parent?.[last] !== undefined
  if (op === 'add' && last === '-' && Array.isArray(parent)) parent.push(value)
  else if (op === (isThere ? 'replace' : 'add') && parent !== undefined) parent[last] = value
  else throw new Error(`can not ${op} ${path}`)
}

function read(path: string): string {
  return readFileSync(join(root, path), 'utf8')
}
