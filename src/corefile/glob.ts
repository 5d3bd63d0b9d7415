import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { LinearRegExp } from '../base/re2/linear-regexp.ts'
import { statIfAny } from '../base/stat.ts'

/**
 * Paths that match `pattern`, sorted. `*` matches any run of characters, `?` matches one; neither
 * matches `/`. `pattern`: absolute. Directories that can't be read match nothing.
 */
export function glob(pattern: string): string[] {
  let found = ['/']
  for (const part of pattern.split('/').filter((part) => part !== '')) {
    const wild = /[*?]/.test(part) ? partPattern(part) : undefined
    found = found.flatMap((folder) => {
      if (wild === undefined) return [join(folder, part)].filter(exists)
      return entries(folder)
        .filter((name) => wild.test(name))
        .map((name) => join(folder, name))
    })
  }
  return found.sort()
}

function partPattern(part: string): LinearRegExp {
  const escaped = part.replace(/[.+^${}()|[\]\\]/g, '\\$&')
  return new LinearRegExp(`(?s)^${escaped.replaceAll('*', '.*').replaceAll('?', '.')}$`)
}

function exists(path: string): boolean {
  return statIfAny(path) !== undefined
}

function entries(folder: string): string[] {
  if (!(statIfAny(folder)?.isDirectory() ?? false)) return []
  return readdirSync(folder)
}
