import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { kuadrant } from '../../../src/plugins/kuadrant/setup.ts'
import { SetUp } from '../../support/setup.ts'
import { until } from '../../support/until.ts'

function manifest(shift: string): string {
  const endpoint = (last: number) => `
  - { dnsName: x.k.example.com, recordType: A, setIdentifier: s${last}, targets: [192.0.2.${last}] }`
  return `apiVersion: kuadrant.io/v1alpha1
kind: DNSRecord
metadata: { name: x, annotations: { sextant.io/shift: "${shift}" } }
spec:
  rootHost: x.k.example.com
  endpoints:${endpoint(1)}${endpoint(2)}
`
}

t.test('the log, the ready page and a metric show a shift; a reload keeps it', async (t) => {
  const folder = t.testdir({ records: { 'x.yaml': manifest('to=s2 steps=5%,100% bake=1h') } })
  const directory = join(folder, 'records')
  const corefile = `kuadrant {\n manifests ${directory}\n shift ${join(folder, 'shifts')}\n}`
  const setUp = new SetUp(kuadrant, corefile, ['k.example.com.'])
  await setUp.start()
  t.teardown(() => setUp.stop())
  const note = (one: SetUp): string => one.readiness[0]!.note?.() ?? ''
  t.match(note(setUp), /^shift of default\/x to s2: step 1 of 2 \(5 %\) until /)
  t.equal(await setUp.metric(`sextant_kuadrant_shifts{source="${directory}",state="running"}`), 1)
  t.match(setUp.lines.join('\n'), /INFO.*shift of default\/x to s2: step 1 of 2 \(5 %\)/)

  const slow = `kuadrant {\n manifests ${directory}\n slow-start 1m\n}`
  const next = new SetUp(kuadrant, slow, ['k.example.com.'])
  await next.start()
  t.teardown(() => next.stop())
  t.equal(note(next), note(setUp), 'with other options too')

  writeFileSync(join(directory, 'x.yaml'), manifest('to=s3 steps=5% bake=1h'))
  const fault = /shifts to "s3", but no endpoint of the record has that setIdentifier/
  await until(() => fault.test(setUp.lines.join('\n')), 'the fault')
  t.match(setUp.lines.join('\n'), /x\.yaml:3/)
  t.match(note(setUp), /shift of default\/x to s2: step 1 of 2/, 'the last valid state is served')
})

for (const [name, corefile, want] of [
  ['twice', 'kuadrant {\n shift a\n shift b\n}', /shift appears twice/],
  ['without a file', 'kuadrant {\n shift\n}', /Wrong argument count/],
] as const) {
  t.test(`shift ${name}`, async (t) => {
    t.throws(() => new SetUp(kuadrant, corefile), { message: want })
  })
}
