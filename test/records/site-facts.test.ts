import fc from 'fast-check'
import t from 'tap'
import { printSiteFacts, type SiteFacts, scanSiteFacts } from '../../src/records/site-facts.ts'
import { runs } from '../support/runs.ts'

const SPEC = [
  { dnsName: 'k.example.com', recordType: 'A', targets: ['192.0.2.1'] },
  { dnsName: 'k.example.com', recordType: 'AAAA', targets: ['2001:db8::1'] },
]
const INLINE = { dnsName: 'k.example.com', recordType: 'A', targets: ['192.0.2.2'] }

const text = fc.string({ unit: 'binary', maxLength: 12 })
const texts = fc.dictionary(fc.string({ minLength: 1, maxLength: 8 }), text, {
  maxKeys: 4,
  noNullPrototype: true,
})
const part = fc.record(
  {
    site: fc.stringMatching(/^[0-9a-z.:[\]_-]{1,20}$/),
    id: text,
    name: text,
    createdSeconds: fc.integer({ min: 0, max: 2 ** 32 - 1 }),
    settings: texts,
    endpoints: fc.array(fc.constantFrom(...SPEC, INLINE), { maxLength: 4 }),
    down: texts,
  },
  { noNullPrototype: true },
)
const flags = fc.constantFrom(
  ...[{}, { isUndated: true }, { isPartial: true }, { isChecked: true }],
  ...[{ lacks: 'endpoints' as const }, { lacks: 'settings' as const }],
)
const decided = fc.oneof(fc.constant({}), fc.record({ decided: texts }, { noNullPrototype: true }))
const flagged = fc
  .tuple(part, flags, decided)
  .map((all) => Object.assign({}, ...all) as (typeof all)[0])
const owner = fc.tuple(text, text, text).map(([id, cluster, group]) => ({ id, cluster, group }))
const owned = fc.tuple(flagged, owner).map(([one, owner]) => {
  return owner.id === '' ? one : { ...one, owner }
})

t.test('facts survive printing; endpoints in spec are printed as indexes', async (t) => {
  const property = fc.property(part, fc.array(owned, { maxLength: 4 }), ({ site }, parts) => {
    const facts: SiteFacts = { site, parts }
    const printed = printSiteFacts(facts, SPEC, JSON.stringify)
    t.strictSame(scanSiteFacts(printed, SPEC), facts)
    t.notMatch(printed, '2001:db8::1"]')
    t.equal(printSiteFacts(facts, SPEC, JSON.stringify), printed)
  })
  fc.assert(property, { numRuns: runs(300) })
})

t.test('facts of a changed record are not used, whatever the order of its fields', async (t) => {
  const printed = printSiteFacts({ site: 'a', parts: [] }, SPEC, JSON.stringify)
  const reordered = SPEC.map(({ dnsName, recordType, targets }) => ({
    targets,
    recordType,
    dnsName,
  }))
  t.strictSame(scanSiteFacts(printed, reordered), { site: 'a', parts: [] })
  t.equal(
    scanSiteFacts(printed, SPEC.slice(1)),
    'does not fit spec.endpoints, which was edited since',
  )
})

t.test('what is not valid is refused', async (t) => {
  const of = JSON.parse(printSiteFacts({ site: 'a', parts: [] }, SPEC, JSON.stringify)).of
  const whole = (parts: unknown) => JSON.stringify({ v: 1, site: 'a', of, parts })
  const withPart = (more: object) => whole([{ site: 'b', ...more }])
  const nested = `${'['.repeat(50_000)}${']'.repeat(50_000)}`
  const table: readonly (readonly [string, RegExp])[] = [
    ['', /is not a JSON object/],
    ['[]', /is not a JSON object/],
    ['{}', /has version "nothing"; this version reads 1/],
    ['{"v":2}', /has version 2; this version reads 1/],
    [`{"v":${nested}}`, /has version a list or a mapping/],
    ['{"v":1}', /has an invalid site: "nothing"/],
    ['{"v":1,"site":"a@b"}', /has an invalid site: "a@b"/],
    ['{"v":1,"site":"a"}', /does not fit spec\.endpoints/],
    [whole({}), /needs up to 8000 parts/],
    [whole([1]), /^parts\[0\]: is not a JSON object/],
    [whole([{ site: 'b' }, {}]), /^parts\[1\]: invalid site "nothing"/],
    [withPart({ site: 'b~2' }), /invalid site "b~2"/],
    [withPart({ id: 1 }), /id and name must be strings/],
    [withPart({ cluster: [] }), /cluster and group must be strings/],
    [withPart({ owner: 1 }), /owner must be a string/],
    [withPart({ created: -1 }), /created must be seconds since the epoch, not -1/],
    [withPart({ created: '1' }), /created must be seconds/],
    [withPart({ settings: { sticky: true } }), /settings must be strings by name/],
    [withPart({ down: ['192.0.2.1'] }), /down must be reasons by address/],
    [withPart({ decided: 'all' }), /decided must be reasons by address/],
    [withPart({ lacks: 1 }), /lacks must be a text/],
    [withPart({ endpoints: {} }), /endpoints must be a list/],
    [withPart({ endpoints: [2] }), /spec\.endpoints has no endpoint 2/],
    [withPart({ endpoints: [-1] }), /has no endpoint -1/],
    [withPart({ endpoints: [0.5] }), /has no endpoint 0\.5/],
    [withPart({ endpoints: ['0'] }), /has no endpoint "0"/],
    [withPart({ endpoints: [null] }), /has no endpoint "nothing"/],
    [withPart({ endpoints: Array(8001).fill(0) }), /may have up to 8000 endpoints/],
  ]
  for (const [text, want] of table) {
    const found = scanSiteFacts(text, SPEC)
    t.type(found, 'string', text.slice(0, 80))
    t.match(found, want, text.slice(0, 80))
  }
})
