import { lowerName, scanName } from '../name/name.ts'

/**
 * Returns the search path of a file in the form of resolv.conf(5): the domains of the last line `search` or
 * `domain`, in lower-case wire form. Omits what is not a domain name.
 */
export function scanSearchPath(text: string): readonly Uint8Array[] {
  let domains: readonly string[] = []
  for (const line of text.split('\n')) {
    const [keyword = '', ...words] = line.trim().split(/\s+/)
    if (keyword === 'search') domains = words
    if (keyword === 'domain') domains = words.slice(0, 1)
  }
  return domains
    .map((domain) => scanName(domain.endsWith('.') ? domain : `${domain}.`))
    .filter((name) => name !== undefined)
    .map((name) => lowerName(name))
}
