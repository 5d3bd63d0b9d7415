import { Store } from './store.ts'
import { useStore } from './use-store.ts'

const search = new Store(window.location.search)
window.addEventListener('popstate', () => search.set(window.location.search))

/** Parameters of the address by name; undefined and '' = absent. */
type Changes = Readonly<Record<string, string | undefined>>

/** The parameters of the address: the state of the page, to share. */
export interface Parameters {
  /** '' = absent. */
  readonly get: (name: string) => string
  /** Changes parameters, and keeps the others. A new entry of the history, unless `replaces`. */
  readonly set: (changes: Changes, replaces?: boolean) => void
}

export function useParameters(): Parameters {
  const current = new URLSearchParams(useStore(search))
  return { get: (name) => current.get(name) ?? '', set: setParameters }
}

/** The server whose views the page shows; '' = the one that it comes from. */
export function shownServer(): string {
  return new URLSearchParams(search.value).get('server') ?? ''
}

/** Returns the address of a view of the same server, for links. */
export function addressOf(view: string, changes: Changes = {}): string {
  return change(new URLSearchParams(), { view, server: shownServer(), ...changes })
}

/** Opens what a link of `addressOf` leads to, without loading the page again. */
export function openAddress(address: string): void {
  window.history.pushState(null, '', address)
  search.set(window.location.search)
}

function setParameters(changes: Changes, replaces = false): void {
  const address = change(new URLSearchParams(window.location.search), changes)
  if (address === window.location.search) return
  if (replaces) window.history.replaceState(null, '', address)
  else window.history.pushState(null, '', address)
  search.set(window.location.search)
}

function change(parameters: URLSearchParams, changes: Changes): string {
  for (const [name, value = ''] of Object.entries(changes)) {
    if (value === '') parameters.delete(name)
    else parameters.set(name, value)
  }
  return `?${parameters}`
}
