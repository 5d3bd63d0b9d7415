import t from 'tap'
import { Protocol } from '../../src/dns/message/query.ts'
import { scanName } from '../../src/dns/name/name.ts'
import { scanAddress } from '../../src/dns/text/address.ts'
import { Explainer } from '../../src/explain/explainer.ts'
import { printExplanation } from '../../src/explain/print.ts'
import { probeManifest } from '../support/manifest.ts'
import { loadText } from './worlds.ts'

const COREFILE = `k.example.com:5300 {
  root {DIR}
  geoip {
    net 10.1.0.0/16 GEO-EU
    net 10.2.0.0/16 GEO-NA
    net 10.3.0.0/16 GEO-AS
  }
  kuadrant {
    manifests records
  }
}
`

function recordOf(name: string, type: string, targets: readonly string[], policy: string): string {
  const codes = ['GEO-EU', 'GEO-NA', 'GEO-AS']
  const endpoints = targets.map((target, i) => ({
    dnsName: `${name}.k.example.com`,
    recordType: type,
    setIdentifier: `site-${i}`,
    targets: [target],
    providerSpecific: [{ name: 'geo-code', value: codes[i]! }],
  }))
  for (const target of type === 'CNAME' ? targets : []) {
    const [label] = target.split('.')
    const address = `192.0.2.${codes.length - Number(label!.slice(1))}`
    endpoints.push({
      ...{ dnsName: target, recordType: 'A', setIdentifier: '', targets: [address] },
      providerSpecific: [],
    })
  }
  const annotations = {
    'sextant.io/failover': 'GEO-EU: GEO-NA\nGEO-NA: site-2',
    'sextant.io/all-down': policy,
  }
  const metadata = { name, namespace: 'n', annotations }
  const spec = { rootHost: 'k.example.com', endpoints }
  return JSON.stringify({ apiVersion: 'kuadrant.io/v1alpha1', kind: 'DNSRecord', metadata, spec })
}

/** The endpoints of Europe and North America are down. */
const ADDRESSES = ['192.0.2.3', '192.0.2.2', '192.0.2.1']
const NAMES = { shut: 'closed', open: 'open', back: 'site-0', alias: 'closed' } as const

t.test('a failover list is explained, also where it ends', async (t) => {
  const files = Object.entries(NAMES).flatMap(([name, policy]) => {
    const aliases = ADDRESSES.map((_, i) => `c${i}.k.example.com`)
    const isAlias = name === 'alias'
    const record = recordOf(name, isAlias ? 'CNAME' : 'A', isAlias ? aliases : ADDRESSES, policy)
    const probes = ADDRESSES.slice(0, 2).map((address) => probeManifest(name, address, false, 'n'))
    return [record, ...probes].map((text, i) => [`${name}-${i}.yaml`, text] as const)
  })
  const directory = t.testdir({ records: Object.fromEntries(files) })
  const { instance } = await loadText(t, COREFILE.replace('{DIR}', directory))
  const explainer = await Explainer.open(instance)
  t.teardown(() => explainer.close())
  const ask = (name: string, client: string) => {
    const explanation = explainer.explain({
      ...{ name: scanName(`${name}.k.example.com.`)!, type: 1, seed: 1, protocol: Protocol.Udp },
      source: scanAddress(client)!,
      subnet: undefined,
    })
    return { ...explanation, text: printExplanation(explanation).join('\n') }
  }
  const table = [
    ['open', '10.2.0.1', '192.0.2.1', /failover list: GEO-NA, site-2: site-2 serves/],
    ['open', '10.1.0.1', '192.0.2.1', /failover list: GEO-EU, GEO-NA: exhausted\n/],
    ['back', '10.1.0.1', '192.0.2.3', /failover list: GEO-EU, GEO-NA: exhausted\n/],
    ['back', '10.3.0.1', '192.0.2.1', /continent GEO-AS: decided/],
    [
      'shut',
      '10.1.0.1',
      '',
      /note: the failover list is exhausted, and all-down is closed: NODATA/,
    ],
    ['shut', '10.2.0.1', '192.0.2.1', /continent GEO-NA: decided: site-2 100%/],
    ['alias', '10.1.0.1', '', /step 1: .* CNAME.*\n.*note: the failover list is exhausted/],
  ] as const
  for (const [name, client, want, says] of table) {
    const { text, answer, rcode, end } = ask(name, client)
    t.equal(rcode, 'NOERROR', text)
    t.equal(answer.map((line) => line.split(/\s/).at(-1)).join(), want, text)
    t.match(text, says, text)
    t.equal(end.kind, want === '' ? 'nodata' : 'answer')
  }
})
