import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { on } from '../../../src/plugins/on/setup.ts'
import { splitCommand } from '../../../src/plugins/on/split-command.ts'
import { SetUp, setupError } from '../../support/setup.ts'
import { until } from '../../support/until.ts'

t.test('words of a command', async (t) => {
  const table: { line: string; want: string[] | undefined }[] = [
    { line: '', want: [] },
    { line: ' a  b\tc ', want: ['a', 'b', 'c'] },
    { line: `sh -c 'echo "a  b"' "c 'd'"`, want: ['sh', '-c', 'echo "a  b"', "c 'd'"] },
    { line: `a\\ b 'c\\d' "e\\"f"`, want: ['a b', 'c\\d', 'e"f'] },
    { line: `a""b '' ""`, want: ['ab', '', ''] },
    { line: '$HOME * #', want: ['$HOME', '*', '#'] },
    { line: `a 'b`, want: undefined },
    { line: 'a "b', want: undefined },
    { line: 'a\\', want: undefined },
  ]
  for (const { line, want } of table) t.strictSame(splitCommand(line), want, line)
})

t.test('programs run at their event, one after the other', async (t) => {
  const directory = t.testdir()
  const file = join(directory, 'out')
  const append = (text: string) => `"sh -c 'echo ${text} >> ${file}'"`
  const setUp = new SetUp(
    on,
    `on startup ${append('first')}
     on startup sh -c "'exit 3'"
     on STARTUP ${append('second')}
     on startup /nonexistent/program
     on shutdown ${append('last')}`,
  )
  const written = () => (existsSync(file) ? readFileSync(file, 'utf8') : '')
  await setUp.startUp()
  t.equal(written(), '', 'not before the server answers')
  await setUp.start()
  const failed = () => setUp.lines.filter((line) => line.includes('[ERROR]'))
  await until(() => failed().length === 2, 'all programs')
  t.equal(written(), 'first\nsecond\n')
  t.match(failed()[0], /startup: sh ended with status 3$/)
  t.match(failed()[1], /startup: \/nonexistent\/program was not started: .*ENOENT/)
  await setUp.stop()
  t.equal(written(), 'first\nsecond\n', 'a reload is not a shutdown')
  await setUp.exit()
  t.equal(written(), 'first\nsecond\nlast\n', 'the server waits for it')
})

t.test('a program in the background is not waited for', async (t) => {
  const directory = t.testdir()
  const go = join(directory, 'go')
  const end = join(directory, 'end')
  const waiting = `"sh -c 'until test -e ${go}; do :; done; echo > ${end}' &"`
  const setUp = new SetUp(on, `on shutdown ${waiting}\n on shutdown "sh -c 'echo > ${go}'"`)
  await setUp.exit()
  await until(() => existsSync(end), 'the program in the background')
})

t.test('arguments', async (t) => {
  const table = [
    { given: 'on', want: 'Corefile:1 .* Wrong argument count' },
    { given: 'on startup', want: 'Corefile:1 .* no command after startup' },
    { given: 'on startup &', want: 'Corefile:1 .* no command after startup' },
    { given: 'on reload true', want: 'Corefile:1 .* unknown event "reload"' },
    { given: `on startup "sh -c 'x"`, want: 'Corefile:1 .* a quote has no end' },
  ]
  for (const { given, want } of table) t.match(setupError(on, given), new RegExp(want), given)
  const setUp = new SetUp(on, 'on certrenew true')
  t.match(setUp.warnings.join(), /certrenew never happens/)
})
