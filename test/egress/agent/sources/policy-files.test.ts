import { mkdirSync, renameSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { systemClock } from '../../../../src/base/clock.ts'
import { NO_METRICS } from '../../../../src/base/telemetry/metrics.ts'
import { systemTimers } from '../../../../src/base/timers.ts'
import type { Client } from '../../../../src/egress/agent/client.ts'
import { PolicyFiles } from '../../../../src/egress/agent/sources/policy-files.ts'
import { printProblem } from '../../../../src/egress/agent/sources/policy-source.ts'
import { recordLog } from '../../../support/recorded-log.ts'
import { FakeClock, FakeTimers } from '../../../support/setup.ts'
import { until } from '../../../support/until.ts'

const POD = `apiVersion: v1
kind: Pod
metadata: {name: web, namespace: a, labels: {app: web}}
status: {podIPs: [{ip: 10.0.0.1}]}
`
const policy = (
  name: string,
  peer = 'toFQDNs: [{matchName: a.example}]',
) => `apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: {name: ${name}, namespace: a}
spec:
  endpointSelector: {}
  egress:
  - ${peer}
`

function follow(t: Test, path: string, time = { clock: systemClock, timers: systemTimers }) {
  const { lines, log } = recordLog()
  const parts = { ...time, metrics: NO_METRICS, log }
  const source = new PolicyFiles({ ...parts, path, dialect: 'cilium-1.19' })
  t.teardown(() => source.close())
  let clients: readonly Client[] | undefined
  let calls = 0
  source.onChange((all) => {
    clients = all
    calls++
  })
  source.start()
  /** Waits until the client has that number of rules; undefined = there is none. */
  const has = async (rules: number | undefined) => {
    const countOf = () => clients?.[0]?.rules.lists[0]?.[0]?.rules.length
    await until(() => clients !== undefined && countOf() === rules, `${rules} rules`)
  }
  const problems = () => source.problems.map(printProblem)
  return { source, lines, has, problems, calls: () => calls, clients: () => clients }
}

t.test('a folder: files come, change and go', async (t) => {
  const folder = t.testdir({ 'pods.yaml': POD, 'web.yml': policy('web'), 'notes.txt': 'x' })
  const { source, has, clients, lines, calls } = follow(t, folder)
  await has(1)
  t.ok(source.isSynced)
  t.equal(source.reason, '')
  const before = clients()![0]!
  t.equal(before.id, 'a/web/')
  writeFileSync(join(folder, 'two.json'), JSON.stringify(JSON.parse('{"kind":"List","items":[]}')))
  writeFileSync(join(folder, 'three.yaml'), `${policy('x')}---\n${policy('y')}`)
  await has(3)
  writeFileSync(join(folder, '.new'), policy('x'))
  renameSync(join(folder, '.new'), join(folder, 'three.yaml'))
  await has(2)
  rmSync(join(folder, 'three.yaml'))
  await has(1)
  rmSync(join(folder, 'web.yml'))
  await has(undefined)
  t.strictSame(lines, [])
  t.equal(source.problems.length, 0)
  t.ok(calls() >= 5)
})

t.test('one file', async (t) => {
  const folder = t.testdir({ 'all.yaml': `${POD}---\n${policy('web')}`, 'other.yaml': policy('b') })
  const path = join(folder, 'all.yaml')
  const { has } = follow(t, path)
  await has(1)
  writeFileSync(path, `${POD}---\n${policy('web')}---\n${policy('two')}`)
  await has(2)
})

t.test('an invalid file: its last valid state stays', async (t) => {
  const folder = t.testdir({ 'all.yaml': `${POD}---\n${policy('web')}` })
  const path = join(folder, 'all.yaml')
  const { source, has, problems, lines } = follow(t, folder)
  await has(1)
  writeFileSync(path, `${POD}---\nspec: [\n`)
  await until(() => problems().length > 0, 'the fault')
  t.match(source.reason, /^.*all\.yaml:\d+: /)
  t.match(problems(), [/all\.yaml:\d+: .*; the last valid state of the file stays$/])
  await has(1)
  t.equal(lines.length, 1)
  t.match(lines[0], /^\[WARNING\] .*all\.yaml:\d+: /)
  writeFileSync(path, `${POD}---\n${policy('web')}---\n${policy('two')}`)
  await has(2)
  t.equal(source.reason, '')
  await until(() => problems().length === 0, 'no fault')
})

t.test('a file that never was valid: the source is not synced', async (t) => {
  const folder = t.testdir({ 'pods.yaml': POD, 'bad.yaml': 'kind: CiliumNetworkPolicy\n- x\n' })
  const { source, has, calls } = follow(t, folder)
  await until(() => source.reason.includes('bad.yaml:'), 'the fault')
  t.notOk(source.isSynced)
  t.equal(calls(), 0)
  writeFileSync(join(folder, 'bad.yaml'), policy('web'))
  await has(1)
  t.ok(source.isSynced)
})

t.test('a folder that is missing, or goes', async (t) => {
  const folder = join(t.testdir(), 'policies')
  const { source, has, lines } = follow(t, folder)
  await until(() => lines.length > 0, 'the fault')
  t.match(source.reason, /policies: cannot be read: ENOENT/)
  t.notOk(source.isSynced)
  mkdirSync(`${folder}.new`)
  writeFileSync(join(`${folder}.new`, 'all.yaml'), `${POD}---\n${policy('web')}`)
  renameSync(`${folder}.new`, folder)
  await has(1)
  rmSync(folder, { recursive: true })
  await until(() => source.reason !== '', 'the fault')
  t.ok(source.isSynced)
  await has(1)
})

t.test('a file that is emptied for a moment keeps its objects', async (t) => {
  const folder = t.testdir({ 'all.yaml': `${POD}---\n${policy('web')}` })
  const { has, calls } = follow(t, folder)
  await has(1)
  const before = calls()
  writeFileSync(join(folder, 'all.yaml'), '')
  writeFileSync(join(folder, 'all.yaml'), `${POD}---\n${policy('web')}---\n${policy('two')}`)
  await has(2)
  t.equal(calls(), before + 1, 'nothing in between')
  writeFileSync(join(folder, 'all.yaml'), '')
  await has(undefined)
})

t.test('a file that is empty at the start', async (t) => {
  const folder = t.testdir({ 'pods.yaml': POD, 'web.yaml': '' })
  const { source, has, problems, lines } = follow(t, folder)
  await until(() => problems().length > 0, 'the problem')
  t.match(problems(), [/web\.yaml:1: the file is empty: it has no objects$/])
  t.ok(source.isSynced)
  writeFileSync(join(folder, 'web.yaml'), policy('web'))
  await has(1)
  await until(() => problems().length === 0, 'no problem')
  writeFileSync(join(folder, 'web.yaml'), '')
  await until(() => problems().length > 0, 'the problem again')
  await has(undefined)
  rmSync(join(folder, 'web.yaml'))
  await until(() => problems().length === 0, 'it is gone')
  t.match(lines, [/web\.yaml:1: the file is empty/, /web\.yaml:1: the file is empty/])
})

t.test('a file that is written while the source starts', async (t) => {
  const path = join(t.testdir({ 'all.yaml': '' }), 'all.yaml')
  const timers = new FakeTimers()
  const clock = new FakeClock()
  const { source, calls, has } = follow(t, path, { timers, clock })
  await until(() => timers.count > 1, 'the wait')
  t.notOk(source.isSynced)
  writeFileSync(path, `${POD}---\n${policy('web')}`)
  clock.pass(500)
  await timers.advance(500)
  await has(1)
  t.equal(calls(), 1)
})

t.test('a ConfigMap volume replaces all files at once', async (t) => {
  const folder = t.testdir({
    one: { 'all.yaml': `${POD}---\n${policy('web')}` },
    two: { 'all.yaml': `${POD}---\n${policy('web')}---\n${policy('two')}` },
    volume: {},
  })
  const volume = join(folder, 'volume')
  renameSync(join(folder, 'one'), join(volume, '..one'))
  renameSync(join(folder, 'two'), join(volume, '..two'))
  symlinkSync('..one', join(volume, '..data'))
  symlinkSync('..data/all.yaml', join(volume, 'all.yaml'))
  const { has, lines } = follow(t, volume)
  await has(1)
  symlinkSync('..two', join(volume, '..data_tmp'))
  renameSync(join(volume, '..data_tmp'), join(volume, '..data'))
  await has(2)
  t.strictSame(lines, [])
})

t.test('problems have the place of their field', async (t) => {
  const list = `kind: List
items:
- ${policy('third', 'toEntities: [moon]').trimEnd().replaceAll('\n', '\n  ')}
`
  const folder = t.testdir({
    'a.yaml': `${POD}---\n${policy('first', 'toEntities: [moon]')}`,
    'b.yaml': `# a comment\n\n---\n${policy('second', 'toPlanets: [moon]')}---\n${policy('first')}`,
    'c.yaml': list,
    'd.yaml': 'apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\n',
    'e.yaml': '# one\napiVersion: cilium.io/v3\nkind: CiliumNetworkPolicy\nmetadata: {name: x}\n',
    'g.yaml':
      'apiVersion: policy.networking.k8s.io/v1\nkind: ClusterNetworkPolicy\nmetadata: {name: x}\n',
    'f.yaml': `%YAML 1.2\n---\n${policy('fourth', 'toEntities: [moon]')}`,
  })
  const { has, problems, lines } = follow(t, folder)
  await has(0)
  const short = (text: string) => text.slice(folder.length + 1)
  await until(() => problems().length === 8, `all: ${problems().join('\n')}`)
  const [twice, deployment, version, cluster, ...others] = problems().map(short)
  t.match(
    twice,
    /^b\.yaml:14: CiliumNetworkPolicy a\/first: metadata\.name: ignored: .*a\.yaml:8 has it too$/,
  )
  t.match(
    deployment,
    /^d\.yaml:2: Deployment x: kind: ignored: apps\/v1 Deployment is not read; these are: Pod,/,
  )
  t.match(version, /^e\.yaml:3: CiliumNetworkPolicy x: kind: .*; write apiVersion cilium\.io\/v2$/)
  t.match(cluster, /^g\.yaml:2: .*; write apiVersion \S+\/v1beta1 or \S+\/v1alpha2$/)
  const moon = '"moon" is not supported: unknown entity'
  t.strictSame(others, [
    `a.yaml:12: CiliumNetworkPolicy a/first: spec.egress[0].toEntities[0]: ${moon}`,
    `f.yaml:9: CiliumNetworkPolicy a/fourth: spec.egress[0].toEntities[0]: ${moon}`,
    'b.yaml:10: CiliumNetworkPolicy a/second: spec.egress[0].toPlanets: unknown field',
    `c.yaml:9: CiliumNetworkPolicy a/third: spec.egress[0].toEntities[0]: ${moon}`,
  ])
  t.equal(lines.length, 8)
  writeFileSync(join(folder, 'a.yaml'), `${POD}---\n\n${policy('first', 'toEntities: [moon]')}`)
  await until(() => problems().some((text) => short(text).startsWith('a.yaml:13:')), 'its new line')
})

t.test('a file that is too large is not read', async (t) => {
  const folder = t.testdir({ 'pods.yaml': POD, 'large.yaml': '' })
  truncateSync(join(folder, 'large.yaml'), 3 * 2 ** 30)
  const { source } = follow(t, folder)
  await until(() => source.problems.length > 0, 'its problem')
  t.match(source.reason, /large\.yaml:1: file of 3221225472 octets: at most 16777216 are read/)
})

t.test('files that are no manifests', async (t) => {
  const table: readonly (readonly [string, string | Buffer, RegExp])[] = [
    ['a.yaml', '- 1\n', /a\.yaml:1: an object must be a mapping with a kind/],
    ['b.yaml', 'kind: Pod\napiVersion: v1\n', /b\.yaml:1: metadata\.name is missing or invalid/],
    [
      'h.yaml',
      policy('web').replace('namespace: a', 'namespace: 1'),
      /h\.yaml:3: metadata\.namespace is/,
    ],
    ['i.yaml', POD.replace('app: web', 'app: 1'), /i\.yaml:3: metadata\.labels must be strings/],
    ['c.json', '{"kind": ', /c\.json:1: /],
    ['d.yaml', Buffer.from([0xff, 0xfe]), /d\.yaml:1: the text is not UTF-8/],
    ['e.json', '['.repeat(100_000), /e\.json:1: nested too deep/],
    ['f.yaml', `a: ${'['.repeat(1000)}\n`, /f\.yaml:1: nested too deep/],
    ['g.yaml', 'x'.repeat(2_000_000), /g\.yaml:1: a document is too large/],
  ]
  for (const [name, text, want] of table) {
    const folder = t.testdir({ 'pods.yaml': POD })
    writeFileSync(join(folder, name), text)
    const { source } = follow(t, folder)
    await until(() => source.problems.length > 0, name)
    t.match(source.problems.map(printProblem).join('\n'), want, name)
    t.notOk(source.isSynced)
    source.close()
  }
})
