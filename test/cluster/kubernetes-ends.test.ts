import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parse } from 'yaml'
import { CLUSTER_TEST_MS, readCrd } from '../support/cluster.ts'
import { CHART, exampleValues, needsHelm, renderChart } from '../support/helm.ts'
import { KUBERNETES_ENDS } from '../support/kubernetes-ends.ts'
import { composeManifests, type Manifest } from '../support/kustomize.ts'
import { needs } from '../support/peer.ts'
import { root } from '../support/server.ts'
import { downloadModule } from './go-module.ts'

/*
 * What we apply to and request of a cluster, against the API of the oldest and the newest version that is supported. The
 * other tests in this folder run one between them.
 */

const [OLDEST] = KUBERNETES_ENDS
/** Kinds of others, which a cluster has only with a definition. */
const FOREIGN = ['PodMonitor', 'ServiceMonitor', 'PrometheusRule']
/** Groups in the domain of Kubernetes whose kinds need a definition too. */
const FOREIGN_GROUPS = [
  'policy.networking.k8s.io',
  'gateway.networking.k8s.io',
  'externaldns.k8s.io',
]
const API = 'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1'

interface Part {
  readonly $ref?: string
  readonly type?: string
  readonly format?: string
  readonly items?: Part
  readonly properties?: Readonly<Record<string, Part>>
  readonly additionalProperties?: Part
  readonly required?: readonly string[]
  readonly 'x-kubernetes-group-version-kind'?: readonly Record<string, string>[]
}
interface Api {
  readonly definitions: Readonly<Record<string, Part>>
  readonly paths: Readonly<Record<string, unknown>>
}

t.setTimeout(CLUSTER_TEST_MS)

function loadApi(version: string): Api {
  const folder = downloadModule(`k8s.io/kubernetes@v${version}`, root)
  const { definitions, paths } = JSON.parse(
    readFileSync(join(folder, 'api/openapi-spec/swagger.json'), 'utf8'),
  )
  const props = { $ref: `#/definitions/${API}.JSONSchemaProps` }
  // The document has no schema for these, which are nearly always one.
  const nested = {
    [`${API}.JSONSchemaPropsOrArray`]: props,
    [`${API}.JSONSchemaPropsOrBool`]: props,
  }
  return { definitions: { ...definitions, ...nested }, paths }
}

/** Fields and types of a value that the API does not have, as `path: why`. */
function faultsOf(api: Api, value: unknown, part: Part, path: string): string[] {
  const below = (item: unknown, schema: Part, at: string) => faultsOf(api, item, schema, at)
  if (part.$ref !== undefined) {
    return below(value, api.definitions[part.$ref.replace('#/definitions/', '')]!, path)
  }
  const { type, properties, additionalProperties, required = [] } = part
  if (type === 'array') {
    if (!Array.isArray(value)) return [`${path}: no list`]
    return value.flatMap((item, i) => below(item, part.items!, `${path}[${i}]`))
  }
  if (type === 'object' && (properties ?? additionalProperties) !== undefined) {
    if (typeof value !== 'object' || value === null) return [`${path}: no mapping`]
    const missing = required.filter((name) => !Object.hasOwn(value, name))
    const wrong = Object.entries(value).flatMap(([name, item]) => {
      const field = properties?.[name] ?? additionalProperties
      return field ? below(item, field, `${path}.${name}`) : [`${path}.${name}: no such field`]
    })
    return [...missing.map((name) => `${path}.${name}: missing`), ...wrong]
  }
  const isText = type === 'string' && part.format !== 'int-or-string'
  if (isText && typeof value !== 'string') return [`${path}: no string`]
  if (type === 'integer' && !Number.isInteger(value)) return [`${path}: no integer`]
  if (type === 'boolean' && typeof value !== 'boolean') return [`${path}: no boolean`]
  return []
}

function misfits(api: Api, manifest: Manifest): string[] {
  const [version = '', group = ''] = manifest.apiVersion.split('/').toReversed()
  const { kind, metadata } = manifest
  const found = Object.values(api.definitions).find((part) =>
    part['x-kubernetes-group-version-kind']?.some(
      (one) => one.group === group && one.version === version && one.kind === kind,
    ),
  )
  const name = `${manifest.apiVersion} ${kind} ${metadata.name}`
  return found === undefined ? [`${name}: no such kind`] : faultsOf(api, manifest, found, name)
}

/** Folders below deploy/ that are applied, also as components. */
function deployFolders(): string[] {
  const paths = readdirSync(join(root, 'deploy'), { recursive: true, encoding: 'utf8' })
  const files = paths.filter((path) => path.endsWith('/kustomization.yaml'))
  return files.map((path) => join('deploy', path, '..'))
}

for (const version of KUBERNETES_ENDS)
  t.test(`Kubernetes ${version}`, needs('go'), async (t) => {
    const api = loadApi(version)

    t.test('does not know', (t) => {
      const metadata = { name: 'a' }
      const spec = { selector: {}, template: { metadata }, later: 1, replicas: 'two' }
      const base = { metadata, kind: 'Deployment' }
      t.strictSame(misfits(api, { ...base, apiVersion: 'apps/v1', spec }), [
        'apps/v1 Deployment a.spec.later: no such field',
        'apps/v1 Deployment a.spec.replicas: no integer',
      ])
      const old = { ...base, apiVersion: 'apps/v1beta1' }
      t.strictSame(misfits(api, old), ['apps/v1beta1 Deployment a: no such kind'])
      t.end()
    })

    t.test('knows all fields of the manifests', (t) => {
      const folders = deployFolders()
      t.ok(folders.includes('deploy/examples/site'))
      for (const folder of folders) {
        const manifests = composeManifests(folder).filter(({ kind }) => !FOREIGN.includes(kind))
        t.strictSame(
          manifests.flatMap((manifest) => misfits(api, manifest)),
          [],
          folder,
        )
      }
      t.end()
    })

    t.test('knows all fields of the chart', needsHelm(), async (t) => {
      const { kubeVersion } = parse(readFileSync(join(CHART, 'Chart.yaml'), 'utf8'))
      t.equal(kubeVersion, `>=${OLDEST.replace(/\d+$/, '0')}-0`, 'the version that helm demands')
      for (const file of readdirSync(join(CHART, 'examples'))) {
        const args = ['-f', exampleValues(file.replace('.yaml', '')), '--kube-version', version]
        const manifests = await renderChart('sextant-system', args)
        const known = manifests.filter(({ kind }) => !FOREIGN.includes(kind))
        t.strictSame(
          known.flatMap((manifest) => misfits(api, manifest)),
          [],
          file,
        )
      }
    })

    t.test('knows all fields and functions of the definitions', (t) => {
      const paths = readdirSync(join(root, 'crds'), { recursive: true, encoding: 'utf8' })
      for (const path of paths.filter((path) => /^(?!kustom).*\.yaml$/.test(path))) {
        const crd = readCrd(path.replace('.yaml', ''))
        t.strictSame(misfits(api, crd), [], path)
        // Kubernetes has added functions of CEL since. `has` is part of the language.
        const rules = JSON.stringify(crd).match(/"rule":"[^"]*"/g) ?? []
        const functions = rules.flatMap((rule) => rule.match(/\w+(?=\()/g) ?? [])
        t.strictSame(
          [...new Set(functions)].filter((one) => one !== 'has'),
          [],
          path,
        )
      }
      t.end()
    })

    t.test('serves what the server and the operator request', (t) => {
      const files = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
      const text = files
        .filter((file) => file.endsWith('.ts'))
        .map((file) => readFileSync(join(root, 'src', file), 'utf8'))
        .join('\n')
      const resource = /group: '([^']*)',\s+version: '(\w+)',\s+plural: '(\w+)'/g
      const own = [...text.matchAll(resource)].filter(([, group]) => isOfKubernetes(group!))
      t.ok(own.length > 5)
      for (const [, group, version, plural] of own) {
        const prefix = group === '' ? '/api' : `/apis/${group}`
        const found = [`/${plural}`, `/namespaces/{namespace}/${plural}`].some((end) =>
          Object.hasOwn(api.paths, `${prefix}/${version}${end}`),
        )
        t.ok(found, `${prefix}/${version}: ${plural}`)
      }
      t.end()
    })
  })

function isOfKubernetes(group: string): boolean {
  return group === '' || (group.endsWith('.k8s.io') && !FOREIGN_GROUPS.includes(group))
}
