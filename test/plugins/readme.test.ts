import { mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { systemClock } from '../../src/base/clock.ts'
import { systemTimers } from '../../src/base/timers.ts'
import { composeParts } from '../../src/cli/compose.ts'
import { Algorithm } from '../../src/dns/dnssec/algorithms.ts'
import { FLAGS_KSK } from '../../src/dns/dnssec/dnskey.ts'
import { scanName } from '../../src/dns/name/name.ts'
import { describe, Supervisor, type SupervisorParts } from '../../src/server/supervisor.ts'
import { KeyDirectory } from '../../src/signing/keys/key-directory.ts'
import { lineBufferTo } from '../support/line-buffer.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'

// Own process: it changes the environment and the working directory.
// Long: it starts a server for each example.

const root = resolve(dirname(fileURLToPath(import.meta.url)), '../..')
const plugins = join(root, 'src/plugins')
const SECTIONS = ['Name', 'Description', 'Syntax', 'Examples']

/** `*acl* - what it does.`; the formatter writes underscores. */
const NAME_LINE = /^## Name\n\n[*_]([\w-]+)[*_] - \S/m

const folders = readdirSync(plugins, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map((entry) => entry.name)

/** The parts of a real process, except ports: every listener gets a free one of the loopback address. */
function loopbackParts(lines: string[]): SupervisorParts {
  const parts = composeParts(53, lineBufferTo(lines))
  return {
    ...parts,
    openDns: (plan) => parts.openDns({ ...plan, host: '127.0.0.1', port: 0 }),
    openHttp: (_, routes) => parts.openHttp('127.0.0.1:0', routes),
    openAdmin: (key, site) => parts.openAdmin(key, { ...site, address: '127.0.0.1:0' }),
  }
}

/** Starts and stops a Corefile; returns what went wrong, '' = nothing. */
async function startAndStop(name: string, text: string): Promise<string> {
  const lines: string[] = []
  const supervisor = new Supervisor({ kind: 'text', name, text }, loopbackParts(lines))
  try {
    await supervisor.start()
  } catch (error) {
    return describe(error)
  }
  const listening = supervisor.plans.length > 0 ? '' : 'listens nowhere'
  // A lameduck or a last write has its time here; a stuck socket has not.
  const code = await supervisor.stop()
  const fault = lines.find((line) => line.startsWith('[ERROR]')) ?? listening
  return code === 0 ? fault : `stopped with exit code ${code}`
}

// Threads take their time to start here, where they load the sources, and do the same setups.
process.env.SEXTANT_UDP = 'dgram'

// Paths in examples start at a folder with the repository's zones, keys of example.org, and room for signed files.
const directory = temporaryDirectory(t)
for (const name of ['zones', 'src']) symlinkSync(join(root, name), join(directory, name))
mkdirSync(join(directory, 'signed'))
const keys = { path: join(directory, 'keys'), clock: systemClock, timers: systemTimers }
await new KeyDirectory(keys).create(scanName('example.org.')!, Algorithm.EcdsaP256, FLAGS_KSK)
process.chdir(directory)

for (const folder of folders) {
  t.test(`README of ${folder}`, async (t) => {
    const file = join('src/plugins', folder, 'README.md')
    const text = readFileSync(join(root, file), 'utf8')
    t.ok(text.startsWith(`# ${folder}\n`), 'is titled with its name')
    t.ok(NAME_LINE.exec(text)?.[1] === folder, 'says in a line what it is')
    const sections = [...text.matchAll(/^## (.+)$/gm)].map((match) => match[1]!)
    t.strictSame(
      sections.filter((section) => SECTIONS.includes(section)),
      SECTIONS,
      'has the sections that every README has, in their order',
    )
    const examples = [...text.matchAll(/^```corefile\n([\s\S]*?)^```$/gm)].map((match) => match[1]!)
    // Its example needs a package: test/deploy/package.test.ts installs one.
    if (folder !== 'plugin') t.not(examples.length, 0, 'has an example')
    for (const [i, example] of examples.entries()) {
      t.equal(await startAndStop(file, example), '', `example ${i + 1} starts`)
    }
  })
}

t.test('an example that does not start is noticed', async (t) => {
  t.match(await startAndStop('Corefile', 'example.org {\n bufsize 1\n}\n'), 'Wrong argument count')
  t.match(await startAndStop('Corefile', 'example.org {\n nonsense\n}\n'), 'Unknown directive')
})
