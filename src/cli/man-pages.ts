import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { VERSION } from '../base/version.ts'
import { COMMON_FLAGS, type Flag, formsOf, linesOf, textOf } from './args.ts'
import { COMMANDS } from './commands.ts'

const SUMMARY = 'authoritative DNS server that chooses answers by client location and weight'

/**
 * For a release: writes `sextant.1` and a page for each command, such as `sextant-serve.1`, to `folder`. Their date is
 * that of the environment variable SOURCE_DATE_EPOCH, else today.
 */
export async function writeManPages(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true })
  for (const [name, text] of await manPages()) await writeFile(join(folder, name), text)
}

async function manPages(): Promise<Map<string, string>> {
  const pages = new Map([['sextant.1', pageOf('sextant', SUMMARY, overview())]])
  for (const { name, help, args } of COMMANDS) {
    const { usage, flags } = await args()
    const lines = [
      ...synopsis(linesOf(usage)),
      ...options([...flags, ...COMMON_FLAGS]),
      '.SH SEE ALSO',
      '.BR sextant (1)',
    ]
    pages.set(`sextant-${name}.1`, pageOf(`sextant-${name}`, help, lines))
  }
  return pages
}

function pageOf(name: string, help: string, lines: readonly string[]): string {
  const seconds = process.env.SOURCE_DATE_EPOCH
  const date = seconds === undefined ? new Date() : new Date(Number(seconds) * 1000)
  const head = [
    `.TH ${roff(name.toUpperCase())} 1 ${date.toISOString().slice(0, 10)} "Sextant ${VERSION}"`,
    '.SH NAME',
    `${roff(name)} \\- ${roff(help)}`,
  ]
  return `${[...head, ...lines].join('\n')}\n`
}

function overview(): string[] {
  const commands = COMMANDS.flatMap(({ name, help }) => [
    '.TP',
    `.BR sextant\\-${roff(name)} (1)`,
    roff(help),
  ])
  return [
    ...synopsis(['COMMAND [FLAG]...', 'help [COMMAND]']),
    '.SH DESCRIPTION',
    'Without a command, the flags are those of',
    '.BR sextant\\-serve (1).',
    'A flag has one dash or two.',
    '.SH COMMANDS',
    ...commands,
  ]
}

function synopsis(usage: readonly string[]): string[] {
  const lines = usage.flatMap((line, i) => [
    ...(i === 0 ? [] : ['.br']),
    `\\fBsextant\\fR ${roff(line)}`,
  ])
  return ['.SH SYNOPSIS', ...lines]
}

function options(flags: readonly Flag[]): string[] {
  const lines = flags.flatMap((flag) => {
    const forms = formsOf(flag).map((form) => `\\fB${roff(form)}\\fR`)
    return ['.TP', forms.join(', '), roff(textOf(flag))]
  })
  return ['.SH OPTIONS', ...lines]
}

/** Returns text that a line of roff prints as it is. */
function roff(text: string): string {
  const plain = text.replaceAll('\\', '\\e').replaceAll('-', '\\-').replaceAll('~', '\\(ti')
  return plain
    .replaceAll('^', '\\(ha')
    .replaceAll('`', '\\(ga')
    .replaceAll("'", '\\(aq')
    .replace(/^\./, '\\&.')
}
