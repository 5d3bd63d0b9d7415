import { useState } from 'preact/hooks'
import { Field } from '../../shell/field.tsx'
import { confirmationOfDraft, type Draft } from './order.ts'

interface ConfirmProps {
  readonly draft: Draft
  readonly isBusy: boolean
  readonly apply: (draft: Draft, reason: string, actor: string) => Promise<void>
}

const VERBS = {
  drain: 'Drain',
  undrain: 'End the drain',
  shift: 'Begin the shift',
  manifests: '',
} as const

/** Asks for a reason and for the name of the site, then applies the order. */
export function Confirm({ draft, isBusy, apply }: ConfirmProps) {
  const [reason, setReason] = useState('')
  const [actor, setActor] = useState('')
  const [typed, setTyped] = useState('')
  const wanted = confirmationOfDraft(draft)
  const isConfirmed = typed === wanted
  return (
    <form
      aria-label="Apply"
      class="form-row"
      onSubmit={(event) => {
        event.preventDefault()
        if (isConfirmed && !isBusy) void apply(draft, reason.trim(), actor.trim())
      }}
    >
      <Field label="Reason">
        <input
          type="text"
          value={reason}
          required
          maxLength={1000}
          onInput={({ currentTarget }) => setReason(currentTarget.value)}
        />
      </Field>
      <Field label="Your name" hint="For the log of events.">
        <input
          type="text"
          value={actor}
          maxLength={255}
          onInput={({ currentTarget }) => setActor(currentTarget.value)}
        />
      </Field>
      <Field label={`Type ${wanted} to confirm`}>
        <input
          type="text"
          value={typed}
          required
          autocomplete="off"
          spellcheck={false}
          onInput={({ currentTarget }) => setTyped(currentTarget.value)}
        />
      </Field>
      <button type="submit" disabled={!isConfirmed || isBusy}>
        {VERBS[draft.act]}
      </button>
    </form>
  )
}
