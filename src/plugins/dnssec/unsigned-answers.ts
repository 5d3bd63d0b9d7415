import type { DenialKind } from '../../signing/zone-keys.ts'

/** Directives with names of their own, which no chain of NSEC records has. */
const FRONTS: readonly string[] = ['hosts', 'template']
/** Directives whose zones are signed in their images. */
const SOURCES: readonly string[] = ['kuadrant', 'file', 'auto', 'secondary']

/**
 * Returns a warning of answers that are not signed; '' = none. `directives`: those of the block, in the order in which
 * they answer.
 */
export function unsignedAnswers(directives: readonly string[], denial: DenialKind): string {
  if (denial === 'compact') return ''
  const source = directives.findIndex((name) => SOURCES.includes(name))
  const front = directives.slice(0, Math.max(0, source)).find((name) => FRONTS.includes(name))
  if (front === undefined) return ''
  const effect = `answers of ${front} for names that the zones of ${directives[source]} do not have are not signed`
  return `${effect}, and resolvers that validate reject them; use \`denial compact\`, or move ${front} to another block`
}
