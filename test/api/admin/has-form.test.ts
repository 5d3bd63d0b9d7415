import t from 'tap'
import { hasForm } from '../../../src/api/admin/has-form.ts'
import type { Schema } from '../../../src/api/admin/schema.ts'
import { SCHEMAS } from '../../../src/api/admin/schemas.ts'
import { STATUS } from '../../support/admin-site.ts'

t.test('types and members that are required', async (t) => {
  const item = { type: 'object', required: ['a'], properties: { a: { type: 'string' } } }
  const schemas = { Item: { ...item, additionalProperties: false } }
  const list = { type: 'array', items: { $ref: 'Item#' } }
  const count = { type: ['integer', 'null'], minimum: 0 }
  const counts = { type: 'object', additionalProperties: { type: 'integer' } }
  const either = { anyOf: [{ $ref: 'Item#' }, { type: 'null' }] }
  const table: readonly (readonly [Schema, unknown, boolean])[] = [
    [item, { a: '' }, true],
    [item, { a: '', b: 1 }, true],
    [item, { a: 1 }, false],
    [item, {}, false],
    [item, { __proto__: { a: '' } }, false],
    [item, null, false],
    [item, [], false],
    [list, [{ a: '' }, { a: '', b: 1 }], true],
    [list, [], true],
    [list, [null], false],
    [list, {}, false],
    [count, 1, true],
    [count, null, true],
    [count, 1.5, false],
    [count, '1', false],
    [counts, { a: 1, b: 2 }, true],
    [counts, { a: 'x' }, false],
    [either, null, true],
    [either, { a: '' }, true],
    [either, 5, false],
    [{ type: 'string', enum: ['a'] }, 'b', true],
    [{}, undefined, true],
  ]
  for (const [schema, value, expected] of table) {
    t.equal(hasForm(value, schema, schemas), expected, JSON.stringify([schema, value]))
  }
})

t.test('a status without one of its members has another form', async (t) => {
  t.ok(hasForm(STATUS, SCHEMAS.Status!, SCHEMAS))
  for (const member of Object.keys(STATUS)) {
    const { [member as keyof typeof STATUS]: _, ...others } = STATUS
    t.notOk(hasForm(others, SCHEMAS.Status!, SCHEMAS), member)
    t.notOk(hasForm({ ...STATUS, [member]: undefined }, SCHEMAS.Status!, SCHEMAS), member)
  }
})
