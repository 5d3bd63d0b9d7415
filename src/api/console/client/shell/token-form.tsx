import { useState } from 'preact/hooks'
import { adoptToken, needsToken } from './api.ts'
import { Field } from './field.tsx'
import { useStore } from './use-store.ts'

/** Asks for the token after the server refused a request. */
export function TokenForm() {
  const [draft, setDraft] = useState('')
  if (!useStore(needsToken)) return null
  return (
    <form
      class="token form-row"
      onSubmit={(event) => {
        event.preventDefault()
        adoptToken(draft.trim())
        setDraft('')
      }}
    >
      <p role="alert">
        The server needs a token: the one of this page is missing, wrong or expired. The page keeps
        it only in memory.
      </p>
      <Field label="Token">
        <input
          type="password"
          value={draft}
          required
          autocomplete="off"
          onInput={({ currentTarget }) => setDraft(currentTarget.value)}
        />
      </Field>
      <button type="submit">Use</button>
    </form>
  )
}
