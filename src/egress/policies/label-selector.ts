import { isObject } from '../../kube/api.ts'
import { type PolicyField, quoteValue } from './policy-field.ts'

type LabelOperator = 'In' | 'NotIn' | 'Exists' | 'DoesNotExist'

interface LabelRequirement {
  readonly key: string
  readonly operator: LabelOperator
  readonly values: ReadonlySet<string>
}

/** Requirements that labels must all meet. An empty list selects everything. */
export type LabelSelector = readonly LabelRequirement[]

export type LabelMap = ReadonlyMap<string, string>

export const EVERYTHING: LabelSelector = []

const NO_VALUES: ReadonlySet<string> = new Set()

/**
 * Reads a LabelSelector. `keyOf` returns the key that is compared. Undefined = it is missing or
 * invalid, which is reported.
 */
export function scanLabelSelector(
  field: PolicyField,
  keyOf: (key: string) => string = (key) => key,
): LabelSelector | undefined {
  if (!field.isPresent) {
    field.report('is missing')
    return undefined
  }
  if (!field.hasOnly(['matchLabels', 'matchExpressions'])) return undefined
  const labels = scanMatchLabels(field.at('matchLabels'), keyOf)
  const list = field.at('matchExpressions')
  const expressions = list.items().map((item) => scanExpression(item, keyOf))
  const isList = !list.isPresent || Array.isArray(list.value)
  const all = [...(labels ?? []), ...expressions].filter((one) => one !== undefined)
  const isValid = labels !== undefined && isList && !expressions.includes(undefined)
  return isValid ? all : undefined
}

function scanMatchLabels(
  field: PolicyField,
  keyOf: (key: string) => string,
): LabelSelector | undefined {
  if (!field.isPresent) return []
  if (!isObject(field.value)) {
    field.report('must be a mapping')
    return undefined
  }
  const requirements: LabelRequirement[] = []
  // A null is a value here: Kubernetes reads it as ''.
  for (const [key, value] of Object.entries(field.value)) {
    if (value !== null && typeof value !== 'string') {
      field.at(key).report('must be a string')
      return undefined
    }
    requirements.push({ key: keyOf(key), operator: 'In', values: new Set([value ?? '']) })
  }
  return requirements
}

function scanExpression(
  field: PolicyField,
  keyOf: (key: string) => string,
): LabelRequirement | undefined {
  if (!field.hasOnly(['key', 'operator', 'values'])) return undefined
  const [key, operator] = [field.at('key').text(), field.at('operator').text()]
  const items = field.at('values').items()
  const values = new Set(items.map((item) => item.text()))
  if (items.some(({ value }) => typeof value !== 'string')) return undefined
  if (key === '') {
    field.at('key').report('is missing')
    return undefined
  }
  switch (operator) {
    case 'In':
    case 'NotIn':
      if (values.size > 0) return { key: keyOf(key), operator, values }
      field.at('values').report(`must not be empty with ${operator}`)
      return undefined
    case 'Exists':
    case 'DoesNotExist':
      if (values.size === 0) return { key: keyOf(key), operator, values: NO_VALUES }
      field.at('values').report(`must be empty with ${operator}`)
      return undefined
    default:
      field
        .at('operator')
        .report(`must be In, NotIn, Exists or DoesNotExist, not ${quoteValue(operator)}`)
      return undefined
  }
}

/** True if the labels meet all requirements. */
export function selectsLabels(selector: LabelSelector, labels: LabelMap): boolean {
  for (const { key, operator, values } of selector) {
    const value = labels.get(key)
    switch (operator) {
      case 'In':
        if (value === undefined || !values.has(value)) return false
        break
      case 'NotIn':
        if (value !== undefined && values.has(value)) return false
        break
      case 'Exists':
        if (value === undefined) return false
        break
      case 'DoesNotExist':
        if (value !== undefined) return false
        break
    }
  }
  return true
}
