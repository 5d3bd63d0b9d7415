import t from 'tap'
import { scanDrainSelector } from '../../../src/health/drain/selector.ts'
import { packRecord, unpackRecord } from '../../../src/records/pack.ts'
import { StoredRecord } from '../../../src/records/record-source.ts'
import { validateResource } from '../../../src/records/validate/resource.ts'

const ENDPOINTS = [
  ['app.k.test', 'CNAME', 'klb.app.k.test', '', ''],
  ['klb.app.k.test', 'CNAME', 'geo-eu.app.k.test', 'GEO-EU', 'GEO-EU'],
  ['klb.app.k.test', 'CNAME', 'geo-na.app.k.test', 'GEO-NA', 'GEO-NA,US'],
  ['klb.app.k.test', 'CNAME', 'geo-eu.app.k.test', 'default', '*'],
  ['geo-eu.app.k.test', 'A', '192.0.2.1,192.0.2.130', 'c 1', ''],
  ['geo-na.app.k.test', 'AAAA', '2001:db8::1', 'c2', ''],
  ['geo-na.app.k.test', 'TXT', 'c2', 'c2', ''],
  ['other.k.test', 'A', '198.51.100.1', '', '*'],
] as const
const SITES = [['eu'], ['eu'], ['na'], ['eu'], ['eu', 'na'], ['na'], ['na'], []]

function recordOf(rootHost = 'k.test'): StoredRecord {
  const resource = validateResource({
    apiVersion: 'kuadrant.io/v1alpha1',
    kind: 'DNSRecord',
    metadata: { name: 'app', namespace: 'gateways' },
    spec: {
      rootHost,
      endpoints: ENDPOINTS.map(([dnsName, recordType, targets, setIdentifier, codes]) => ({
        dnsName,
        recordType,
        targets: targets.split(','),
        setIdentifier,
        providerSpecific: codes === '' ? [] : [{ name: 'geo-code', value: codes }],
      })),
    },
  })
  if (resource.kind !== 'record') throw new Error(JSON.stringify(resource))
  return new StoredRecord('gateways/app', packRecord(resource.record))
}

/** Endpoints and targets that the words select, as `3` or `4.1` for a single target of several. */
function selected(words: string, record = recordOf()): string[] | string {
  const selector = scanDrainSelector(words.split('|'))
  if (typeof selector === 'string') return selector
  const at = { record, content: unpackRecord(record.packed), sites: SITES }
  const found = at.content.endpoints.flatMap(({ rdata }, i) => {
    const targets = selector.targetsOf(at, i)
    if (targets.length === rdata.length) return [`${i}`]
    return targets.map((target) => `${i}.${target}`)
  })
  if (found.length > 0 && !selector.mayMatch(record)) return 'mayMatch is wrong'
  return found
}

const ALL = ['0', '1', '2', '3', '4', '5', '7']

for (const [words, want] of [
  ['zone:k.test', ALL],
  ['zone:K.TEST.', ALL],
  ['zone:app.k.test', ['0', '1', '2', '3', '4', '5']],
  ['zone:pp.k.test', []],
  ['zone:*.k.test', ALL],
  ['zone:o*.k.test', ['7']],
  ['zone:example.org', []],
  ['host:app.k.test', ['0']],
  ['host:geo-*.app.k.test', ['4', '5']],
  ['host:*', ALL],
  ['id:c 1', ['4']],
  ['id:c*', ['4', '5']],
  ['id:C2', []],
  ['id:*', ['1', '2', '3', '4', '5']],
  ['address:192.0.2.1', ['4.0']],
  ['address:192.0.2.0/25', ['4.0']],
  ['address:192.0.2.0/24', ['4']],
  ['address:0.0.0.0/0', ['4', '7']],
  ['address:192.0.2.*', ['4']],
  ['address:2001:DB8:0::1', ['5']],
  ['address:geo-eu.app.k.test', ['1', '3']],
  ['address:GEO-*', ['1', '2', '3']],
  ['geo:GEO-EU', ['1', '3']],
  ['geo:us', ['2']],
  ['geo:default', ['3', '7']],
  ['geo:GEO-*', ['1', '2', '3']],
  ['site:na', ['2', '5']],
  ['site:*', ['0', '1', '2', '3', '4', '5']],
  ['record:gateways/app', ALL],
  ['record:gate*/*', ALL],
  ['record:other/*', []],
  ['site:eu|geo:GEO-*', ['1', '3']],
  ['zone:k.test|address:192.0.2.1', ['4.0']],
] as const) {
  t.test(words, async (t) => t.strictSame(selected(words), want))
}

t.test('a host selects the records of its root host, also of a wildcard', async (t) => {
  t.strictSame(selected('host:*.k.test|id:c2', recordOf('*.k.test')), ['5'])
  t.strictSame(selected('host:k.test|id:c2', recordOf('k.test')), ['5'])
})

for (const [words, want] of [
  ['', /"" is not a selector: the selectors are zone, host, id, address, geo, site, record/],
  ['dublin', /"dublin" is not a selector/],
  ['place:dublin', /"place:dublin" is not a selector/],
  ['site:', /"site:": the value is not valid for site/],
  ['host:a..b', /not valid for host/],
  ['host:a b*', /not valid for host/],
  ['address:300.0.0.0/8', /not valid for address/],
  ['address:a b', /not valid for address/],
  ['record:app', /not valid for record/],
  ['site:a|site:b', /site appears twice/],
  [`id:${'x'.repeat(1025)}`, /not valid for id/],
] as const) {
  t.test(`refused: ${words.slice(0, 40)}`, async (t) => t.match(selected(words), want))
}

t.test('the order of terms does not matter', async (t) => {
  const [a, b] = [
    scanDrainSelector(['site:eu', 'id:c 1']),
    scanDrainSelector(['id:c 1', 'site:eu']),
  ]
  if (typeof a === 'string' || typeof b === 'string') return t.fail('refused')
  t.equal(a.text, 'id:"c 1" site:eu')
  t.equal(a.text, b.text)
  t.equal(a.id, b.id)
  t.match(a.id, /^[0-9a-f]{8}$/)
})
