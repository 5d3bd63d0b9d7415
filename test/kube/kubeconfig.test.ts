import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { InputError } from '../../src/base/errors.ts'
import { loadKubeConfig, warningOf } from '../../src/kube/kubeconfig.ts'

const SECRET = 'very-secret'

function config(change: (text: string) => string = (text) => text): string {
  return change(`apiVersion: v1
kind: Config
current-context: main
clusters:
- name: here
  cluster: {server: "https://192.0.2.1:6443", certificate-authority: ca.crt}
users:
- name: me
  user: {token: ${SECRET}}
- name: rotated
  user: {tokenFile: token}
contexts:
- {name: main, context: {cluster: here, user: me}}
- {name: other, context: {cluster: here, user: rotated}}
- {name: broken, context: {cluster: nowhere, user: me}}
- {name: nobody, context: {cluster: here, user: nobody}}
`)
}

interface Row {
  readonly name: string
  readonly given?: (text: string) => string
  readonly context?: string
  readonly want: RegExp
}

const REFUSED: readonly Row[] = [
  { name: 'no such context', context: 'absent', want: /has no context "absent"$/ },
  {
    name: 'no current context',
    given: (text) => text.replace('current-context: main', ''),
    want: /has no current-context/,
  },
  { name: 'a context without its cluster', context: 'broken', want: /has no cluster "nowhere"$/ },
  { name: 'a context without its user', context: 'nobody', want: /has no user "nobody"$/ },
  {
    name: 'a server that is not a URL',
    given: (text) => text.replace('https://192.0.2.1:6443', 'here'),
    want: /server that is not a URL$/,
  },
  {
    name: 'a server without TLS',
    given: (text) => text.replace('https:', 'http:'),
    want: /names a server without TLS: /,
  },
  {
    name: 'a server that only looks like this machine',
    given: (text) => text.replace('https://192.0.2.1', 'http://127.0.0.1.example.com'),
    want: /names a server without TLS: /,
  },
  {
    name: 'a certificate that does not exist',
    given: (text) => text.replace('ca.crt', 'absent.crt'),
    want: /absent\.crt: cannot be read: ENOENT/,
  },
  {
    name: 'not valid YAML',
    given: (text) => `${text}\tx: [`,
    want: /is not valid YAML \(line 1[78]: /,
  },
  { name: 'another document', given: () => 'just text', want: /is not a kubeconfig$/ },
  {
    name: 'a user without a name',
    given: (text) => text.replace('- name: me\n ', '-'),
    want: /users\[0\]\.name is missing/,
  },
  { name: 'nothing', given: () => '', want: /is not a kubeconfig$/ },
]

t.test('a kubeconfig that is of no use says why, and nothing of what is in it', async (t) => {
  for (const { name, given, context = '', want } of REFUSED) {
    const directory = t.testdir({ 'ca.crt': '', token: 't', kubeconfig: config(given) })
    const kubeconfig = join(directory, 'kubeconfig')
    const refused = await loadKubeConfig({ kubeconfig, context }).catch((error) => error)
    t.ok(refused instanceof InputError, name)
    t.match(refused.message, want, name)
    t.ok(refused.message.startsWith(directory), 'it names the file')
    t.notMatch(refused.message, SECRET)
  }
})

t.test('a kubeconfig that does not exist', async (t) => {
  const place = { kubeconfig: '/nowhere/kubeconfig', context: '' }
  await t.rejects(loadKubeConfig(place), {
    message: /^\/nowhere\/kubeconfig: cannot be read: ENOENT/,
  })
  const directory = { kubeconfig: t.testdir({}), context: '' }
  await t.rejects(loadKubeConfig(directory), { message: /cannot be read: EISDIR/ })
})

t.test('contexts, and paths beside the file', async (t) => {
  const directory = t.testdir({ 'ca.crt': '', token: 'first', kubeconfig: config() })
  const kubeconfig = join(directory, 'kubeconfig')
  const main = await loadKubeConfig({ kubeconfig, context: '' })
  t.equal(main.getCurrentCluster()?.server, 'https://192.0.2.1:6443')
  t.equal(main.getCurrentCluster()?.caFile, join(directory, 'ca.crt'))
  t.equal(main.getCurrentUser()?.token, SECRET)
  const other = await loadKubeConfig({ kubeconfig, context: 'other' })
  const options = { headers: {} }
  await other.applyToHTTPSOptions(options)
  t.strictSame(options.headers, { Authorization: 'Bearer first' }, 'tokenFile is read')
})

t.test('a server that anybody can pose as is worth a warning', async (t) => {
  const table = [
    { name: 'a certificate', server: 'https://192.0.2.1:6443', skips: false, want: /^$/ },
    {
      name: 'no certificate',
      server: 'https://192.0.2.1:6443',
      skips: true,
      want: /^insecure-skip-tls-verify is set for https:\/\/192\.0\.2\.1:6443: /,
    },
    { name: 'localhost', server: 'http://localhost:1', skips: true, want: /^$/ },
    { name: 'this machine', server: 'http://127.0.0.1:1', skips: true, want: /^$/ },
    { name: 'this machine over IPv6', server: 'http://[::1]:1', skips: true, want: /^$/ },
  ]
  for (const { name, server, skips, want } of table) {
    const given = config((text) => {
      const secured = text.replace('https://192.0.2.1:6443', server)
      return skips
        ? secured.replace('certificate-authority: ca.crt', 'insecure-skip-tls-verify: true')
        : secured
    })
    const kubeconfig = join(
      t.testdir({ 'ca.crt': '', token: 't', kubeconfig: given }),
      'kubeconfig',
    )
    t.match(warningOf(await loadKubeConfig({ kubeconfig, context: '' })), want, name)
  }
})

t.test('in a cluster, the service account of the pod is used', async (t) => {
  const mount = 'var/run/secrets/kubernetes.io/serviceaccount'
  const files = { 'ca.crt': 'x', token: 'one', namespace: 'here' }
  const root = t.testdir({
    var: { run: { secrets: { 'kubernetes.io': { serviceaccount: files } } } },
  })
  const place = { kubeconfig: '', context: '' }
  const env = process.env
  t.teardown(() => (process.env = env))
  const outside = await loadKubeConfig(place, {}).catch((error) => error)
  t.match(outside.message, /^not in a Kubernetes cluster .*`kubeconfig FILE` or `manifests DIR`$/)
  process.env = { ...env, KUBERNETES_SERVICE_HOST: '2001:db8::1', KUBERNETES_SERVICE_PORT: '443' }
  const bare = await loadKubeConfig(place, process.env, '/nowhere').catch((error) => error)
  t.match(bare.message, /^\/nowhere\/.*ca\.crt: cannot be read/)
  const authorization = async () => {
    const config = await loadKubeConfig(place, process.env, root)
    t.equal(config.getCurrentCluster()?.server, 'https://[2001:db8::1]:443')
    const options = { headers: {} }
    await config.applyToHTTPSOptions(options)
    return options.headers
  }
  t.strictSame(await authorization(), { Authorization: 'Bearer one' })
  writeFileSync(join(root, mount, 'token'), 'two')
  t.equal(readFileSync(join(root, mount, 'token'), 'utf8'), 'two')
  t.strictSame(await authorization(), { Authorization: 'Bearer two' }, 'a token that was replaced')
})
