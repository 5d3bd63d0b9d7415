import type { Flag } from '../args.ts'
import { namesOf, type Place, valuesOf, wordsPattern } from './places.ts'

/** Returns the script that completes `sextant` in fish. */
export function fishScript(places: readonly Place[]): string {
  const lines = places.flatMap(({ words, next, flags }) => [
    ...[...next].map(([word, help]) => lineOf(words, `-a ${quote(word)}`, help)),
    ...flags.map((flag) => lineOf(words, optionOf(flag), flag.help)),
  ])
  return `# Completes sextant in fish. To load it: sextant completion fish | source
function __sextant_at
    set -l at sextant
    for word in (commandline -opc)[2..-1]
        switch "$at $word"
            case ${wordsPattern(places).replaceAll(' | ', ' ')}
                set at "$at $word"
        end
    end
    test "$at" = "$argv"
end
complete -c sextant -f
${lines.join('\n')}
`
}

function lineOf(words: string, option: string, help: string): string {
  const about = help === '' ? '' : ` -d ${quote(help)}`
  return `complete -c sextant -n '__sextant_at ${words}' ${option}${about}`
}

function optionOf(flag: Flag): string {
  const names = namesOf(flag)
  if (flag.name.startsWith('+')) return `-a ${quote(names.join(' '))}`
  return [...names.map(nameOf), ...argumentOf(flag)].join(' ')
}

/** `--records` is `-l records`, `-p` is `-s p`, and `-conf` is `-o conf`. */
function nameOf(name: string): string {
  if (name.startsWith('--')) return `-l ${name.slice(2)}`
  return name.length === 2 ? `-s ${name.slice(1)}` : `-o ${name.slice(1)}`
}

function argumentOf(flag: Flag): string[] {
  const values = valuesOf(flag)
  if (values === undefined) return []
  if (values === 'any') return ['-x']
  if (values === 'files') return ['-r', '-F']
  if (values === 'folders') return ['-x', "-a '(__fish_complete_directories)'"]
  return ['-x', `-a ${quote(values.join(' '))}`]
}

function quote(text: string): string {
  return `'${text.replace(/['\\]/g, '\\$&')}'`
}
