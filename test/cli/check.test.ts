import { join } from 'node:path'
import t, { type Test } from 'tap'
import { check } from '../../src/cli/check.ts'
import type { Output } from '../../src/cli/output.ts'
import { lineBufferTo } from '../support/line-buffer.ts'

async function run(t: Test, files: Record<string, string>, args: readonly string[] = []) {
  const directory = t.testdir(files)
  const printed: string[] = []
  const errors: string[] = []
  const output: Output = {
    lines: lineBufferTo(printed),
    print: (line) => printed.push(line),
    printError: (line) => errors.push(line.replaceAll(`${directory}/`, '')),
    flush: () => {},
  }
  const here = args.map((arg) => arg.replace('{DIR}', directory))
  const code = await check(['-conf', join(directory, 'Corefile'), ...here], output)
  return { code, printed, errors }
}

t.test('a good Corefile has no errors', async (t) => {
  const got = await run(t, { Corefile: 'example.org {\n whoami\n log\n}\n' })
  t.strictSame(got, { code: 0, printed: ['no errors found'], errors: [] })
})

t.test('every fault is reported, in order of place', async (t) => {
  const parsing = 'Error during parsing'
  const got = await run(t, {
    Corefile: `a {\n etcd\n bufsize x\n nobody\n}\nb: {\n chaos\n}\na {\n}\ntls://c {\n}\n`,
  })
  t.equal(got.code, 1)
  t.strictSame(
    got.errors.map((line) => line.replace(/^(plugin\/bufsize: Corefile:3).*/, '$1')),
    [
      `Corefile:2 - ${parsing}: plugin "etcd" is not supported by this version of Sextant`,
      'plugin/bufsize: Corefile:3',
      `Corefile:4 - ${parsing}: Unknown directive 'nobody'`,
      'Corefile:6: error inspecting server blocks: expecting data after last colon: "b:"',
      'Corefile:9: cannot serve dns://a.:53 - it is already defined',
      'Corefile:11: scheme "tls" is not supported by this version of Sextant',
    ],
  )
})

t.test('a fault of syntax ends the reading', async (t) => {
  const got = await run(t, { Corefile: 'a {\n nobody\n}\n.:53 { whoami }\n' })
  t.equal(got.code, 1)
  t.match(got.errors, [/Corefile:2 .*Unknown directive/, /Corefile:4 .*no matching opening brace/])
})

t.test('files that directives name are read too', async (t) => {
  const zone = '@ 60 IN SOA ns1 root 1 2 3 4 5\n@ 60 IN NS ns1\nns1 60 IN A 300.0.0.1\n'
  const got = await run(t, {
    Corefile: 'example.org {\n root {DIR}\n file db\n}\n'.replace('{DIR}', t.testdirName),
    db: zone,
  })
  t.equal(got.code, 1)
  t.equal(got.errors.length, 1)
  t.match(got.errors[0], /db:3/)
})

t.test('a directory of manifests can be checked beside', async (t) => {
  const bad = 'kind: DNSRecord\napiVersion: kuadrant.io/v1alpha1\nspec: 7\n'
  const files = { Corefile: 'a {\n}\n', zones: { 'bad.yaml': bad } } as unknown as Record<
    string,
    string
  >
  const got = await run(t, files, ['--manifests', '{DIR}/zones'])
  t.equal(got.code, 1)
  t.match(got.errors[0], /bad\.yaml:\d+/)
})

t.test('a Corefile that is not there is one line', async (t) => {
  const errors: string[] = []
  const output: Output = {
    lines: lineBufferTo([]),
    print: () => {},
    printError: (line) => errors.push(line),
    flush: () => {},
  }
  t.equal(await check(['-conf', '/nonexistent/Corefile'], output), 1)
  t.equal(errors.length, 1)
  t.match(errors[0], /^cannot read Corefile \/nonexistent\/Corefile: ENOENT/)
})
