import { flagsByValues, namesOf, type Place, wordsPattern } from './places.ts'

const COMMAND_OF: Readonly<Record<string, string>> = {
  files: '_files; return',
  folders: '_files -/; return',
  any: '_message value; return',
}

/** Returns the script that completes `sextant` in zsh. It is sourced, or is a file `_sextant` of `fpath`. */
export function zshScript(places: readonly Place[]): string {
  const values = [...flagsByValues(places)].map(([values, flags]) => {
    return `    (${flags.join(' | ')}) ${COMMAND_OF[values] ?? `compadd -- ${values}; return`} ;;`
  })
  return `#compdef sextant
# Completes sextant in zsh. To load it: source <(sextant completion zsh)
_sextant() {
  local at=sextant word flag=\${words[CURRENT-1]}
  local -a next flags open
  for word in "\${(@)words[2,CURRENT-1]}"; do
    case "$at $word" in
      (${wordsPattern(places)}) at="$at $word" ;;
    esac
  done
  if [[ $PREFIX == [-+]*=* ]]; then
    flag=\${PREFIX%%=*}
    compset -P '*='
  fi
  case "$at $flag" in
${values.join('\n')}
  esac
  case "$at" in
${places.flatMap(linesOf).join('\n')}
  esac
  _describe -t words word next
  _describe -o flag flags
  _describe -o flag open -S ''
}
if [ "\${funcstack[1]}" = _sextant ]; then _sextant "$@"; else compdef _sextant sextant; fi
`
}

function linesOf({ words, next, flags }: Place): string[] {
  const all = flags.flatMap((flag) =>
    namesOf(flag).map((name): [string, string] => [name, flag.help]),
  )
  return [
    `    ('${words}')`,
    `      next=(${entriesOf([...next])})`,
    `      flags=(${entriesOf(all.filter(([name]) => !name.endsWith('=')))})`,
    `      open=(${entriesOf(all.filter(([name]) => name.endsWith('=')))}) ;;`,
  ]
}

/** `'NAME:HELP' …`. */
function entriesOf(entries: readonly (readonly [name: string, help: string])[]): string {
  return entries
    .map(([name, help]) => `'${(help === '' ? name : `${name}:${help}`).replaceAll("'", "'\\''")}'`)
    .join(' ')
}
