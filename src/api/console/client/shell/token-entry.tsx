import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { adoptToken } from './api.ts'
import { Field } from './field.tsx'

interface TokenEntryProps {
  readonly label: string
  readonly hint?: string
  /** Label of the button. */
  readonly action: string
  /** Before the field. */
  readonly children?: ComponentChildren
}

/** A form for the token that the page uses from then on. */
export function TokenEntry({ label, hint = '', action, children }: TokenEntryProps) {
  const [draft, setDraft] = useState('')
  return (
    <form
      class="token form-row"
      onSubmit={(event) => {
        event.preventDefault()
        adoptToken(draft.trim())
        setDraft('')
      }}
    >
      {children}
      <Field label={label} hint={hint}>
        <input
          type="password"
          value={draft}
          required
          autocomplete="off"
          onInput={({ currentTarget }) => setDraft(currentTarget.value)}
        />
      </Field>
      <button type="submit">{action}</button>
    </form>
  )
}
