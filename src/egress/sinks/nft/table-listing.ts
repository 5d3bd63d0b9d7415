/** A table as `nft list table` prints it. */
export interface TableListing {
  /** Number of rules of each chain. */
  readonly chains: ReadonlyMap<string, number>
  /** Elements of each set or map, as nft prints them. */
  readonly elements: ReadonlyMap<string, readonly string[]>
}

const ELEMENTS = 'elements = {'

/** Parses a listing, which may have other tables too. Returns undefined if it does not have the table. */
export function scanListing(text: string, table: string): TableListing | undefined {
  const lines = text.split('\n')
  const start = lines.indexOf(`table inet ${table} {`)
  if (start < 0) return undefined
  const chains = new Map<string, number>()
  const elements = new Map<string, readonly string[]>()
  for (let at = start + 1; at < lines.length && lines[at] !== '}'; at++) {
    const [, kind, name] = /^\t(chain|set|map) (\S+) \{/.exec(lines[at]!) ?? []
    if (name === undefined) continue
    const end = lines.indexOf('\t}', at)
    if (end < 0) break
    const body = lines.slice(at + 1, end)
    if (kind === 'chain') chains.set(name, countRules(body))
    else elements.set(name, elementsOf(body))
    at = end
  }
  return { chains, elements }
}

/** A rule has several lines if it has a long set. */
function countRules(lines: readonly string[]): number {
  let rules = 0
  let depth = 0
  for (const line of lines) {
    const isRule = depth === 0 && !/^\t\t(type \S+ hook |comment |$)/.test(line)
    if (isRule) rules++
    depth += line.split('{').length - line.split('}').length
  }
  return rules
}

function elementsOf(lines: readonly string[]): readonly string[] {
  const first = lines.findIndex((line) => line.includes(ELEMENTS))
  if (first < 0) return []
  const text = lines.slice(first).join('')
  const start = text.indexOf(ELEMENTS) + ELEMENTS.length
  const list = text.slice(start, text.lastIndexOf('}'))
  return list.split(',').map((element) => element.trim())
}
