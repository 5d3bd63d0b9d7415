import { needsToken } from './api.ts'
import { TokenEntry } from './token-entry.tsx'
import { useStore } from './use-store.ts'

/** Asks for the token after the server refused a request. */
export function TokenForm() {
  if (!useStore(needsToken)) return null
  return (
    <TokenEntry label="Token" action="Use">
      <p role="alert">
        The server needs a token: the one of this page is missing, wrong or expired. The page keeps
        it only in memory.
      </p>
    </TokenEntry>
  )
}
