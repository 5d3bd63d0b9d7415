import { flagsByValues, namesOf, type Place, wordsPattern } from './places.ts'

const COMMAND_OF: Readonly<Record<string, string>> = {
  files: 'mapfile -t COMPREPLY < <(compgen -f -- "$cur"); compopt -o filenames 2>/dev/null; return',
  folders:
    'mapfile -t COMPREPLY < <(compgen -d -- "$cur"); compopt -o filenames 2>/dev/null; return',
  any: 'return',
}

/** Returns the script that completes `sextant` in bash 4 and later. */
export function bashScript(places: readonly Place[]): string {
  const values = [...flagsByValues(places)].map(([values, flags]) => {
    return `  ${flags.join(' | ')}) ${COMMAND_OF[values] ?? `names='${values}'`} ;;`
  })
  const names = places.map(({ words, next, flags }) => {
    return `    '${words}') names='${[...next.keys(), ...flags.flatMap(namesOf)].join(' ')}' ;;`
  })
  return `# Completes sextant in bash. To load it: source <(sextant completion bash)
_sextant() {
  local at=sextant word names= cur=\${COMP_WORDS[COMP_CWORD]} before=$((COMP_CWORD - 1))
  # In FLAG=VALUE, the sign is a word.
  if [ "$cur" = = ]; then cur=; elif [ "\${COMP_WORDS[before]}" = = ]; then before=$((before - 1)); fi
  COMPREPLY=()
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$at $word" in
    ${wordsPattern(places)}) at="$at $word" ;;
    esac
  done
  case "$at \${COMP_WORDS[before]}" in
${values.join('\n')}
  *)
    case "$at" in
${names.join('\n')}
    esac ;;
  esac
  mapfile -t COMPREPLY < <(compgen -W "$names" -- "$cur")
  [ "\${#COMPREPLY[@]}" != 1 ] || [ "\${COMPREPLY[0]%=}" = "\${COMPREPLY[0]}" ] || compopt -o nospace 2>/dev/null
}
complete -F _sextant sextant
`
}
