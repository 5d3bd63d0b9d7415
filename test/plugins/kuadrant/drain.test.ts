import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { kuadrant } from '../../../src/plugins/kuadrant/setup.ts'
import { recordManifest } from '../../support/manifest.ts'
import { SetUp } from '../../support/setup.ts'
import { until } from '../../support/until.ts'

t.test('the log, the ready page and a metric show a drain', async (t) => {
  const folder = t.testdir({
    records: {
      'a.yaml': recordManifest('a', '192.0.2.1', 'x.k.example.com'),
      'b.yaml': recordManifest('b', '192.0.2.2', 'x.k.example.com'),
    },
    drains: 'record:default/a by=ops reason=racks\n',
  })
  const directory = join(folder, 'records')
  const path = join(folder, 'drains')
  const corefile = `kuadrant {\n manifests ${directory}\n drain ${path}\n}`
  const setUp = new SetUp(kuadrant, corefile, ['k.example.com.'])
  await setUp.start()
  t.teardown(() => setUp.stop())
  const note = (): string => setUp.readiness[0]!.note?.() ?? ''
  const labels = `{source="${directory}",zone="k.example.com."}`
  const metric = () => setUp.metric(`sextant_kuadrant_drained${labels}`)
  t.equal(note(), 'drained: record:default/a by ops: racks')
  t.equal(await metric(), 1)
  t.match(setUp.lines.join('\n'), /INFO.*drain begins: record:default\/a by ops: racks/)
  writeFileSync(`${path}.new`, '')
  renameSync(`${path}.new`, path)
  await until(() => note() === '', 'the drain to end')
  await until(async () => (await metric()) === 0, 'the endpoint to be served')
  t.match(setUp.lines.join('\n'), /INFO.*drain ends: record:default\/a by ops: racks/)
})

t.test('an annotation drains a record without a drain file', async (t) => {
  const a = recordManifest('a', '192.0.2.1', 'x.k.example.com')
  const directory = t.testdir({
    'a.yaml': a.replace('name: a\n', 'name: a\n  annotations: {sextant.io/drain: racks}\n'),
    'b.yaml': recordManifest('b', '192.0.2.2', 'x.k.example.com'),
  })
  const corefile = `kuadrant {\n manifests ${directory}\n}`
  const setUp = new SetUp(kuadrant, corefile, ['k.example.com.'])
  await setUp.start()
  t.teardown(() => setUp.stop())
  const note = (): string => setUp.readiness[0]!.note?.() ?? ''
  const labels = `{source="${directory}",zone="k.example.com."}`
  const metric = () => setUp.metric(`sextant_kuadrant_drained${labels}`)
  t.equal(note(), 'drained: record:default/a by annotation: racks')
  t.equal(await metric(), 1)
  const path = join(directory, 'a.yaml')
  writeFileSync(`${path}.new`, a)
  renameSync(`${path}.new`, path)
  await until(async () => note() === '' && (await metric()) === 0, 'the drain to end')
  t.match(setUp.lines.join('\n'), /INFO.*drain ends: record:default\/a by annotation: racks/)
})

for (const [name, corefile, want] of [
  ['twice', 'kuadrant {\n drain a\n drain b\n}', /drain appears twice/],
  [
    'the Namespaces of manifests',
    'kuadrant {\n manifests a\n namespace-drains\n}',
    /namespace-drains needs a cluster; Namespaces are not read from manifests/,
  ],
  ['a name', 'kuadrant {\n namespace-drains team\n}', /Wrong argument count/],
  [
    'a ConfigMap beside manifests',
    'kuadrant {\n manifests a\n cluster-drains team/drains\n}',
    /cluster-drains needs a cluster; use `drain FILE` with manifests/,
  ],
  [
    'a ConfigMap without a namespace',
    'kuadrant {\n cluster-drains drains\n}',
    /cluster-drains needs NAMESPACE\/NAME of a ConfigMap, got drains/,
  ],
  [
    'two ConfigMaps',
    'kuadrant {\n cluster-drains a/b\n cluster-drains a/c\n}',
    /cluster-drains appears twice/,
  ],
  ['without a file', 'kuadrant {\n drain\n}', /Wrong argument count/],
] as const) {
  t.test(`drain ${name}`, async (t) => {
    t.throws(() => new SetUp(kuadrant, corefile), { message: want })
  })
}
