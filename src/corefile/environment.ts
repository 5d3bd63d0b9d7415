/** Environment variables, as in `process.env`. */
export type Environment = Readonly<Record<string, string | undefined>>

/** Most substitutions in one token: a value may itself name a variable, even its own. */
const SUBSTITUTIONS_MAX = 100
const TEXT_MAX = 65_536

/**
 * Replaces `{%NAME%}`, then `{$NAME}`, by the variables' values; an unset one is empty. An empty
 * name (`{$}`) leaves the rest as it is. Returns undefined where substituting does not come to an end.
 */
export function substitute(text: string, env: Environment): string | undefined {
  if (!text.includes('{')) return text
  const percents = substituteForm(text, '{%', '%}', env)
  return percents === undefined ? undefined : substituteForm(percents, '{$', '}', env)
}

function substituteForm(
  text: string,
  opening: string,
  closing: string,
  env: Environment,
): string | undefined {
  let result = text
  for (let count = 0; count < SUBSTITUTIONS_MAX && result.length <= TEXT_MAX; count++) {
    const start = result.indexOf(opening)
    if (start === -1) return result
    const nameAt = start + opening.length
    const end = result.indexOf(closing, start)
    // As CoreDNS: `end` is looked for from the opening's own first octet on.
    if (end === -1 || end <= nameAt) return result
    const value = env[result.slice(nameAt, end)] ?? ''
    result = result.replaceAll(result.slice(start, end + closing.length), () => value)
  }
  return undefined
}
