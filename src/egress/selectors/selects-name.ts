import type { HashedName } from '../../dns/name/hashed-name.ts'
import { isPatternLabel } from './glob.ts'
import type { Selector } from './selector.ts'

/** True if the first `count` labels of the name are what the selector has before its suffix. @hot */
export function selectsLabels(selector: Selector, name: HashedName, count: number): boolean {
  switch (selector.kind) {
    case 'exact':
      return count === 0
    case 'one-label':
      return count === 1
    case 'many-label':
      return count >= 1
    case 'all':
      return arePatternLabels(name, count)
    case 'pattern':
      break
  }
  const { globs, isDeep } = selector
  const deep = count - globs.length
  if (isDeep ? deep < 1 : deep !== 0) return false
  for (let i = 0; i < globs.length; i++) {
    if (!globs[i]!.matches(name.qname, name.labelOffset[deep + i]!)) return false
  }
  return arePatternLabels(name, deep)
}

function arePatternLabels(name: HashedName, count: number): boolean {
  for (let i = 0; i < count; i++) {
    if (!isPatternLabel(name.qname, name.labelOffset[i]!)) return false
  }
  return true
}
