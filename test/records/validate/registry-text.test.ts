import t from 'tap'
import { findFurtherFaults } from '../../../src/records/validate/further-faults.ts'
import { isRegistryText } from '../../../src/records/validate/registry-text.ts'
import { validateResource } from '../../../src/records/validate/resource.ts'
import type { YamlValue } from '../../../src/yaml/scan-block-yaml.ts'

const VALUE = '"heritage=external-dns,external-dns/owner=2omrld2x,external-dns/version=1"'
const NOTE = {
  dnsName: 'kuadrant-228crxc1-cname-echo.k.example.com',
  recordType: 'TXT',
  targets: [VALUE],
}

t.test('name and value together say that an endpoint is a note of the registry', async (t) => {
  const yes: readonly YamlValue[] = [
    NOTE,
    { ...NOTE, targets: [VALUE, 'heritage=external-dns'] },
    { ...NOTE, targets: [VALUE.slice(1, -1)] },
    { ...NOTE, targets: [`"\\"${VALUE.slice(1, -1)}\\""`] },
    { ...NOTE, dnsName: 'kuadrant-a-echo.k.example.com' },
    { ...NOTE, dnsName: 'kuadrant-228crxc1-a-wildcard.k.example.com' },
  ]
  const no: readonly YamlValue[] = [
    null,
    'text',
    {},
    { ...NOTE, recordType: 'A' },
    { ...NOTE, dnsName: 'www.k.example.com' },
    { ...NOTE, dnsName: 'kuadrant-gateway.k.example.com' },
    { ...NOTE, targets: [] },
    { ...NOTE, targets: [VALUE, 'v=spf1 -all'] },
    { ...NOTE, targets: ['heritage=external-dnsmasq'] },
    { ...NOTE, targets: ['version=1;groups=g1&&g2'] },
    { ...NOTE, dnsName: 7, targets: [7] },
  ]
  for (const given of yes) t.ok(isRegistryText(given), JSON.stringify(given))
  for (const given of no) t.notOk(isRegistryText(given), JSON.stringify(given))
})

const AUTHORITATIVE = { 'kuadrant.io/authoritative-record': 'true' }

function record(endpoints: readonly YamlValue[], labels: { readonly [name: string]: string }) {
  return {
    apiVersion: 'kuadrant.io/v1alpha1',
    kind: 'DNSRecord',
    metadata: { name: 'authoritative-record-zzy9f4tx', namespace: 'n', labels },
    spec: { rootHost: 'echo.k.example.com', endpoints },
  }
}

const CNAME = { dnsName: 'echo.k.example.com', recordType: 'CNAME', targets: ['lb.example.net'] }
const ECHO = { ...NOTE, dnsName: 'kuadrant-228crxc1-cname-a.echo.k.example.com' }

t.test('notes of an authoritative record are not served, all else in it is', async (t) => {
  const own = { ...ECHO, dnsName: 'txt.echo.k.example.com' }
  const got = validateResource(record([CNAME, ECHO, own], AUTHORITATIVE))
  if (got.kind !== 'record') throw new Error(JSON.stringify(got))
  t.strictSame(
    got.record.endpoints.map((e) => e.type),
    [5, 16],
  )
})

t.test('a note whose name is no name of the DNS does not stop its record', async (t) => {
  const long = `${'x'.repeat(60)}.echo.k.example.com`
  const note = { ...ECHO, dnsName: `kuadrant-228crxc1-cname-${long}` }
  // Beside the root host, where the registry of the host itself is.
  const beside = { ...ECHO, dnsName: 'kuadrant-228crxc1-cname-echo.k.example.com' }
  const got = validateResource(record([CNAME, note, beside], AUTHORITATIVE))
  t.match(got, { kind: 'record', record: { endpoints: [{ type: 5 }] } })
  t.equal(got.kind === 'record' && got.record.endpoints.length, 1)
})

t.test('in other records the same endpoint is an ordinary one', async (t) => {
  const got = validateResource(record([CNAME, ECHO], {}))
  t.match(got, { kind: 'record', record: { endpoints: [{ type: 5 }, { type: 16 }] } })
})

t.test('the first target is served of a CNAME with targets of several owners', async (t) => {
  const both = { ...CNAME, targets: ['a.example.net', 'b.example.net'] }
  const got = validateResource(record([both], AUTHORITATIVE))
  t.equal(got.kind === 'record' && got.record.endpoints[0]!.rdata.length, 1)
  t.match(validateResource(record([both], {})), { kind: 'refused' })
})

t.test('check finds fault with no note', async (t) => {
  const long = { ...ECHO, dnsName: `kuadrant-228crxc1-a-${'x'.repeat(60)}.echo.k.example.com` }
  const bad = { ...CNAME, targets: ['192.0.2.1'] }
  const resource = record([bad, long], AUTHORITATIVE)
  const got = validateResource(resource)
  if (got.kind !== 'refused') throw new Error('not refused')
  t.strictSame(findFurtherFaults(resource, got.problem), [])
})
