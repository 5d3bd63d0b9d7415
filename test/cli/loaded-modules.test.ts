import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { run } from '../support/peer.ts'
import { root, startServer } from '../support/server.ts'

// Long: it starts servers that report what they load.

/*
 * What a start costs is how much it loads: a module takes about a millisecond. So commands, Corefiles and data threads
 * load what they need. Node says what each thread has loaded where it is asked for coverage.
 */

const MAIN = join(root, 'dist/main.js')
/** What a server of UDP needs on this machine; none where it is served over node:dgram. */
const CALLS = ['koffi', '@koromix']

interface Loaded {
  /** Our own, from dist/ on. */
  readonly modules: readonly string[]
  /** The packages that others are of. */
  readonly packages: readonly string[]
}

/** What each thread of a process has loaded, the first one first. */
function readLoaded(directory: string): Loaded[] {
  return readdirSync(directory)
    .sort((a, b) => threadOf(a) - threadOf(b))
    .map((name) => {
      const { result } = JSON.parse(readFileSync(join(directory, name), 'utf8')) as {
        readonly result: readonly { readonly url: string }[]
      }
      const of = (mark: string): string[] =>
        result.flatMap(({ url }) => (url.includes(mark) ? [url.slice(url.lastIndexOf(mark))] : []))
      const packages = new Set(of('/node_modules/').map((path) => path.split('/')[2]!))
      for (const call of CALLS) packages.delete(call)
      return { modules: of('/dist/').map((path) => path.slice(6)), packages: [...packages].sort() }
    })
}

/** Files are called coverage-PROCESS-TIME-THREAD.json. */
const threadOf = (name: string): number => Number(/-(\d+)\.json$/.exec(name)?.[1])

/** Runs a command to its end. */
async function loadedBy(t: Test, args: readonly string[], exitCode: number): Promise<Loaded> {
  const directory = t.testdir({ Corefile: 'example.org {\n whoami\n}\n' })
  const coverage = join(directory, 'coverage')
  const command = ['cd "$0" && NODE_V8_COVERAGE=coverage exec "$@"', directory, process.execPath]
  const { code, stderr } = await run('sh', ['-c', ...command, MAIN, ...args])
  t.equal(code, exitCode, stderr)
  return readLoaded(coverage)[0]!
}

t.test('a command loads what it needs', async (t) => {
  const NO_SERVER = ['@127.0.0.1', '-p', '1', '+time=1', '+tries=1']
  const table = [
    { name: '-version', args: ['-version'], modulesMax: 15 },
    { name: '-plugins', args: ['-plugins'], modulesMax: 15 },
    { name: 'help', args: ['help'], modulesMax: 10 },
    { name: 'check', args: ['check', '-conf', 'Corefile'], modulesMax: 80 },
    { name: 'operator -h', args: ['operator', '-h'], modulesMax: 33 },
    { name: 'query', args: ['query', 'example.org', ...NO_SERVER], modulesMax: 70, code: 9 },
  ]
  for (const { name, args, modulesMax, code = 0 } of table) {
    const { modules, packages } = await loadedBy(t, args, code)
    t.ok(modules.includes('main.js'), `${name}: it was seen`)
    t.ok(modules.length <= modulesMax, `${name}: ${modules.length} modules`)
    t.strictSame(packages, [], `${name}: packages`)
  }
})

/** Those of the folders (to the final slash) and files of which something is loaded. */
function foldersOf({ modules }: Loaded, folders: readonly string[]): string[] {
  return folders.filter((folder) => modules.some((module) => module.startsWith(folder)))
}

/** Starts and ends a server; what its threads have loaded, the control thread first, without those that it did not need. */
async function loadedByServer(
  t: Test,
  corefile: string,
  files: Readonly<Record<string, string>> = { 'records/none.txt': '' },
): Promise<Loaded[]> {
  const env = { NODE_V8_COVERAGE: 'coverage' }
  const server = await startServer(t, { corefile, env, files })
  server.process.kill('SIGTERM')
  t.equal(await server.exited(), 0, server.output())
  return readLoaded(join(server.directory, 'coverage')).filter(({ modules }) =>
    modules.some((module) => module.startsWith('plugins/') && module !== 'plugins/order.js'),
  )
}

/** What a server of zones that come from records needs, and only the control thread of one. */
const CONTROL = [
  'api/',
  'client/',
  'records/validate/dns-record.js',
  'health/probes/',
  'kube/',
  'operator/',
  'peering/merge/',
  'base/persist/',
  'publish/serve/snapshot/',
  'publish/zone-publisher.js',
  'sources/kubernetes/',
  'sources/manifests/',
  'sources/open-source.js',
  'xfr/in/',
  'xfr/journal/',
  'zone/snapshot/',
  'zone/zonefile/',
]

t.test('a server loads what its Corefile names', async (t) => {
  const corefile = 'example.org:{PORT} {\n bind 127.0.0.1\n whoami\n}\n'
  const [control, ...threads] = await loadedByServer(t, corefile)
  t.ok(control!.modules.includes('plugins/whoami/whoami.js'), 'it was seen')
  for (const [i, loaded] of [control!, ...threads].entries()) {
    const name = i === 0 ? 'the control thread' : `data thread ${i}`
    t.ok(loaded.modules.length <= 164, `${name}: ${loaded.modules.length} modules`)
    t.strictSame(loaded.packages, [], `${name}: packages`)
    const others = [...CONTROL, 'records/', 'geo/', 'steering/', 'zone/image/', 'plugins/file/']
    t.strictSame(foldersOf(loaded, others), [], name)
  }
})

t.test('a data thread of zone files loads neither their scanner nor snapshots', async (t) => {
  const zone = '@ 60 SOA a b 1 2 3 4 5\n@ 60 NS a\na 60 A 192.0.2.1\n'
  const files = { 'zones/db.example.org': zone, 'db.example.net': zone }
  const corefile = `.:{PORT} {
  bind 127.0.0.1
  multisocket 1
  auto {
    directory zones
  }
  file db.example.net example.net
}
`
  const [control, ...threads] = await loadedByServer(t, corefile, files)
  t.strictSame(foldersOf(control!, ['zone/zonefile/', 'zone/snapshot/']), ['zone/zonefile/'])
  for (const loaded of threads) {
    t.ok(loaded.modules.includes('authority/threaded-file-zones.js'), 'it was seen')
    t.ok(loaded.modules.length <= 164, `${loaded.modules.length} modules`)
    t.strictSame(foldersOf(loaded, [...CONTROL, 'dns/rdata/', 'authority/file-zone.js']), [])
  }
})

t.test('plain documents need no YAML parser', async (t) => {
  const object = 'apiVersion: v1\nkind: Namespace\nmetadata:\n  name: a\n'
  for (const [document, packages] of [
    [object, []],
    ['{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}}\n', []],
    [object.replace('name: a', 'name: !!str a'), ['yaml']],
  ] as const) {
    const corefile = `.:{PORT} {
  bind 127.0.0.1
  egress {
    policies objects.yaml
    dry_run
    cluster 10.0.0.0/8
    api off
  }
  whoami
}
`
    const [control] = await loadedByServer(t, corefile, { 'objects.yaml': document })
    t.ok(control!.modules.includes('egress/agent/egress-agent.js'), 'it was seen')
    const loaded = control!.packages.filter((name) => name === 'yaml')
    t.strictSame(loaded, packages, document)
  }
})

t.test('a data thread loads nothing of what only the control thread does', async (t) => {
  const corefile = `example.org:{PORT} {
    bind 127.0.0.1
    multisocket 1
    prometheus 127.0.0.1:0
    ready 127.0.0.1:0
    health 127.0.0.1:0
    reload
    errors
    log
    acl {
      allow net 127.0.0.0/8
    }
    local
    minimal
    kuadrant {
      manifests records
    }
  }
`
  const [control, ...threads] = await loadedByServer(t, corefile)
  t.strictSame(foldersOf(control!, ['sources/manifests/']), ['sources/manifests/'], 'it was seen')
  t.ok(control!.packages.includes('prom-client'), 'and its packages')
  for (const { modules, packages } of threads) {
    t.ok(modules.includes('plugins/kuadrant/kuadrant.js'), 'it was seen')
    t.strictSame(foldersOf({ modules, packages }, CONTROL), [])
    t.strictSame(packages, [])
  }
})
