import { useEffect, useState } from 'preact/hooks'
import type { Store } from './store.ts'

/** Returns the value of a store, and renders again when it changes. */
export function useStore<T>(store: Store<T>): T {
  const [, render] = useState(0)
  useEffect(() => store.follow(() => render((count) => count + 1)), [store])
  return store.value
}
