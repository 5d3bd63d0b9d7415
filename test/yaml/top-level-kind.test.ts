import { readFileSync } from 'node:fs'
import t from 'tap'
import { topLevelKind } from '../../src/yaml/top-level-kind.ts'

const TABLE: readonly (readonly [name: string, text: string, kind: string])[] = [
  ['a document', 'apiVersion: v1\nkind: Service\n', 'Service'],
  ['a quoted kind and a comment', '---\n# c\n\nkind: "Service" # c\n', 'Service'],
  ['carriage returns', 'apiVersion: v1\r\nkind: Service\r\n', 'Service'],
  ['what other parsers refuse', 'kind: Service\nspec: {{ .Values.spec }}\n', 'Service'],
  ['a kind in a block scalar', 'data: |\n  kind: DNSRecord\nkind: ConfigMap\n', 'ConfigMap'],
  ['only below', 'spec:\n  kind: Service\n', ''],
  ['two of them', 'kind: Service\nkind: DNSRecord\n', ''],
  ['a flow mapping', '{\nkind: Service\n}\n', ''],
  ['a scalar', '|\nkind: Service\n', ''],
  ['an anchor', 'kind: &k Service\n', ''],
  ['an item of a list', '- apiVersion: v1\n  kind: Service\n', 'Service'],
  ['the first key of an item', '- kind: Service\n  spec:\n    kind: X\n', 'Service'],
  ['an item with more spaces', '-   a: 1\n    kind: Service\n', 'Service'],
  ['nothing', '', ''],
]

t.test('the kind of a document, without parsing it', (t) => {
  for (const [name, text, kind] of TABLE) t.equal(topLevelKind(text), kind, name)
  const crd = readFileSync('crds/dnsrecords.yaml', 'utf8')
  t.equal(topLevelKind(crd), 'CustomResourceDefinition')
  t.end()
})

t.test('a long document of one line, or of blank lines, takes little time', (t) => {
  for (const text of [' '.repeat(1e6), '\n'.repeat(1e6), '- '.repeat(5e5), `${'#'.repeat(1e6)}`]) {
    t.equal(topLevelKind(text), '')
  }
  t.end()
})
