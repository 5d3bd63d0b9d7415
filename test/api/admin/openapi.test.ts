import { readFileSync } from 'node:fs'
import t from 'tap'
import { composeOpenApi } from '../../../src/api/admin/openapi.ts'
import { ROUTES } from '../../../src/api/admin/routes.ts'
import { SCHEMAS } from '../../../src/api/admin/schemas.ts'

type Node = Readonly<Record<string, unknown>>

const document = composeOpenApi(ROUTES)
const page = readFileSync('docs/reference/admin-api.md', 'utf8')

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function at(path: string): unknown {
  const steps = path.replace(/^#\//, '').split('/')
  return steps.reduce<unknown>((node, step) => (isNode(node) ? node[step] : undefined), document)
}

function* nodes(value: unknown): Generator<Node> {
  if (Array.isArray(value)) for (const one of value) yield* nodes(one)
  if (!isNode(value)) return
  yield value
  for (const one of Object.values(value)) yield* nodes(one)
}

t.test('each route is an operation of the document, and no other', async (t) => {
  t.equal(document.openapi, '3.1.0')
  t.match(document.info, { title: String, version: String })
  const operations = Object.entries(document.paths as Node).flatMap(([path, methods]) => {
    return Object.keys(methods as Node).map((method) => `${method.toUpperCase()} ${path}`)
  })
  t.strictSame(operations.sort(), ROUTES.map(({ method, path }) => `${method} ${path}`).sort())
})

t.test('operations are complete', async (t) => {
  const ids = new Set<unknown>()
  for (const methods of Object.values(document.paths as Node)) {
    for (const operation of Object.values(methods as Node)) {
      t.match(operation, {
        operationId: /^[a-z_]+$/,
        summary: /\.$/,
        responses: {
          200: { description: String, content: { 'application/json': { schema: Object } } },
          default: { content: { 'application/problem+json': { schema: Object } } },
        },
      })
      const { operationId, parameters = [] } = operation as {
        operationId: string
        parameters?: Node[]
      }
      ids.add(operationId)
      for (const parameter of parameters) {
        t.match(parameter, { name: String, in: 'query', schema: { type: String } })
      }
    }
  }
  t.equal(ids.size, ROUTES.length, 'ids are unique')
})

t.test('references lead to schemas, and each schema is used', async (t) => {
  const used = new Set<string>()
  for (const { $ref } of nodes(document)) {
    if (typeof $ref !== 'string') continue
    t.ok(isNode(at($ref)), $ref)
    used.add($ref.split('/').at(-1)!)
  }
  t.strictSame([...used].sort(), Object.keys(SCHEMAS).sort())
})

t.test('the reference page has each path and each member', async (t) => {
  for (const { method, path } of ROUTES) {
    t.ok(page.includes(`\`${method} ${path}\``), `${method} ${path}`)
  }
  const members = [...nodes(SCHEMAS)].flatMap(({ properties }) => Object.keys(properties ?? {}))
  for (const member of new Set(members)) t.ok(page.includes(`\`${member}\``), member)
})
