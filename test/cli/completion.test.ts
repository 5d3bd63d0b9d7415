import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { namesOf, placesOf } from '../../src/cli/completion/places.ts'
import { writeCompletions } from '../../src/cli/completion.ts'
import { needs, run } from '../support/peer.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'

const folder = temporaryDirectory(t)
t.before(async () => {
  await writeCompletions(folder)
  mkdirSync(join(folder, 'folder'))
  writeFileSync(join(folder, 'two words'), '')
})

/** Completes the last word of each line; `tried` is a function of the shell that does it, and prints a line. */
async function complete(shell: string, setup: string, lines: readonly string[]): Promise<string[]> {
  const calls = lines.map((line) => `try sextant ${line}`)
  const script = ['cd "$0"', setup, ...calls].join('\n')
  const { code, stdout, stderr } = await run(shell, ['-c', script, folder])
  if (code !== 0 || stderr !== '') throw new Error(`${shell}: ${code} ${stderr}`)
  return stdout.trimEnd().split('\n')
}

/** The words of a line `A,B,` in one order. */
const sorted = (line: string): string => line.replace(/,$/, '').split(',').sort().join(',')

const BASH = `
source bash/sextant
try() {
  COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
  _sextant
  printf '%s,' "\${COMPREPLY[@]}"
  echo
}`

/** The functions of zsh's completion system that the script calls. */
const ZSH = `
compdef() { :; }
_describe() { [ "$1" != -t ] || shift; shift 2; for entry in "\${(@P)1}"; do printf '%s,' "\${entry%%:*}"; done; }
_files() { printf "files$1,"; }
_message() { :; }
compadd() { shift; printf '%s,' "$@"; }
compset() { PREFIX=\${PREFIX#*=}; }
source zsh/_sextant
try() {
  words=("$@") CURRENT=$# PREFIX=\${@[-1]}
  _sextant
  echo
}`

const CASES: readonly { line: string; bash: string; zsh?: string }[] = [
  { line: 'se', bash: 'serve' },
  { line: '-ver', bash: '-version' },
  { line: 'help com', bash: 'completion' },
  { line: 'serve -conf f', bash: 'fish,folder', zsh: 'files' },
  { line: 'serve -conf two', bash: 'two words', zsh: 'files' },
  { line: 'check --manifests f', bash: 'fish,folder', zsh: 'files-/' },
  { line: 'check --manifests two', bash: '', zsh: 'files-/' },
  { line: 'serve -p ""', bash: '', zsh: '' },
  { line: 'status -o ""', bash: 'json,table,wide,yaml', zsh: 'json,table,wide,yaml' },
  { line: 'completion z', bash: 'zsh' },
  { line: 'fqdn cache c', bash: 'clean' },
  { line: 'query +sub', bash: '+subnet=' },
  { line: 'serve -conf serve -pl', bash: '-plugins' },
  { line: 'nothing ser', bash: 'serve' },
]

t.test('bash completes a word', needs('bash'), async (t) => {
  const lines = CASES.map(({ line }) => line)
  // As bash splits FLAG=VALUE.
  const more = ['status -o =', 'status -o = j', 'serve -conf = fo']
  const want = [...CASES.map(({ bash }) => bash), 'json,table,wide,yaml', 'json', 'folder']
  const got = await complete('bash', BASH, [...lines, ...more])
  t.strictSame(got.map(sorted), want)
})

t.test('zsh completes a value', needs('zsh'), async (t) => {
  const cases = CASES.flatMap(({ line, zsh }) => (zsh === undefined ? [] : [{ line, zsh }]))
  const lines = [...cases.map(({ line }) => line), 'status -o=j', 'serve -conf=f']
  const want = [...cases.map(({ zsh }) => zsh), 'json,table,wide,yaml', 'files']
  const got = await complete('zsh', ZSH, lines)
  t.strictSame(got.map(sorted), want)
})

/** The lines that end with each place, and all that can follow. */
async function allPlaces(): Promise<{ lines: string[]; want: string[] }> {
  const places = await placesOf()
  const lines = places.map(({ words }) => words.slice('sextant '.length))
  const want = places.map(({ next, flags }) =>
    [...next.keys(), ...flags.flatMap(namesOf)].sort().join(','),
  )
  return { lines, want }
}

for (const [shell, setup] of [
  ['bash', BASH],
  ['zsh', ZSH],
] as const) {
  t.test(`${shell} completes each word and flag of each command`, needs(shell), async (t) => {
    const { lines, want } = await allPlaces()
    const asked = lines.map((line) => `${line} ""`)
    t.strictSame((await complete(shell, setup, asked)).map(sorted), want)
  })
}

t.test('fish completes each word and flag of each command', needs('fish'), async (t) => {
  const places = await placesOf()
  const script = `
    cd $argv[1]; source fish/sextant.fish
    for line in $argv[2..-1]
      for start in '' - -- +
        complete -C "$line $start" | string replace -r '\\t.*' ''
      end | string join ,
    end
    complete -C 'sextant check --manifests fo'
    complete -C 'sextant serve -conf two'
    complete -C 'sextant status -o '`
  const lines = places.map(({ words }) => words)
  const { stdout, stderr } = await run('fish', ['--no-config', '-c', script, folder, ...lines])
  t.equal(stderr, '')
  const got = stdout.trimEnd().split('\n')
  const { want } = await allPlaces()
  const unique = (line: string): string => [...new Set(sorted(line).split(','))].join(',')
  t.strictSame(got.slice(0, want.length).map(unique), want)
  t.match(got.slice(want.length).join('\n'), /^folder\/.*\ntwo words\njson\t/)
})
