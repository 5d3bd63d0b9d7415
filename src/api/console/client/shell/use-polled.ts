import { useEffect, useState } from 'preact/hooks'
import { get, RequestFault, tokenCount } from './api.ts'
import { serverPath } from './server-path.ts'
import { useParameters } from './use-parameters.ts'
import { useStore } from './use-store.ts'

/** What a path of the API returned. */
export interface Polled<T> {
  /** The last reply, also if a later request failed; undefined = nothing was received yet. */
  readonly data: T | undefined
  /** Why the last request failed; '' = it did not. */
  readonly error: string
  /** When `data` was received, in milliseconds since the epoch; undefined = never. */
  readonly receivedMs: number | undefined
  /** Asks at once. */
  readonly refresh: () => void
}

type Received<T> = Omit<Polled<T>, 'refresh'> & { readonly path: string }

const POLL_MS_DEFAULT = 5000

/**
 * Gets a path again and again, and after each new token, but not while the page is hidden. `wanted`: '' = ask for
 * nothing. `everyMs`: from a reply to the next request.
 */
export function usePolled<T>(wanted: string, everyMs = POLL_MS_DEFAULT): Polled<T> {
  const server = useParameters().get('server')
  // Data of one server must not stay when the page shows another one.
  const path = wanted === '' ? '' : serverPath('GET', wanted, server)!
  const [received, setReceived] = useState<Received<T>>(nothingOf<T>(path))
  const [asked, setAsked] = useState(0)
  const tokens = useStore(tokenCount)
  useEffect(() => {
    if (path === '') return
    let isOver = false
    let timer = 0
    const ask = async (): Promise<void> => {
      const next = await receive<T>(path)
      if (isOver) return
      setReceived((last) => merge(last, next))
      timer = window.setTimeout(askIfShown, everyMs)
    }
    const askIfShown = (): void => {
      if (document.hidden)
        document.addEventListener('visibilitychange', () => void ask(), { once: true, signal })
      else void ask()
    }
    const stop = new AbortController()
    const { signal } = stop
    void ask()
    return () => {
      isOver = true
      stop.abort()
      window.clearTimeout(timer)
    }
  }, [path, everyMs, tokens, asked])
  const shown = received.path === path ? received : nothingOf<T>(path)
  return { ...shown, refresh: () => setAsked((count) => count + 1) }
}

function nothingOf<T>(path: string): Received<T> {
  return { path, data: undefined, error: '', receivedMs: undefined }
}

async function receive<T>(path: string): Promise<Received<T>> {
  try {
    return { path, data: await get<T>(path), error: '', receivedMs: Date.now() }
  } catch (error) {
    if (!(error instanceof RequestFault)) throw error
    return { ...nothingOf<T>(path), error: error.message }
  }
}

function merge<T>(last: Received<T>, next: Received<T>): Received<T> {
  return next.error === '' || last.path !== next.path ? next : { ...last, error: next.error }
}
