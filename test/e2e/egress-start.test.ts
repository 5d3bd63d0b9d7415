import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { HostNetwork } from '../support/host-network.ts'
import { needs, needsRoot } from '../support/peer.ts'
import { startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

// Long: it starts and kills agents many times.

/* Starts of the node agent on a machine that lacks something: the error says what, and nothing listens. */

t.setTimeout(300_000)

const OBJECTS = 'apiVersion: v1\nkind: Namespace\nmetadata: { name: a }\n'

function pathOf(tool: string): string {
  return execFileSync('sh', ['-c', `command -v ${tool}`], { encoding: 'utf8' }).trim()
}

/** A folder with these tools only: scripts, or '' = the tool of this machine. */
function toolsOf(t: Test, tools: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(join(tmpdir(), 'sextant-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  mkdirSync(join(folder, 'bin'))
  for (const [name, script] of Object.entries(tools)) {
    const path = join(folder, 'bin', name)
    if (script === '') symlinkSync(pathOf(name), path)
    else writeFileSync(path, `#!/bin/sh\n${script}\n`)
    if (script !== '') chmodSync(path, 0o755)
  }
  return join(folder, 'bin')
}

interface StartOptions {
  readonly properties?: string
  readonly wrapper?: readonly string[]
  /** PATH of the program. */
  readonly tools?: string
}

/** Starts an agent that is expected to fail. Returns its exit code and its output. */
async function failedStart(t: Test, { properties = '', wrapper, tools }: StartOptions) {
  const server = await startServer(t, {
    corefile: `.:{PORT} {
    bind 127.0.0.1
    egress {
        policies objects.yaml
        cluster 10.0.0.0/8
        api off
        state state
        ${properties}
    }
    whoami
}
`,
    files: { 'objects.yaml': OBJECTS },
    mustStart: false,
    ...(wrapper === undefined ? {} : { wrapper }),
    ...(tools === undefined ? {} : { env: { PATH: tools } }),
  })
  await until(() => server.process.exitCode !== null, 'the end')
  return { code: await server.exited(), output: server.output() }
}

const FAKE = 'exit 0'
const DRY = /, or write `dry_run` in place of `nftables`$/m

t.test('nft or conntrack is not installed', async (t) => {
  const nft = await failedStart(t, { tools: toolsOf(t, { conntrack: FAKE }) })
  t.equal(nft.code, 1)
  t.match(
    nft.output,
    /Corefile:3: plugin\/egress: nft is not installed: install the package nftables/,
  )
  t.match(nft.output, DRY)
  t.notMatch(nft.output, /^Sextant-/m)
  const conntrack = await failedStart(t, { tools: toolsOf(t, { nft: FAKE }) })
  t.equal(conntrack.code, 1)
  t.match(
    conntrack.output,
    /conntrack is not installed: install the package conntrack, or write `zom/,
  )
})

t.test('a tool that fails', async (t) => {
  const tools = toolsOf(t, { nft: 'echo "cache initialization failed" >&2\nexit 1' })
  const { code, output } = await failedStart(t, { tools })
  t.equal(code, 1)
  t.match(output, /`nft list chains inet` failed: cache initialization failed; or write `dry_run`/)
})

t.test('without CAP_NET_ADMIN', { ...needsRoot(), ...needs('nft', 'setpriv') }, async (t) => {
  const wrapper = ['setpriv', '--bounding-set=-net_admin', '--inh-caps=-net_admin', '--']
  const { code, output } = await failedStart(t, { wrapper, properties: 'zombies 0' })
  t.equal(code, 1)
  t.match(
    output,
    /`nft list chains inet` failed: .*; give this process CAP_NET_ADMIN, or write `dry_run`/,
  )
})

t.test('the name of the node is unknown', async (t) => {
  const server = await startServer(t, {
    corefile:
      '.:{PORT} {\n egress {\n  kubernetes\n  endpoint http://127.0.0.1:1\n  api off\n }\n}\n',
    env: { NODE_NAME: '' },
    mustStart: false,
  })
  t.equal(await server.exited(), 1)
  t.match(
    server.output(),
    /Corefile:2: .*name of this node is unknown: write `kubernetes NODE`, or/,
  )
})

t.test('a dry run needs none of them', async (t) => {
  const server = await startServer(t, {
    corefile:
      '.:{PORT} {\n bind 127.0.0.1\n egress {\n  policies objects.yaml\n  cluster 10.0.0.0/8\n  dry_run\n  api off\n }\n whoami\n}\n',
    files: { 'objects.yaml': OBJECTS },
    env: { PATH: toolsOf(t, {}) },
  })
  t.notMatch(server.output(), /WARNING|ERROR/)
})

t.test(
  'without conntrack, names end with their TTL',
  {
    ...needsRoot(),
    ...needs('ip', 'nft'),
  },
  async (t) => {
    const network = await HostNetwork.create(t)
    await network.addHost('node', ['10.1.0.1/24'])
    const server = await startServer(t, {
      corefile:
        '.:{PORT} {\n egress {\n  policies objects.yaml\n  cluster 10.0.0.0/8\n  zombies 0\n  api off\n }\n whoami\n}\n',
      files: { 'objects.yaml': OBJECTS },
      env: { PATH: toolsOf(t, { nft: '', sh: '' }) },
      wrapper: [pathOf('ip'), 'netns', 'exec', network.nameOf('node')],
    })
    t.notMatch(server.output(), /ERROR|not installed/)
  },
)
