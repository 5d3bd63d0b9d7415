import { join } from 'node:path'
import t from 'tap'
import { kuadrant } from '../../../src/plugins/kuadrant/setup.ts'
import { SetUp } from '../../support/setup.ts'

const HOST = 'app.k.example.com'

/** `endpoints`: set identifier and geo codes of each. */
function manifest(name: string, annotation: string, endpoints: readonly string[]): string {
  const lines = endpoints.map((text, i) => {
    const [id, ...codes] = text.split(' ')
    const properties = codes.map((code) => `{ name: geo-code, value: "${code}" }`)
    return `  - { dnsName: ${HOST}, recordType: A, targets: [192.0.2.${i + 1}], setIdentifier: ${id}, providerSpecific: [${properties}] }`
  })
  return `---
apiVersion: kuadrant.io/v1alpha1
kind: DNSRecord
metadata: { name: ${name}, annotations: { ${annotation} } }
spec:
  rootHost: ${HOST}
  endpoints:
${lines.join('\n')}
`
}

const SHIFT = 'sextant.io/shift: "to=new steps=5%,100% bake=10m"'

t.test('a shift without a choice between old and new endpoints', async (t) => {
  const table: readonly { endpoints: readonly string[]; more?: string; idle: boolean }[] = [
    { endpoints: ['new', 'old'], idle: false },
    { endpoints: ['new'], idle: true },
    { endpoints: ['new'], more: 'old', idle: false },
    { endpoints: ['new GEO-EU', 'old *'], idle: true },
    { endpoints: ['new GEO-EU', 'old'], idle: false },
    { endpoints: ['new GEO-EU', 'old GEO-NA'], idle: false },
    { endpoints: ['new GEO-EU', 'old *', 'older GEO-NA GEO-EU'], idle: false },
    { endpoints: ['new *', 'old *'], idle: false },
  ]
  for (const { endpoints, more, idle } of table) {
    const others = more === undefined ? '' : manifest('b', '', [more])
    const directory = t.testdir({ 'a.yaml': manifest('a', SHIFT, endpoints) + others })
    const text = `kuadrant {\n manifests ${directory}\n}`
    const { warnings } = await new SetUp(kuadrant, text, ['k.example.com.']).check()
    const found = warnings.filter((line) => line.includes('sextant.io/shift'))
    t.equal(found.length, idle ? 1 : 0, `${endpoints} ${more}`)
    if (!idle) continue
    const want = `${join(directory, 'a.yaml')}:4: DNSRecord default/a: sextant.io/shift has no effect: no client has a choice between`
    t.match(found[0], want)
  }
})
