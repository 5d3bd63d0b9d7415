import type { YamlValue } from './scan-block-yaml.ts'

/** Deeper documents are left to the complete parser, which has its own bound. */
const DEPTH_MAX = 32

const QUOTE = 0x22
const COLON = 0x3a
const BACKSLASH = 0x5c
const BRACKET_OPEN = 0x5b
const BRACKET_CLOSE = 0x5d
const BRACE_OPEN = 0x7b
const BRACE_CLOSE = 0x7d
const MARKER = /^---[ \n\r]/

/**
 * Returns the value of a YAML document that is a JSON mapping, which is YAML too (YAML 1.2.2
 * section 1.3). Undefined = the complete parser must read it. `text`: one document, with or without
 * its `---`. The result is the same as that of the complete parser. Therefore duplicate keys are
 * given up, which JSON.parse would accept.
 */
export function scanJson(text: string): YamlValue | undefined {
  const start = MARKER.test(text) ? 4 : 0
  const json = text.slice(start).trim()
  if (json.charCodeAt(0) !== BRACE_OPEN) return undefined
  const keys = countKeys(json)
  if (keys === -1) return undefined
  const value = parseJson(json)
  return value !== undefined && countEntries(value) === keys ? value : undefined
}

/** Returns the number of keys in all mappings of a JSON text; -1 = they nest too deeply. */
function countKeys(json: string): number {
  let keys = 0
  let depth = 0
  for (let i = 0; i < json.length; i++) {
    const c = json.charCodeAt(i)
    if (c === QUOTE) {
      i = endOfString(json, i + 1)
    } else if (c === COLON) keys++
    else if (c === BRACE_OPEN || c === BRACKET_OPEN) {
      if (++depth > DEPTH_MAX) return -1
    } else if (c === BRACE_CLOSE || c === BRACKET_CLOSE) depth--
  }
  return keys
}

/**
 * Returns the offset of the first bracket that nests deeper than `depthMax`; -1 = none. Brackets in
 * strings do not count.
 */
export function findDeepBracket(json: string, depthMax: number): number {
  let depth = 0
  for (let i = 0; i < json.length; i++) {
    const c = json.charCodeAt(i)
    if (c === QUOTE) i = endOfString(json, i + 1)
    else if (c === BRACE_OPEN || c === BRACKET_OPEN) {
      if (++depth > depthMax) return i
    } else if (c === BRACE_CLOSE || c === BRACKET_CLOSE) depth--
  }
  return -1
}

/**
 * Returns the offset of the quote that ends a string which began before `at`; without a quote, the
 * end of the text.
 */
function endOfString(json: string, at: number): number {
  let end = json.indexOf('"', at)
  while (end !== -1 && json.charCodeAt(end - 1) === BACKSLASH) {
    let first = end - 1
    while (first > at && json.charCodeAt(first - 1) === BACKSLASH) first--
    if ((end - first) % 2 === 0) break
    end = json.indexOf('"', end + 1)
  }
  return end === -1 ? json.length : end
}

function parseJson(json: string): YamlValue | undefined {
  try {
    return JSON.parse(json) as YamlValue
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    return undefined
  }
}

function countEntries(value: YamlValue): number {
  if (typeof value !== 'object' || value === null) return 0
  let count = 0
  if (Array.isArray(value)) for (const item of value) count += countEntries(item)
  else for (const item of Object.values(value)) count += 1 + countEntries(item)
  return count
}
