import { join } from 'node:path'
import t, { type Test } from 'tap'
import { runImport } from '../../src/cli/import.ts'
import { scanImportArgs } from '../../src/cli/import-args.ts'
import type { EndpointDocument, RecordDocument } from '../../src/records/record-document.ts'
import { cityEntry, composeMmdb } from '../support/mmdb.ts'
import { recordOutput } from '../support/recorded-output.ts'

const ZONE =
  '$ORIGIN example.com.\n@ 60 SOA a b 1 2 3 4 5\n@ 60 NS a.example.net.\nwww 60 A 192.0.2.1\n'

async function run(t: Test, args: readonly string[]) {
  const directory = t.testdir({ db: ZONE, empty: '', none: ZONE.replace(/www.*/, '') })
  const { output, printed, errors } = recordOutput(directory)
  const argv = args.map((arg) => arg.replace(/^@/, `${directory}/`))
  const code = await runImport(argv, output)
  return { code, printed, errors }
}

t.test('prints DNSRecords, and what they do not have', async (t) => {
  const { code, printed, errors } = await run(t, ['bind', '@db', '--namespace', 'shop'])
  t.equal(code, 0)
  t.strictSame(
    printed.join('\n'),
    `---
apiVersion: kuadrant.io/v1alpha1
kind: DNSRecord
metadata:
  name: www.example.com
  namespace: shop
spec:
  rootHost: www.example.com
  endpoints:
    - dnsName: www.example.com
      recordType: A
      recordTTL: 60
      targets:
        - 192.0.2.1`,
  )
  t.match(errors, [/^db:3: NS of example\.com\. not imported: /, /^db:2: SOA of /])
  const strict = await run(t, ['bind', '@db', '--strict'])
  t.strictSame([strict.code, strict.printed.length, strict.errors], [1, 13, errors])
  const json = await run(t, ['bind', '@db', '-o', 'json'])
  const { kind, items } = JSON.parse(json.printed.join('\n'))
  t.strictSame([kind, items.length, items[0].kind], ['List', 1, 'DNSRecord'])
})

t.test('invalid command lines and files', async (t) => {
  const table: readonly [args: readonly string[], error: RegExp][] = [
    [[], /^no format: sextant import bind/],
    [['bnd', '@db'], /^unknown format "bnd": must be one of bind.*; did you mean bind\?$/],
    [['constructor', '@db'], /^unknown format "constructor"/],
    [['bind'], /^no file: sextant import bind FILE\.\.\.$/],
    [['bind', '-', '-'], /^standard input can be read once$/],
    [['bind', '@db', '-o', 'table'], /^invalid value table for -o: must be yaml or json$/],
    [['bind', '@db', '--namespace', 'A'], /^invalid value "A" for --namespace/],
    [
      ['bind', '@db', '--zone', 'a..b'],
      /^invalid value "a\.\.b" for --zone: must be a domain name$/,
    ],
    [['bind', '@db', '--zne', 'a'], /^flag provided but not defined: -zne; did you mean/],
    [['bind', '@missing'], /missing: cannot be read/],
    [['bind', '@'], /cannot be read/],
    [['bind', '@empty'], /empty: is empty$/],
    [['bind', '@none'], /none: there is nothing to import$/],
    [
      ['bind', '@db', '--zone', 'example.org'],
      /^db:1: .* has no SOA record for origin example\.org\./,
    ],
  ]
  for (const [args, error] of table) {
    const { code, printed, errors } = await run(t, args)
    t.strictSame([code, printed], [1, []], args.join(' '))
    t.ok(
      errors.some((line) => error.test(line)),
      `${args.join(' ')}: ${errors.join(' | ')}`,
    )
  }
})

t.test('flags may come first', async (t) => {
  const { files, isStrict, output } = scanImportArgs(['--strict', '-o', 'json', 'bind', 'a', 'b'])
  t.strictSame([files, isStrict, output], [['a', 'b'], true, 'json'])
})

t.test('finds where targets are in a database', async (t) => {
  const folder = t.testdir({
    db: `${ZONE}near 60 LUA A "pickclosest({'192.0.2.1', '198.51.100.1'})"\n`,
    'city.mmdb': Buffer.from(composeMmdb({ networks: { '192.0.2.0/24': cityEntry('GB', 'EU') } })),
  })
  const { output, printed, errors } = recordOutput(folder)
  const argv = ['powerdns', join(folder, 'db'), '--database', join(folder, 'city.mmdb')]
  t.equal(await runImport([...argv, '-o', 'json'], output), 0)
  const { items } = JSON.parse(printed.join('\n'))
  const { spec } = items.find((item: RecordDocument) => item.spec.rootHost.startsWith('near.'))
  const properties = spec.endpoints.map((endpoint: EndpointDocument) => endpoint.providerSpecific)
  const weight = { name: 'weight', value: '1' }
  t.strictSame(properties, [[weight, { name: 'location', value: '52.2242,-0.1315' }], [weight]])
  t.match(errors, [
    /NS/,
    /SOA/,
    /:5: near\.example\.com: add the property location to 198\.51\.100\.1, or use/,
  ])
  const missing = recordOutput(folder)
  const wrong = ['powerdns', join(folder, 'db'), '--database', join(folder, 'db')]
  t.equal(await runImport(wrong, missing.output), 1)
  t.equal(missing.errors.length, 1)
})
