import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { COMMON_FLAGS, formsOf, linesOf, textOf } from '../../src/cli/args.ts'
import { COMMANDS } from '../../src/cli/commands.ts'
import { writeManPages } from '../../src/cli/man-pages.ts'
import { needs, run } from '../support/peer.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'

const folder = temporaryDirectory(t)
t.before(() => writeManPages(folder))
const pages = (): string[] => readdirSync(folder).map((name) => join(folder, name))

/** The text of a page, with single spaces. */
async function textOfPage(name: string): Promise<string> {
  const { stdout } = await run('mandoc', ['-T', 'ascii', join(folder, `${name}.1`)])
  // A bold letter is printed twice.
  return stdout.replace(/.[\b]/g, '').replace(/\s+/g, ' ')
}

t.test('man and mandoc read all pages without a warning', needs('man', 'mandoc'), async (t) => {
  const man = await run('man', ['--warnings', '-E', 'UTF-8', '-l', ...pages()])
  t.strictSame([man.code, man.stderr], [0, ''])
  const lint = await run('mandoc', ['-T', 'lint', '-W', 'warning', ...pages()])
  t.strictSame([lint.code, lint.stdout, lint.stderr], [0, '', ''])
})

t.test('a page has the forms and the flags of its command', needs('mandoc'), async (t) => {
  const all = await textOfPage('sextant')
  for (const { name, help, args } of COMMANDS) {
    t.ok(all.includes(`sextant-${name}(1) ${help}`), `sextant.1 has ${name}`)
    const { usage, flags } = await args()
    const text = await textOfPage(`sextant-${name}`)
    t.ok(text.includes(`sextant-${name} - ${help}`), name)
    for (const line of linesOf(usage)) t.ok(text.includes(`sextant ${line}`), line)
    for (const flag of [...flags, ...COMMON_FLAGS]) {
      const entry = `${formsOf(flag).join(', ')} ${textOf(flag)}`
      t.ok(text.includes(entry), `${name}: ${entry}`)
    }
  }
})
