import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import type { ServerStatus } from '../../src/base/telemetry/status.ts'
import { fetchLocal } from '../support/http-client.ts'
import { freePort, runSextant, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

// Long: it starts a server for each problem.

/** A record of one host; `extra`: lines of its metadata. */
const record = (name: string, { spec = '', metadata = '', code = '"*"' } = {}): string => `---
apiVersion: kuadrant.io/v1alpha1
kind: DNSRecord
metadata:
  name: ${name}
  namespace: team
${metadata}spec:
  rootHost: ${name}.k.example.com
${spec}  endpoints:
  - dnsName: ${name}.k.example.com
    recordType: A
    setIdentifier: one
    targets: [192.0.2.1]
    providerSpecific:
    - name: geo-code
      value: ${code}
`
const zoneFile = (serial: number, line = ''): string =>
  `@ 300 IN SOA ns hostmaster ${serial} 2 3 4 5\n@ 300 IN NS ns\nns 300 IN A 192.0.2.53\n${line}`
const TTL_1 = record('app').replace('    targets', '    recordTTL: 5\n    targets')
const CONFLICT = `${record('one')}${record('two')
  .replaceAll('two.k', 'one.k')
  .replace('192.0.2.1]', '192.0.2.2]')}`

/** Files that are always there, in the state without a fault. */
const FILES = {
  'records/app.yaml': record('app'),
  'db.file': zoneFile(1),
  'auto/db.in.auto.example': zoneFile(1),
  hosts: '192.0.2.7 a.hosts.example\n',
  drains: '',
}

interface Row {
  readonly kind: string
  /** The path of the fault, and its content; undefined = the file is missing. */
  readonly file: string
  readonly content: string | undefined
  /** What all places show: the place and the reason. */
  readonly place: RegExp
  readonly reason: RegExp
  /** Default: the reason. */
  readonly log?: RegExp
  /** Content with control characters, which no place may pass on. */
  readonly isHostile?: true
}

const TABLE: readonly Row[] = [
  {
    kind: 'refused-record',
    file: 'records/app.yaml',
    content: record('app', { code: 'GEO-XX' }),
    place: /records\/app\.yaml:\d+$/,
    reason: /^team\/app is refused, its last valid version is served: .*GEO-XX/,
  },
  {
    kind: 'refused-record',
    file: 'records/new.yaml',
    content: record('new', { code: '"\\e[2J\\u202e<b>"' }),
    place: /records\/new\.yaml:\d+$/,
    reason: /^team\/new is refused: /,
    isHostile: true,
  },
  {
    kind: 'ignored-record',
    file: 'records/other.yaml',
    content: record('other').replaceAll('k.example.com', 'example.net'),
    place: /records\/other\.yaml:1$/,
    reason: /^no zone is served for DNSRecord team\/other/,
    log: /no zone is served for DNSRecord team\/other: ignored/,
  },
  {
    kind: 'ignored-record',
    file: 'records/app2.yaml',
    content: record('app2').replace('DNSRecord', 'DNSRecrod'),
    place: /records\/app2\.yaml:3$/,
    reason: /did you mean DNSRecord/,
  },
  {
    kind: 'ignored-part',
    file: 'records/app.yaml',
    content: record('app', { spec: '  helthCheck: {}\n' }),
    place: /records\/app\.yaml:9$/,
    reason: /^team\/app: "helthCheck" is not a field/,
  },
  {
    kind: 'conflict',
    file: 'records/app.yaml',
    content: record('app', {
      metadata: '  annotations:\n    sextant.io/failover: "GEO-EU: GEO-NA"\n',
    }),
    place: /records\/app\.yaml:\d+$/,
    reason: /^app\.k\.example\.com\.: failover names "GEO-NA", which no endpoint has/,
  },
  {
    kind: 'manifest',
    file: 'records/app.yaml',
    content: 'kind: [',
    place: /records\/app\.yaml:1$/,
    reason: /its last valid content is served/,
  },
  {
    kind: 'duplicate-record',
    file: 'records/copy.yaml',
    content: record('app'),
    place: /records\/copy\.yaml:1$/,
    reason: /^DNSRecord team\/app is also in .*records\/app\.yaml; that one is served$/,
  },
  {
    kind: 'conflict',
    file: 'records/conflict.yaml',
    content: CONFLICT,
    place: /records\/conflict\.yaml:\d+$/,
    reason: /^one\.k\.example\.com\. A: .*192\.0\.2\.2/,
  },
  {
    kind: 'drain',
    file: 'drains',
    content: 'site:dublin\nsites:berlin\n',
    place: /\/drains:2$/,
    reason:
      /^drain file .*drains: "sites:berlin" is not a selector.*; the last valid state is kept$/,
    log: /drain file .*drains:2: "sites:berlin" is not a selector/,
  },
  {
    kind: 'unprobed-address',
    file: 'records/app.yaml',
    content: record('app', { spec: '  healthCheck: {path: /}\n' }).replace('192.0.2.1', '10.0.0.1'),
    place: /records\/app\.yaml:1$/,
    reason:
      /^team\/app: 10\.0\.0\.1 is always served: 10\.0\.0\.1 is not probed: a private network; `probe-allow 10\.0\.0\.0\/8` allows it$/,
    log: /10\.0\.0\.1 of team\/app is served, its health is unknown/,
  },
  {
    kind: 'geo-code',
    file: 'records/as.yaml',
    content: record('as', { code: 'AS64500' }),
    place: /^$/,
    reason: /^geo codes that match no client: AS64500/,
  },
  {
    kind: 'zone-file',
    file: 'db.file',
    content: zoneFile(2, 'a 300 IN A nonsense\n'),
    place: /db\.file:4$/,
    reason: /^zone file\.example\.: .*; serial 1 is still served$/,
    log: /file\.example\..*db\.file:4: .*still serving serial 1/,
  },
  {
    kind: 'zone-file',
    file: 'db.file',
    content: undefined,
    place: /db\.file:1$/,
    reason: /^zone file\.example\.: .*; serial 1 is still served$/,
    log: /Failed to open zone "file\.example\."/,
  },
  {
    kind: 'zone-file',
    file: 'auto/db.in.auto.example',
    content: zoneFile(2, 'a 300 IN A nonsense\n'),
    place: /db\.in\.auto\.example:4$/,
    reason: /^zone in\.auto\.example\.: .*; serial 1 is still served$/,
    log: /in\.auto\.example\..*:4: /,
  },
  {
    kind: 'zone-file',
    file: 'auto/db.new.auto.example',
    content: 'nonsense\n',
    place: /db\.new\.auto\.example:1$/,
    reason: /^zone new\.auto\.example\.: .*; it is not served$/,
    log: /Parse zone `new\.auto\.example\.'/,
  },
  {
    kind: 'hosts-file',
    file: 'hosts',
    content: undefined,
    place: /hosts$/,
    reason: /^file does not exist: .*; the last valid entries are served$/,
    log: /Sextant/,
  },
  {
    kind: 'corefile',
    file: 'Corefile',
    content: 'file.example {\n nonsense\n',
    place: /Corefile$/,
    reason: /^the Corefile that was loaded before is in use: /,
    log: /Corefile (parse failed|changed but reload failed)/,
  },
]

const corefile = (admin: number, ready: number, metrics: number): string => `k.example.com:{PORT} {
    bind 127.0.0.1
    admin 127.0.0.1:${admin}
    ready 127.0.0.1:${ready}
    prometheus 127.0.0.1:${metrics}
    reload 2s 0s
    geoip {
        net 198.51.100.0/24 GB
    }
    kuadrant {
        manifests records
        probe
        drain drains
    }
}
file.example:{PORT} {
    bind 127.0.0.1
    file db.file {
        reload 50ms
    }
}
auto.example:{PORT} {
    bind 127.0.0.1
    auto {
        directory auto
        reload 50ms
    }
}
hosts.example:{PORT} {
    bind 127.0.0.1
    hosts hosts {
        reload 50ms
    }
}
`

t.test('what is wrong is where people look, until it is mended', async (t) => {
  const [admin, ready, metrics] = [await freePort(), await freePort(), await freePort()]
  const server = await startServer(t, { corefile: corefile(admin, ready, metrics), files: FILES })
  const { directory } = server
  const page = async (port: number, path: string) => (await fetchLocal(port, { path })).body
  const statusOf = async (): Promise<ServerStatus> => JSON.parse(await page(admin, '/v1/status'))
  const countOf = async (kind: string): Promise<number | undefined> => {
    const text = await page(metrics, '/metrics')
    const value = new RegExp(`^sextant_problems\\{kind="${kind}"\\} (\\d+)$`, 'm').exec(text)?.[1]
    return value === undefined ? undefined : Number(value)
  }
  const put = (file: string, content: string | undefined): void => {
    const path = join(directory, file)
    mkdirSync(dirname(path), { recursive: true })
    if (content === undefined) rmSync(path, { force: true })
    else writeFileSync(path, content)
  }
  const own = new Map([...Object.entries(FILES), ['Corefile', '']])
  const original = corefile(admin, ready, metrics).replaceAll('{PORT}', String(server.port))
  own.set('Corefile', original)
  t.equal(await page(ready, '/ready'), 'OK')
  await t.test('a valid edit of a manifest logs one line', async (t) => {
    const before = server.output().length
    put('records/app.yaml', TTL_1)
    await server.prints(/manifests changed: .*\n/)
    t.match(
      server.output().slice(before),
      /^\[INFO\] plugin\/kuadrant: manifests changed: \S*records\/app\.yaml, 1 record changed\n$/,
    )
  })
  for (const { kind, file, content, place, reason, log = reason, isHostile } of TABLE) {
    await t.test(`${kind}: ${file}`, async (t) => {
      const printed = server.output().length
      put(file, content)
      await until(async () => (await statusOf()).problems.length > 0, 'the problem')
      const status = await statusOf()
      t.match(status.problems, [{ kind, place, reason }])
      t.strictSame([status.problems.length, status.problemCounts], [1, { [kind]: 1 }])
      const response = await fetchLocal(ready, { path: '/ready' })
      t.equal(response.status, 200)
      const [ok, line = '', ...others] = response.body.split('\n')
      t.strictSame([ok, others], ['OK', []])
      const [found] = status.problems
      const shown = `${found!.plugin}: `
      t.ok(line.startsWith(shown), line)
      if (!isHostile) t.ok(line.endsWith(found!.reason), line)
      t.ok(line.includes(found!.place), line)
      const { stdout } = await runSextant(directory, ['status', `@127.0.0.1:${admin}`])
      t.match(stdout, new RegExp(`^problems +${kind} 1$`, 'm'))
      t.match(stdout, new RegExp(`^${kind} .*`, 'm'))
      t.equal(await countOf(kind), 1)
      const source = log.source.replace(/^\^/, '').replace(/\$$/, '')
      const lines = () => server.output().slice(kind === 'hosts-file' ? 0 : printed)
      await until(() => new RegExp(source).test(lines()), `the log: ${source}`)
      for (const text of [response.body, stdout, server.output()]) {
        t.strictSame(text.match(/(?!\n)[\p{Cc}\p{Cf}]/gu), null, 'no control characters')
      }
      put(file, own.get(file))
      await until(async () => (await page(ready, '/ready')) === 'OK', 'the end')
      t.match(await statusOf(), { problems: [], problemCounts: {} })
      t.equal(await countOf(kind), 0)
    })
  }
  await t.test('many faults are counted, and some are listed', async (t) => {
    const many = Array.from({ length: 300 }, (_, i) => record(`r${i}`, { code: 'GEO-XX' }))
    put('records/many.yaml', many.join(''))
    await until(async () => (await countOf('refused-record')) === 300, 'the count')
    const body = await page(ready, '/ready')
    t.equal(body.split('\n').length, 22)
    t.match(body, /\nand 280 more: refused-record$/)
    t.equal((await statusOf()).problems.length, 20)
    const json = await runSextant(directory, ['status', '-o', 'json', `@127.0.0.1:${admin}`])
    t.match(JSON.parse(json.stdout), { problemCounts: { 'refused-record': 300 } })
    const { stdout } = await runSextant(directory, ['status', `@127.0.0.1:${admin}`])
    t.match(stdout, /^and 280 more: refused-record$/m)
  })
})
