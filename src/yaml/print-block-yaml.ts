import { printJsonText } from '../base/json-text.ts'
import type { YamlValue } from './scan-block-yaml.ts'

/** Text that is a string without quotes, in YAML 1.1 too: words and names, with single blanks or colons inside. */
const PLAIN = /^[A-Za-z_/][\w./,+=-]*(?:[ :][\w./,+=-]+)*$/
const ADDRESS = /^\d{1,3}(?:\.\d{1,3}){3}$/
/** Texts that readers of YAML 1.1 take for a boolean, null or a number. */
const RESERVED = /^(?:true|false|null|yes|no|on|off|y|n|e[-+]?\d+)$/i
const INDENT = '  '

/**
 * Returns the lines of a mapping as YAML in block style, which is the same data in YAML 1.1 and 1.2. No line has
 * characters that control a terminal.
 */
export function printBlockYaml(value: object): string[] {
  const lines: string[] = []
  printNode(value as YamlValue, '', '', lines)
  return lines
}

/** Prints a node behind `head`: the key or the hyphen before it. `indent`: of its further lines. */
function printNode(value: YamlValue, head: string, indent: string, lines: string[]): void {
  if (typeof value !== 'object' || value === null) {
    lines.push(`${head}${printScalar(value)}`)
    return
  }
  const isList = Array.isArray(value)
  const entries = Object.entries(value as object).filter(([, item]) => item !== undefined)
  if (entries.length === 0) {
    lines.push(`${head}${isList ? '[]' : '{}'}`)
    return
  }
  // A collection begins behind a hyphen, and below a key.
  let before = head.endsWith('- ') || head === '' ? head : indent
  if (before !== head) lines.push(head.trimEnd())
  for (const [name, item] of entries as [string, YamlValue][]) {
    const key = isList ? '- ' : `${printScalar(name)}: `
    printNode(item, before + key, indent + INDENT, lines)
    before = indent
  }
}

function printScalar(value: string | number | boolean | null): string {
  if (typeof value !== 'string') return String(value)
  const isPlain = (PLAIN.test(value) && !RESERVED.test(value)) || ADDRESS.test(value)
  return isPlain ? value : printJsonText(value)
}
