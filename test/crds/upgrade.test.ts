import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parse, parseAllDocuments } from 'yaml'
import { readCrd } from '../support/cluster.ts'
import { root } from '../support/server.ts'
import { misfitsOf, type Schema } from './schema.ts'

/*
 * Clusters have objects and definitions of an older release: a definition only ever accepts more. When a release adds a
 * field, store its definitions in a folder with its version, beside those of the releases that users upgrade from.
 */

const PLURALS = ['dnsrecords', 'dnshealthcheckprobes']
const FOLDER = join(root, 'test/crds')
const STORED = readdirSync(FOLDER).filter((name) => /^\d/.test(name))

/** What a schema says beside its fields, and how: a value that became smaller, or greater, accepts less. */
const UPPER = ['maximum', 'maxLength', 'maxItems', 'maxProperties']
const LOWER = ['minimum', 'minLength', 'minItems', 'minProperties']
const TEXTS = ['description', 'example', 'default']
const BELOW = ['properties', 'items', 'additionalProperties']

type Part = Readonly<Record<string, unknown>>
interface Version {
  readonly name: string
  readonly served: boolean
  readonly storage: boolean
  readonly schema: { readonly openAPIV3Schema: Part }
}
interface Definition {
  readonly spec: { readonly scope: string; readonly names: Part; readonly versions: Version[] }
}

function storedCrd(version: string, plural: string): Definition {
  return parse(readFileSync(join(FOLDER, version, `${plural}.yaml`), 'utf8'))
}

/** Everything that `from` accepts and `to` does not, as `path: why`. */
function narrowings(from: Part, to: Part | undefined, path = ''): string[] {
  if (to === undefined) return [`${path}: removed`]
  const keywords = [...new Set([...Object.keys(from), ...Object.keys(to)])]
  const own = keywords.filter((one) => isNarrower(one, from[one], to[one]))
  const below = BELOW.filter((one) => from[one] !== undefined).flatMap((one) => {
    const [a, b] = [from[one] as Part, to[one] as Part | undefined]
    if (one !== 'properties') return narrowings(a, b, `${path}[]`)
    return Object.entries(a).flatMap(([name, field]) =>
      narrowings(field as Part, b?.[name] as Part | undefined, `${path}.${name}`),
    )
  })
  return [...own.map((one) => `${path}: ${one}`), ...below]
}

function isNarrower(keyword: string, from: unknown, to: unknown): boolean {
  if (TEXTS.includes(keyword) || BELOW.includes(keyword)) return false
  if (keyword === 'required') return hasMore(to, from)
  // A rule or a value that is new, or a list of values where any was accepted.
  if (keyword === 'x-kubernetes-validations') return hasMore(rulesOf(to), rulesOf(from))
  if (to === undefined) return keyword === 'x-kubernetes-preserve-unknown-fields'
  if (keyword === 'enum') return from === undefined || hasMore(from, to)
  if (UPPER.includes(keyword)) return from === undefined || Number(to) < Number(from)
  if (LOWER.includes(keyword)) return from === undefined || Number(to) > Number(from)
  return JSON.stringify(from) !== JSON.stringify(to)
}

function hasMore(list: unknown, than: unknown): boolean {
  const known = (than ?? []) as unknown[]
  return ((list ?? []) as unknown[]).some((one) => !known.includes(one))
}

function rulesOf(list: unknown): string[] {
  return ((list ?? []) as { rule: string }[]).map(({ rule }) => rule)
}

/** A value without the fields that a schema does not have, as the API server stores it. */
function prune(value: unknown, schema: Schema | undefined): unknown {
  if (Array.isArray(value)) return value.map((item) => prune(item, schema?.items))
  if (typeof value !== 'object' || value === null) return value
  const { properties = {}, additionalProperties } = schema ?? {}
  const kept = Object.entries(value).flatMap(([name, item]) => {
    const field = properties[name] ?? additionalProperties
    return field === undefined ? [] : [[name, prune(item, field)]]
  })
  return Object.fromEntries(kept)
}

for (const version of STORED) {
  for (const plural of PLURALS) {
    t.test(`${plural} accept what those of ${version} accept`, (t) => {
      const [old, { spec }] = [storedCrd(version, plural), readCrd(plural) as Definition]
      t.strictSame([spec.scope, spec.names], [old.spec.scope, old.spec.names])
      for (const { name, served, storage, schema } of old.spec.versions) {
        const now = spec.versions.find((one) => one.name === name)
        t.match(now, { served, storage }, `version ${name}`)
        const part = now?.schema.openAPIV3Schema
        t.strictSame(narrowings(schema.openAPIV3Schema, part), [])
      }
      t.end()
    })
  }

  t.test(`the definitions of ${version} accept what is written now`, (t) => {
    const { schema } = storedCrd(version, 'dnsrecords').spec.versions[0]!
    const old = (schema.openAPIV3Schema.properties as Record<string, Schema>).spec!
    const files = readdirSync(join(root, 'zones')).filter((name) => name.endsWith('.yaml'))
    const records = files.flatMap((name) =>
      parseAllDocuments(readFileSync(join(root, 'zones', name), 'utf8')).map((one) => one.toJS()),
    )
    t.ok(records.length > 0)
    for (const { kind, spec, metadata } of records) {
      if (kind !== 'DNSRecord') continue
      const [endpoint, ...rest] = spec.endpoints
      // Fields that a later version may add.
      const later = { ...spec, later: { a: 1 }, endpoints: [{ ...endpoint, later: 1 }, ...rest] }
      const pruned = prune(later, old)
      t.strictSame(misfitsOf(pruned, old), [], metadata.name)
      t.strictSame(pruned, spec, `${metadata.name}: only those are removed`)
    }
    t.end()
  })
}

t.test('a schema accepts less', (t) => {
  const from = { type: 'object', properties: { a: { type: 'string', maxLength: 9, enum: ['x'] } } }
  const withA = (a: Part) => ({ ...from, properties: { a: { ...from.properties.a, ...a } } })
  const table: readonly [why: string, to: Part, want: readonly string[]][] = [
    ['the same', from, []],
    ['a new field', { ...from, properties: { ...from.properties, b: { type: 'string' } } }, []],
    ['more values', withA({ enum: ['x', 'y'], maxLength: 10 }), []],
    ['another text', withA({ description: 'about a' }), []],
    ['a field less', { ...from, properties: {} }, ['.a: removed']],
    ['another type', withA({ type: 'integer' }), ['.a: type']],
    ['a value less', withA({ enum: ['y'] }), ['.a: enum']],
    ['shorter', withA({ maxLength: 8 }), ['.a: maxLength']],
    ['longer', withA({ minLength: 1 }), ['.a: minLength']],
    ['a pattern', withA({ pattern: '^x' }), ['.a: pattern']],
    ['required', { ...from, required: ['a'] }, [': required']],
    [
      'a rule',
      { ...from, 'x-kubernetes-validations': [{ rule: 'has(self.a)' }] },
      [': x-kubernetes-validations'],
    ],
  ]
  for (const [why, to, want] of table) t.strictSame(narrowings(from, to), want, why)
  t.end()
})
