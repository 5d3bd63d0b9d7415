import { ALLOW_SETS } from './allowed-element.ts'
import { type Element, SLACK_MS } from './element-store.ts'

const REMOVED = Number.NEGATIVE_INFINITY

interface ElementWrite {
  readonly statements: readonly string[]
  /** End of the timeout of each element once the statements are in force; -Infinity = it is removed. */
  readonly written: ReadonlyMap<Element, number>
}

/**
 * The statements that bring elements to what is wanted. `isEmpty`: the sets have no elements.
 * `canRefresh`: adding an element again changes its timeout, as in the kernel since 6.12.
 */
export function writeElements(
  table: string,
  elements: Iterable<Element>,
  nowMs: number,
  { isEmpty, canRefresh }: { readonly isEmpty: boolean; readonly canRefresh: boolean },
): ElementWrite {
  const written = new Map<Element, number>()
  const removed = new Map<string, string[]>()
  const added = new Map<string, string[]>()
  for (const element of elements) {
    const { set, text, endMs, kernelMs } = element
    const isWanted = endMs !== REMOVED
    const isRefresh = canRefresh && kernelMs < Number.POSITIVE_INFINITY
    if (!isEmpty && !(isWanted && isRefresh)) put(removed, set, text)
    if (!isWanted) {
      written.set(element, REMOVED)
      continue
    }
    const seconds = Math.max(1, Math.ceil((endMs + SLACK_MS - nowMs) / 1000))
    // Without an expiration, the kernel ignores an element with the timeout that it has already.
    const expiration = isEmpty || !isRefresh ? '' : ` expires ${seconds}s`
    put(added, set, `${text} timeout ${seconds}s${expiration}`)
    written.set(element, nowMs + seconds * 1000)
  }
  const statements: string[] = []
  const print = (verb: string, set: string, list: readonly string[] | undefined): void => {
    if (list === undefined) return
    statements.push(`${verb} element inet ${table} ${set} { ${list.join(', ')} }`)
  }
  for (const set of ALLOW_SETS) {
    // Removing an element that is not there would be an error: the timeout may have passed.
    print('add', set, removed.get(set))
    print('delete', set, removed.get(set))
    print('add', set, added.get(set))
  }
  return { statements, written }
}

function put(lists: Map<string, string[]>, set: string, text: string): void {
  const list = lists.get(set)
  if (list === undefined) lists.set(set, [text])
  else list.push(text)
}
