import fc from 'fast-check'
import t from 'tap'
import { InputError } from '../../src/base/errors.ts'
import { ROUTE53 } from '../../src/imports/route53/route53.ts'
import { SETTING_NAMES } from '../../src/records/validate/settings.ts'
import { RECORD_TYPES } from '../../src/records/validate/target.ts'
import { endpointLines, importFiles, refusal } from './import-files.ts'

const A = { Name: 'a.example.com.', Type: 'A', TTL: 60, ResourceRecords: [{ Value: '192.0.2.1' }] }

function importSets(...sets: readonly object[]) {
  return importFiles(ROUTE53, { sets: JSON.stringify({ ResourceRecordSets: sets }) })
}

t.test('files that are no list of record sets', async (t) => {
  const table: readonly [text: string, error: RegExp][] = [
    ['', /^sets:1: is not JSON: /],
    ['{\n"a": 1,\n}', /^sets:3: is not JSON: /],
    ['[]', /^sets:1: is not a JSON object/],
    ['null', /^sets:1: is not a JSON object/],
    ['{"HostedZones": []}', /^sets:1: has neither ResourceRecordSets nor HealthChecks: /],
    ['{"ResourceRecordSets": {}}', /^sets:1: has neither/],
    ['{"ResourceRecordSets": []}', /^sets: no ResourceRecordSets$/],
    ['{"HealthChecks": []}', /^sets: no ResourceRecordSets$/],
    ['{"ResourceRecordSets": [1]}', /^sets:1: ResourceRecordSets\[0\] is not a JSON object$/],
    ['$ORIGIN example.com.\n', /^sets:1: is not JSON: /],
    ['{"__proto__": {"ResourceRecordSets": []}}', /^sets:1: has neither/],
  ]
  for (const [sets, error] of table) {
    t.match(
      refusal(() => importFiles(ROUTE53, { sets })),
      error,
      sets,
    )
  }
})

t.test('record sets that are not imported', async (t) => {
  const table: readonly [change: object, note: RegExp][] = [
    [{ Name: 1 }, /^sets: ResourceRecordSets\[0\]\.Name: not imported: Name must be a string$/],
    [{ Name: 'a..b' }, /^sets: ResourceRecordSets\[0\]: not imported: spec\.rootHost "a\.\.b"/],
    [{ Name: 'a\\100b.example.com.' }, /: not imported: spec\.rootHost /],
    [{ Type: 'SPF' }, /: SPF of a\.example\.com\. not imported: /],
    [{ Type: 'constructor' }, /: constructor of a\.example\.com\. not imported: /],
    [{ ResourceRecords: [] }, /\.ResourceRecords: not imported: the record set has no /],
    [{ ResourceRecords: 1 }, /\.ResourceRecords: not imported: ResourceRecords must be a list/],
    [{ ResourceRecords: [1] }, /\.ResourceRecords\[0\]: not imported: a value must be /],
    [{ ResourceRecords: [{ Value: '300.0.0.1' }] }, /"300\.0\.0\.1" is not an IPv4 address/],
    [{ Weight: 'a' }, /\.Weight: not imported: Weight must be a number, got "a"/],
    [{ Weight: 10 ** 9 }, /\.Weight: not imported: /],
    [{ Failover: 'THIRD' }, /\.Failover: not imported: Failover must be PRIMARY or SECONDARY/],
    [{ GeoLocation: {} }, /\.GeoLocation: not imported: GeoLocation has no code/],
    [{ GeoLocation: { ContinentCode: 'XX' } }, /unexpected continent code\. "GEO-XX"/],
    [{ GeoLocation: { CountryCode: '__proto__' } }, /unexpected geo code/],
    [{ Region: 'eu-west-9' }, /\.Region: not imported: .*unknown; did you mean eu-west-/],
    [{ GeoProximityLocation: { Coordinates: { Latitude: '91', Longitude: '0' } } }, /in degrees/],
    [{ GeoProximityLocation: {} }, /\.LocalZoneGroup: not imported: /],
    [{ CidrRoutingConfig: { LocationName: 'a b' } }, /\.LocationName: not imported: /],
    [{ AliasTarget: { DNSName: 'b.example.com.' }, Type: 'MX' }, /\.AliasTarget: not imported: /],
  ]
  for (const [change, note] of table) {
    const { documents, notes } = importSets({ ...A, ...change })
    t.strictSame(documents, [], JSON.stringify(change))
    t.ok(
      notes.some((one) => note.test(one)),
      notes.join('\n'),
    )
  }
})

t.test('an ALIAS has both A and AAAA', async (t) => {
  const alias = { Name: 'example.com.', AliasTarget: { DNSName: 'LB-1.elb.example.net.' } }
  const imported = importSets({ ...alias, Type: 'A' }, { ...alias, Type: 'AAAA' })
  if (RECORD_TYPES.has('ALIAS')) {
    t.strictSame(endpointLines(imported), ['example.com - ALIAS LB-1.elb.example.net'])
    t.strictSame(imported.notes, [])
  } else {
    t.strictSame(imported.documents, [])
    t.match(imported.notes, [/no alias of type A, here to LB-1/, /no alias of type AAAA/])
  }
})

t.test('up to 8 values of MultiValueAnswer', async (t) => {
  const sets = Array.from({ length: 9 }, (_, i) => {
    const ResourceRecords = [{ Value: `192.0.2.${i}` }]
    return { ...A, SetIdentifier: `${i}`, MultiValueAnswer: true, ResourceRecords }
  })
  const { documents, notes } = importSets(...sets)
  const knowsAnswers = SETTING_NAMES.includes('sextant.io/answers')
  const annotations = knowsAnswers ? { 'sextant.io/answers': '8' } : undefined
  t.strictSame(documents[0]?.metadata.annotations, annotations)
  t.equal(documents[0]?.spec.endpoints.length, 9)
  t.equal(notes.length, knowsAnswers ? 0 : 1)
})

t.test('1000 endpoints of a name are the limit', async (t) => {
  const sets = Array.from({ length: 1001 }, (_, i) => ({ ...A, SetIdentifier: `${i}`, Weight: 1 }))
  const { documents, notes } = importSets(...sets)
  t.strictSame(documents, [])
  t.match(notes, [/^sets: ResourceRecordSets\[0\]: not imported: a record may have up to 1000/])
})

t.test('any JSON is imported, or refused with its place', async () => {
  const value = fc.oneof(
    fc.jsonValue({ maxDepth: 2 }),
    fc.constantFrom('a.example.com.', 'A', 'PRIMARY', '*', 'EU', 'x', 1, -1, true),
  )
  const keys = ['Name', 'Type', 'TTL', 'SetIdentifier', 'Weight', 'Region', 'GeoLocation', 'x']
  const more = ['ResourceRecords', 'AliasTarget', 'HealthCheckId', 'MultiValueAnswer', '__proto__']
  const set = fc.dictionary(fc.constantFrom(...keys, ...more), value, { noNullPrototype: true })
  const check = fc.record({ Id: fc.constant('x'), HealthCheckConfig: value })
  const input = fc.record({ ResourceRecordSets: fc.array(set), HealthChecks: fc.array(check) })
  const run = (parts: object): void => {
    try {
      importFiles(ROUTE53, { sets: JSON.stringify(parts) })
    } catch (error) {
      if (!(error instanceof InputError)) throw error
    }
  }
  fc.assert(fc.property(input, run), { numRuns: 200 })
})
