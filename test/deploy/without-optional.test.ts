import { cpSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { ask } from '../support/dig.ts'
import { needs, run } from '../support/peer.ts'
import { root, startServer } from '../support/server.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'

/** Installs the build as `npm ci --omit=dev --omit=optional` does; returns the path of its main.js. */
function installWithoutOptional(t: Test): string {
  // Outside the tree: inside it, Node finds the optional packages in the tree's node_modules.
  const directory = temporaryDirectory(t)
  cpSync(join(root, 'dist'), join(directory, 'dist'), { recursive: true })
  const text = readFileSync(join(root, 'package.json'), 'utf8')
  cpSync(join(root, 'package.json'), join(directory, 'package.json'))
  const { dependencies } = JSON.parse(text) as { dependencies: Record<string, string> }
  for (const name of Object.keys(dependencies)) {
    const target = join(directory, 'node_modules', name)
    mkdirSync(dirname(target), { recursive: true })
    symlinkSync(join(root, 'node_modules', name), target)
  }
  return join(directory, 'dist/main.js')
}

const MISSING =
  'Kubernetes needs the npm package @kubernetes/client-node, which is not installed: ' +
  'install Sextant with its optional dependencies: `npm ci` without `--omit=optional`'

t.test('a plain server runs without the optional packages', needs('dig'), async (t) => {
  const main = installWithoutOptional(t)
  const server = await startServer(t, {
    corefile: `example.org:{PORT} {
  bind 127.0.0.1
  geoip
  prometheus 127.0.0.1:0
  kuadrant {
    manifests zones
  }
}`,
    files: {
      'zones/app.yaml': `apiVersion: kuadrant.io/v1alpha1
kind: DNSRecord
metadata:
  name: app
spec:
  rootHost: app.example.org
  endpoints:
    - dnsName: app.example.org
      recordType: A
      targets: [192.0.2.1]
`,
    },
    env: { MAIN: main },
    wrapper: ['sh', '-c', 'exec "$0" "$MAIN" serve -conf Corefile'],
  })
  t.match(server.output(), /udp: dgram \(koffi cannot be loaded: Cannot find module 'koffi'\)/)
  const { answer } = await ask('dig', server.port, ['app.example.org'])
  t.match(answer, [/^app\.example\.org\. \d+ IN A 192\.0\.2\.1$/])
  server.process.kill('SIGTERM')
  t.equal(await server.exited(), 0, server.output())
})

t.test('directives that need Kubernetes name the missing package', async (t) => {
  const main = installWithoutOptional(t)
  const directory = t.testdir({
    Corefile: 'example.org:0 {\n  bind 127.0.0.1\n  kuadrant {\n    kubeconfig config\n  }\n}\n',
    config: readFileSync(join(root, 'package.json'), 'utf8'),
  })
  const table = [
    ['serve', '-conf', 'Corefile'],
    ['operator', '--kubeconfig', 'config'],
  ]
  for (const args of table) {
    const command = ['-c', 'cd "$0" && exec "$@"', directory, process.execPath, main, ...args]
    const { code, stdout, stderr } = await run('sh', command)
    t.equal(code, 1, args.join(' '))
    t.match(stdout + stderr, MISSING, args.join(' '))
  }
})
