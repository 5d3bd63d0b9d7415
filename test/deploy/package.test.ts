// Long: it packs the program, and compiles against it.
// Own process: it starts servers.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { freePort } from '../support/free-port.ts'
import { needs, run } from '../support/peer.ts'
import { root, runSextant, startServer } from '../support/server.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'
import { until } from '../support/until.ts'

/** Runs a command in `directory`; throws what it printed if it fails. */
async function runIn(directory: string, ...command: string[]): Promise<string> {
  const { code, stdout, stderr } = await run('sh', [
    '-c',
    'cd "$0" && exec "$@"',
    directory,
    ...command,
  ])
  if (code !== 0) throw new Error(`${command.join(' ')}:\n${stdout}${stderr}`)
  return stdout
}

/** Packs the package in `folder`, and returns the path of the archive. */
async function pack(t: Test, folder: string): Promise<string> {
  const directory = temporaryDirectory(t)
  const options = ['--ignore-scripts', '--silent', '--pack-destination', directory]
  return join(directory, (await runIn(folder, 'npm', 'pack', ...options)).trim())
}

/** The answer of a server on this machine, as lines. */
async function askOwn(port: number, ...question: string[]): Promise<string> {
  const args = ['query', '@127.0.0.1', '-p', String(port), '+short', ...question]
  return (await runSextant('.', args)).stdout.trim()
}

const PROGRAM = `
import { type EmbeddedAddress, type EmbeddedOptions, type EmbeddedServer, startServer } from 'sextant'
import type * as api from 'sextant/plugin'

const block = (text: string) => \`\${text}:0 {\\n bind 127.0.0.1\\n whoami\\n}\\n\`
const lines: string[] = []
const options: EmbeddedOptions = {
  corefile: block('example.org'),
  onLog: (line) => lines.push(line),
}
const server: EmbeddedServer = await startServer(options)
const [bad] = await Promise.all([
  server.reload('example.org {\\n whoareyou\\n}\\n').catch((error: Error) => error.message),
  server.reload(block('example.net')),
])
const missing = await startServer({ path: 'absent' }).catch((error: Error) => error.message)
const addresses: readonly EmbeddedAddress[] = server.addresses
console.log(JSON.stringify({ addresses, bad, missing, lines: lines.length > 0 }))
process.stdin.once('data', async () => {
  process.stdin.destroy()
  await server.stop()
})

// @ts-expect-error: a Corefile is text
void (() => startServer({ corefile: 1 }))

export const plugin: api.Plugin = ({ DROP, Link, Rcode, RRType, Trait }: api.PluginApi, name) => ({
  setup({ dispenser, log }: api.PluginContext): api.PluginPart {
    while (dispenser.next()) log.info(dispenser.onlyArg(), 'an-event')
    class Deaf extends Link {
      readonly name = name
      override before({ query }: api.Transaction): number {
        return query.qtype === RRType.ANY ? DROP : Rcode.REFUSED
      }
    }
    const handler = (next: api.Handler): api.Handler => new Deaf(next, Trait.Every, 0)
    // @ts-expect-error: the API has no such member
    dispenser.nothing()
    return { handler, start: async () => {}, ready: () => '' }
  },
})
`

const COMPILER = ['--strict', '--target', 'ES2023', '--module', 'NodeNext', '--types', 'node']

t.test('a TypeScript program embeds a server', needs('npm', 'tar'), async (t) => {
  const directory = temporaryDirectory(t)
  const home = join(directory, 'node_modules/sextant')
  mkdirSync(home, { recursive: true })
  await runIn(home, 'tar', '-xzf', await pack(t, root), '--strip-components=1')
  for (const folder of [home, directory]) {
    const types = join(root, 'node_modules')
    if (folder === home) symlinkSync(types, join(home, 'node_modules'))
    else symlinkSync(join(types, '@types'), join(directory, 'node_modules/@types'))
  }
  writeFileSync(join(directory, 'package.json'), '{ "type": "module" }')
  writeFileSync(join(directory, 'program.ts'), PROGRAM)
  const tsc = join(root, 'node_modules/typescript/bin/tsc')
  await runIn(directory, process.execPath, tsc, ...COMPILER, 'program.ts')

  const program = spawn(process.execPath, ['program.js'], { cwd: directory })
  t.teardown(() => program.kill('SIGKILL'))
  let printed = ''
  for (const stream of [program.stdout, program.stderr]) {
    stream.on('data', (part) => (printed += part))
  }
  const exited = once(program, 'exit')
  await until(() => printed.endsWith('\n'), 'the line of the program')
  const { addresses, ...said } = JSON.parse(printed)
  t.match(said, {
    bad: /^Corefile:2 - Error during parsing: Unknown directive 'whoareyou'/,
    missing: /^cannot read Corefile absent: ENOENT/,
    lines: true,
  })
  t.match(addresses, [{ host: '127.0.0.1', port: Number }])
  const { stdout } = await runSextant(directory, [
    ...['query', '@127.0.0.1', '-p', String(addresses[0].port), 'www.example.net'],
  ])
  t.match(stdout, /status: NOERROR/)
  program.stdin.write('\n')
  t.strictSame(await exited, [0, null], printed)
})

t.test('a server loads the example of a plug-in from npm', needs('npm'), async (t) => {
  const directory = temporaryDirectory(t)
  writeFileSync(join(directory, 'package.json'), '{}')
  const archive = await pack(t, join(root, 'docs/examples/sextant-motd'))
  await runIn(directory, 'npm', 'install', '--offline', '--silent', archive)
  const block = (source: string) => `.:{PORT} {
  bind 127.0.0.1
  multisocket 2
  plugin motd ${source} before whoami
  motd "be kind"
  whoami
}
`
  const port = await freePort()
  const beside = { port, directory }
  const server = await startServer(t, { corefile: block('sextant-motd'), beside })
  t.equal(await askOwn(port, 'example.org', 'TXT'), '"be kind"')
  t.equal(await askOwn(port, '+tcp', 'example.org', 'TXT'), '"be kind"')
  t.notMatch(server.output(), /WARN|ERROR/)

  const conf = join(directory, 'Corefile')
  const good = readFileSync(conf, 'utf8')
  writeFileSync(conf, good.replace('sextant-motd', 'sextant-absent'))
  server.process.kill('SIGUSR1')
  await server.prints(
    /Restart failed: Corefile:4: plugin\/motd: npm package sextant-absent is not i/,
  )
  t.equal(await askOwn(port, 'example.org', 'TXT'), '"be kind"', 'the last one still serves')
  const { code, stderr } = await runSextant(directory, ['check', '-conf', 'Corefile'])
  t.equal(code, 1)
  t.match(stderr, /^Corefile:4: plugin\/motd: npm package sextant-absent is not installed/m)

  writeFileSync(conf, good.replace('be kind', 'be wise'))
  server.process.kill('SIGUSR1')
  await server.prints(/Reloading complete/)
  t.equal(await askOwn(port, 'example.org', 'TXT'), '"be wise"')
})
