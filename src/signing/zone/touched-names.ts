import { FLAG_CHILDREN, FLAG_CUT, FLAG_DNAME } from '../../zone/image/layout.ts'
import { keyOwner, parentKey } from './canonical-key.ts'
import type { ZoneView } from './zone-view.ts'

const HIDING_FLAGS = FLAG_CUT | FLAG_DNAME

/**
 * Adds to `touched` all names below those that became, or were, a zone cut or the owner of a DNAME: they are signed
 * now, or no longer. `old`: the published version.
 */
export function addHiddenNames(
  view: ZoneView,
  old: ZoneView | undefined,
  touched: Set<string>,
): void {
  const roots = new Set<string>()
  for (const key of touched) {
    const owner = keyOwner(key, view.apex)
    const flags = view.flags(view.find(owner))
    const before = old?.flags(old.find(owner)) ?? 0
    const isChanged = ((flags & HIDING_FLAGS) !== 0) !== ((before & HIDING_FLAGS) !== 0)
    if (isChanged && ((flags | before) & FLAG_CHILDREN) !== 0) roots.add(key)
  }
  if (roots.size === 0) return
  for (const node of view.nodes()) {
    if (view.bodyOf(node) === 0) continue
    const key = view.keyOf(node)
    for (let above = key; above !== ''; ) {
      above = parentKey(above)
      if (!roots.has(above)) continue
      touched.add(key)
      break
    }
  }
}
