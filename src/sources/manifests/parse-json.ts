import { parseDocuments, YamlProblem } from '../../yaml/parse-document.ts'
import type { YamlValue } from '../../yaml/scan-block-yaml.ts'
import { findDeepBracket } from '../../yaml/scan-json.ts'

/**
 * Deeper JSON is refused. No resource nests so deep, and a megabyte of brackets takes 0.2 seconds
 * to parse.
 */
const JSON_DEPTH_MAX = 512

/** Parses a manifest that is JSON. */
export function parseJson(text: string): YamlValue | YamlProblem {
  const deepAt = findDeepBracket(text, JSON_DEPTH_MAX)
  if (deepAt !== -1)
    return new YamlProblem('nested too deep', countLines(text.slice(0, deepAt)) + 1)
  try {
    return JSON.parse(text) as YamlValue
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    // V8 quotes part of the text after a comma.
    const reason = error.message.replace(/, "[\s\S]*$/, ' in JSON')
    return new YamlProblem(reason, lineOfSyntaxError(error, text))
  }
}

/**
 * Returns the line of the offset in V8's message. Without an offset, returns the line at which the
 * YAML parser fails, because JSON is a subset of YAML.
 */
function lineOfSyntaxError(error: SyntaxError, text: string): number {
  const position = /at position (\d+)/.exec(error.message)?.[1]
  if (position !== undefined) return text.slice(0, Number(position)).split('\n').length
  const values = parseDocuments(text)
  return values instanceof YamlProblem ? values.line : 1
}

/** Returns the number of line ends. */
export function countLines(text: string): number {
  let count = 0
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) count++
  return count
}
