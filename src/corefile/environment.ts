/** Environment variables, as in `process.env`. */
export type Environment = Readonly<Record<string, string | undefined>>

/** Most substitutions in one token: a value may itself name a variable, even its own. */
const SUBSTITUTIONS_MAX = 100
const TEXT_MAX = 65_536

/**
 * Replaces `{%NAME%}`, then `{$NAME}`, by the variables' values. An unset variable is empty, and
 * `onUnset` is called with it (`{$NAME}`). An empty name (`{$}`) leaves the rest unchanged. Returns
 * undefined if the substitutions do not end.
 */
export function substitute(
  text: string,
  env: Environment,
  onUnset: (variable: string) => void = () => {},
): string | undefined {
  if (!text.includes('{')) return text
  const percents = substituteForm(text, ['{%', '%}'], env, onUnset)
  return percents === undefined ? undefined : substituteForm(percents, ['{$', '}'], env, onUnset)
}

function substituteForm(
  text: string,
  [opening, closing]: readonly [string, string],
  env: Environment,
  onUnset: (variable: string) => void,
): string | undefined {
  let result = text
  for (let count = 0; count < SUBSTITUTIONS_MAX && result.length <= TEXT_MAX; count++) {
    const start = result.indexOf(opening)
    if (start === -1) return result
    const nameAt = start + opening.length
    const end = result.indexOf(closing, start)
    // As in CoreDNS, the search for `end` starts at the first octet of the opening.
    if (end === -1 || end <= nameAt) return result
    const variable = result.slice(start, end + closing.length)
    const value = env[result.slice(nameAt, end)]
    if (value === undefined) onUnset(variable)
    result = result.replaceAll(variable, () => value ?? '')
  }
  return undefined
}
