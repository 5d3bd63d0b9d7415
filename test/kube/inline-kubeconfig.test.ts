import t from 'tap'
import { createInlineClient, scanInlineKubeconfig } from '../../src/kube/inline-kubeconfig.ts'

const SECRET = 'very-secret'
const PEM = Buffer.from('-----BEGIN CERTIFICATE-----\n').toString('base64')

interface Parts {
  readonly cluster?: object
  readonly user?: object
  readonly more?: object
}

/** A kubeconfig that is accepted, except for `parts`. */
function kubeconfig({ cluster = {}, user = { token: SECRET }, more = {} }: Parts = {}): string {
  const server = 'https://192.0.2.1:6443'
  return JSON.stringify({
    'current-context': 'main',
    clusters: [{ name: 'c', cluster: { server, 'certificate-authority-data': PEM, ...cluster } }],
    users: [
      { name: 'u', user },
      { name: 'other', user: { exec: { command: 'x' } } },
    ],
    contexts: [{ name: 'main', context: { cluster: 'c', user: 'u', namespace: 'n' } }],
    ...more,
  })
}

t.test('a self-contained kubeconfig is accepted', async (t) => {
  const table = [
    { name: 'a token', given: kubeconfig() },
    { name: 'YAML', given: `# made by hand\n${kubeconfig()}` },
    {
      name: 'a certificate',
      given: kubeconfig({ user: { 'client-certificate-data': PEM, 'client-key-data': PEM } }),
    },
    {
      name: 'a path, as of a proxy',
      given: kubeconfig({ cluster: { server: 'https://a/k8s/c' } }),
    },
    {
      name: 'fields that are empty, and what tools note',
      given: kubeconfig({
        cluster: { extensions: [{ name: 'x' }], 'certificate-authority': '' },
        user: { token: SECRET, exec: null },
      }),
    },
  ]
  for (const { name, given } of table) {
    const config = scanInlineKubeconfig(given)
    if (typeof config === 'string') t.fail(`${name}: ${config}`)
    else t.match(await createInlineClient(config), { place: config.server }, name)
  }
})

t.test(
  'a field that leads outside of the kubeconfig is refused by its name, and its value is not logged',
  (t) => {
    const user = (more: object) => kubeconfig({ user: { token: SECRET, ...more } })
    const table = [
      { given: '', want: /^is empty$/ },
      { given: '- a\n- b', want: /^is not a kubeconfig$/ },
      { given: `a: [${SECRET}`, want: /^is not valid YAML \(line 1: [A-Z_]+\)$/ },
      { given: `a: &a [${SECRET}]\nb: *a`, want: /^has YAML aliases$/ },
      { given: 'x'.repeat(65_537), want: /^has more than 65536 characters$/ },
      // Each of these ended the process, or kept it for a second.
      { given: '['.repeat(65_536), want: /^has too many parts$/ },
      { given: '{a: '.repeat(16_384), want: /^has too many parts$/ },
      { given: '- '.repeat(32_768), want: /^has too many parts$/ },
      { given: '? '.repeat(101), want: /^has too many parts$/ },
      { given: '['.repeat(100), want: /^is not valid YAML/ },
      { given: kubeconfig({ more: { 'current-context': '' } }), want: /^has no current-context$/ },
      { given: kubeconfig({ more: { contexts: [] } }), want: /^has no context with the name/ },
      { given: kubeconfig({ more: { clusters: {} } }), want: /^has no cluster with the name/ },
      {
        given: kubeconfig({ more: { users: [{ name: 'u' }] } }),
        want: /^has no user with the name/,
      },
      {
        given: user({ exec: { command: SECRET } }),
        want: /^has users\[\]\.user\.exec: only fields/,
      },
      {
        given: user({ 'auth-provider': { name: SECRET } }),
        want: /^has users\[\]\.user\.auth-provider: /,
      },
      { given: user({ tokenFile: '/etc/shadow' }), want: /^has users\[\]\.user\.tokenFile: / },
      {
        given: user({ 'client-certificate': 'a' }),
        want: /^has users\[\]\.user\.client-certificate: /,
      },
      { given: user({ 'client-key': 'a' }), want: /^has users\[\]\.user\.client-key: / },
      { given: user({ password: SECRET }), want: /^has users\[\]\.user\.password: / },
      { given: user({ as: 'admin' }), want: /^has users\[\]\.user\.as: / },
      {
        given: user({ [`x ${SECRET}`]: 'a' }),
        want: /^has users\[\]\.user\.unknown field: /,
      },
      {
        given: kubeconfig({ cluster: { 'certificate-authority': '/etc/ca' } }),
        want: /^has clusters\[\]\.cluster\.certificate-authority: /,
      },
      {
        given: kubeconfig({ cluster: { 'proxy-url': 'http://a' } }),
        want: /^has clusters\[\]\.cluster\.proxy-url: /,
      },
      {
        given: kubeconfig({ cluster: { 'certificate-authority-data': SECRET } }),
        want: /^has clusters\[\]\.cluster\.certificate-authority-data that is not PEM in base64$/,
      },
      {
        given: kubeconfig({ cluster: { 'insecure-skip-tls-verify': 'yes' } }),
        want: /insecure-skip-tls-verify that is not a boolean$/,
      },
      { given: kubeconfig({ cluster: { server: 'here' } }), want: /server that is not a URL$/ },
      {
        given: kubeconfig({ cluster: { server: 'http://127.0.0.1' } }),
        want: /that is not https:$/,
      },
      { given: kubeconfig({ cluster: { server: 'file:///etc' } }), want: /that is not https:$/ },
      {
        given: kubeconfig({ cluster: { server: `https://me:${SECRET}@a` } }),
        want: /server with more than scheme, host, port and path$/,
      },
      { given: kubeconfig({ user: {} }), want: /^has no credentials: set users\[\]\.user\.token$/ },
      {
        given: kubeconfig({ user: { 'client-key-data': PEM } }),
        want: /^has only one of .*client-certificate-data and client-key-data; it needs both$/,
      },
      {
        given: kubeconfig({ user: { token: `a\r\n${SECRET}` } }),
        want: /token that is not valid$/,
      },
      { given: kubeconfig({ user: { token: 7 } }), want: /token that is not a string$/ },
    ]
    for (const { given, want } of table) {
      const problem = scanInlineKubeconfig(given)
      t.match(problem, want)
      t.notMatch(JSON.stringify(problem), SECRET)
    }
    t.end()
  },
)

t.test('a server that is not verified is warned of', (t) => {
  const given = kubeconfig({ cluster: { 'insecure-skip-tls-verify': true } })
  t.match(scanInlineKubeconfig(given), { warning: /^insecure-skip-tls-verify is set: / })
  t.match(scanInlineKubeconfig(kubeconfig()), { warning: '' })
  t.end()
})
