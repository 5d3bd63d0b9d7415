import type { YamlValue } from '../../yaml/scan-block-yaml.ts'
import { isAuthoritativeLabel } from './dns-record.ts'
import type { FieldProblem } from './fields.ts'
import { isMapping } from './fields.ts'
import { isRegistryText } from './registry-text.ts'
import { SERVED, validateResource } from './resource.ts'

type Mapping = { readonly [key: string]: YamlValue }

/** Replaces a record's root host that is invalid, so that the rest can be validated. */
const ROOT_HOST = 'sound.example'
const ENDPOINT_FIELDS = ['dnsName', 'setIdentifier', 'recordTTL', 'providerSpecific']
const LOCAL_ZONE = /^kdrnt\.?$/i

/**
 * Returns the other faults of a record that is refused for `first`, by field. Each part of the
 * record is validated in an otherwise valid record. For `sextant check`; serving needs one reason
 * only.
 */
export function findFurtherFaults(resource: YamlValue, first: FieldProblem): FieldProblem[] {
  const found = new Map([[first.path.join('/'), first]])
  const add = (problem: FieldProblem | undefined): void => {
    const key = problem?.path.join('/') ?? ''
    if (problem !== undefined && !found.has(key)) found.set(key, problem)
  }
  if (isMapping(resource)) checkParts(resource, add)
  return [...found.values()].slice(1)
}

function checkParts(resource: Mapping, add: (problem: FieldProblem | undefined) => void): void {
  const { spec, metadata } = resource
  if (!isMapping(spec) || !isMapping(metadata)) return
  const whole = spec
  const { endpoints } = whole
  const { name, namespace, labels } = metadata
  // Records in gateway-local form follow other rules, and programs write them.
  if (isMapping(labels) && hasLocalZone(labels)) return
  const isAuthoritative = isMapping(labels) && isAuthoritativeLabel(labels)
  const empty = { ...resource, spec: { ...whole, endpoints: [] } }
  const problem = problemOf(empty)
  add(problem)
  if (!Array.isArray(endpoints)) return
  const rootHost = problem === undefined ? whole.rootHost! : ROOT_HOST
  const bare = { ...resource, metadata: { name: name!, namespace: namespace ?? 'default' } }
  for (const [index, endpoint] of endpoints.entries()) {
    if (isAuthoritative && isRegistryText(endpoint)) continue
    const check = (part: YamlValue, targetIndex = 0): void => {
      const spec = { rootHost, endpoints: [part] }
      const found = problemOf({ ...bare, spec })
      if (found === undefined) return
      const path = found.path.map((step, i) => {
        if (i === 2) return index
        return i === 4 && found.path[3] === 'targets' ? targetIndex : step
      })
      add({ path, message: found.message })
    }
    check(endpoint)
    if (isMapping(endpoint)) checkFields(endpoint, String(rootHost), check)
  }
}

function checkFields(
  endpoint: Mapping,
  rootHost: string,
  check: (part: YamlValue, targetIndex?: number) => void,
): void {
  const sound = { dnsName: rootHost, recordType: 'A', targets: ['192.0.2.1'] }
  for (const field of ENDPOINT_FIELDS) {
    if (!(field in endpoint)) continue
    check({ ...sound, [field]: endpoint[field]! })
  }
  const { recordType, targets } = endpoint
  // The type decides which targets are valid, so without a type they are not checked.
  if (!Array.isArray(targets) || recordType === undefined) return
  for (const [index, target] of targets.entries()) {
    check({ ...sound, recordType, targets: [target] }, index)
  }
}

function hasLocalZone(labels: Mapping): boolean {
  const zone = labels['kuadrant.io/coredns-zone-name']
  return typeof zone === 'string' && LOCAL_ZONE.test(zone)
}

function problemOf(resource: Mapping): FieldProblem | undefined {
  const found = validateResource(resource, SERVED)
  return found.kind === 'refused' ? found.problem : undefined
}
