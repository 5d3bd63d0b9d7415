import { join } from 'node:path'
import t from 'tap'
import { runKeys } from '../../src/cli/keys.ts'
import { isObject } from '../../src/kube/api.ts'
import { recordOutput } from '../support/recorded-output.ts'
import { serveApi } from '../support/served-api.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'

const SECRETS = { group: '', version: 'v1', plural: 'secrets' }

t.test('keys in a Secret', async (t) => {
  const { api, kubeconfig } = await serveApi(t)
  const folder = temporaryDirectory(t)
  const keys = async (...argv: string[]) => {
    const { output, printed, errors } = recordOutput(folder)
    const code = await runKeys(argv, output)
    return { code, printed, errors }
  }
  const place = ['-secret', 'dns/keys', '--kubeconfig', kubeconfig('admin')]
  t.match(await keys('list', ...place), { code: 1, errors: [/kubectl create secret generic/] })
  api.put(SECRETS, { kind: 'Secret', metadata: { namespace: 'dns', name: 'keys' } })
  await keys('generate', 'example.org', ...place)
  await keys('generate', 'example.net', '-keys', folder)
  const [, row = ''] = (await keys('list', '-keys', folder, '-o', 'wide')).printed
  const id = row.trim().split(/\s+/).at(-1)!
  const added = await keys('import', 'example.net', join(folder, `${id}.private`), ...place)
  t.match(added, { code: 0, printed: [/^KEYS OF/, /^example\.net\. .* unused/] })
  t.match((await keys('list', ...place)).printed, [
    /^KEYS OF/,
    /^example\.net\./,
    /^example\.org\./,
  ])
  const retired = await keys('retire', 'example.net', id, ...place)
  t.strictSame(retired.printed, [`${id} is retired`])
  t.equal((await keys('list', ...place)).printed.length, 2)
  const { data = {} } = api.all(SECRETS).get('dns/keys')!
  t.equal(isObject(data) ? Object.keys(data).length : 0, 4, 'nothing is deleted')
  t.match((await keys('roll', 'example.org', '--csk', ...place)).errors, [/no server has signed/])

  for (const [argv, want] of [
    [['-secret', 'dns'], /-secret must be NAMESPACE\/NAME, not "dns"/],
    [['-secret', 'dns/keys', '-keys', folder], /-keys and -secret exclude each other/],
    [['--kubeconfig', 'x'], /--kubeconfig needs -secret/],
    [['-secret', 'dns/keys', '--kubeconfig', join(folder, 'none')], /none.*cannot be read/],
  ] as const)
    t.match(await keys('list', ...argv), { code: 1, errors: [want] })
})
