import { useState } from 'preact/hooks'
import type { AdminSession } from '../../../../../plugin/admin-session.ts'
import { adoptToken } from '../../shell/api.ts'
import { Field } from '../../shell/field.tsx'
import { Message } from '../../shell/message.tsx'

/** Says why the page may not act, and asks for a token. */
export function Session({ session }: { readonly session: AdminSession | undefined }) {
  const [draft, setDraft] = useState('')
  if (session === undefined) return null
  const plain =
    'The connection is plain HTTP from another machine: others on the network can read it.'
  const reason = session.mayAct ? '' : `This page can only preview: ${session.reason}.`
  return (
    <>
      <Message kind="warning" text={session.isPlain ? plain : ''} />
      <Message kind="info" text={reason} />
      {!session.mayAct && (
        <form
          class="form-row"
          aria-label="Token"
          onSubmit={(event) => {
            event.preventDefault()
            adoptToken(draft.trim())
            setDraft('')
          }}
        >
          <Field label="Token with the role operate" hint="Kept only in memory.">
            <input
              type="password"
              value={draft}
              required
              autocomplete="off"
              onInput={({ currentTarget }) => setDraft(currentTarget.value)}
            />
          </Field>
          <button type="submit">Use this token</button>
        </form>
      )}
    </>
  )
}
