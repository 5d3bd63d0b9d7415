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
  readonly patches?: readonly {
    readonly target: { readonly kind: string; readonly name: string }
    readonly patch: string
  }[]
}

const KNOWN = ['apiVersion', 'kind', 'resources', 'patches']

/**
 * What `kubectl kustomize` makes of a folder of the repository, in the order of its files. Knows what our
 * kustomizations use, resources and `replace` patches, and throws on anything else.
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
    for (const manifest of met) for (const operation of parse(patch)) replace(manifest, operation)
  }
  return manifests
}

/** The documents of one file of the repository. */
export function readManifests(path: string): Manifest[] {
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

function replace(manifest: Manifest, { op, path, value }: Operation): void {
  const keys = path.split('/').slice(1)
  const last = keys.pop()!
  // biome-ignore lint/suspicious/noExplicitAny: whatever the kind has
  const parent = keys.reduce((at: any, key) => at?.[key], manifest)
  if (op !== 'replace' || parent?.[last] === undefined) throw new Error(`can not ${op} ${path}`)
  parent[last] = value
}

function read(path: string): string {
  return readFileSync(join(root, path), 'utf8')
}
