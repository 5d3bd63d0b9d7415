import { Field } from '../../shell/field.tsx'
import { ManifestField } from './manifest-field.tsx'
import { type Draft, faultOfManifests, scanAct, whatIfOf } from './order.ts'
import { ShiftFields } from './shift-fields.tsx'

interface DraftFormProps {
  readonly draft: Draft
  readonly change: (next: Partial<Draft>) => void
  readonly preview: () => Promise<void>
  readonly isBusy: boolean
}

/** What to preview. */
export function DraftForm({ draft, change, preview, isBusy }: DraftFormProps) {
  const { act, selector, until, manifests } = draft
  const isComplete = whatIfOf(draft) !== undefined && faultOfManifests(manifests) === ''
  return (
    <form
      aria-label="Order"
      class="order"
      onSubmit={(event) => {
        event.preventDefault()
        if (isComplete && !isBusy) void preview()
      }}
    >
      <Field label="Act">
        <select
          value={act}
          onChange={({ currentTarget }) => change({ act: scanAct(currentTarget.value) })}
        >
          <option value="drain">Drain endpoints</option>
          <option value="undrain">End a drain</option>
          <option value="shift">Shift traffic</option>
          <option value="manifests">Compare manifests</option>
        </select>
      </Field>
      {act === 'manifests' && (
        <ManifestField text={manifests} change={(text) => change({ manifests: text })} />
      )}
      {act === 'shift' && <ShiftFields shift={draft.shift} change={(shift) => change({ shift })} />}
      {(act === 'drain' || act === 'undrain') && (
        <Field
          label={act === 'drain' ? 'Selector' : 'Selector or id of the drain'}
          hint="Such as site:dublin or host:app.example.com."
        >
          <input
            type="text"
            value={selector}
            required
            maxLength={4096}
            spellcheck={false}
            autocomplete="off"
            onInput={({ currentTarget }) => change({ selector: currentTarget.value })}
          />
        </Field>
      )}
      {act === 'drain' && (
        <Field label="Until" hint="A duration such as 2h, or a time; empty = until you end it.">
          <input
            type="text"
            value={until}
            maxLength={64}
            onInput={({ currentTarget }) => change({ until: currentTarget.value })}
          />
        </Field>
      )}
      <button type="submit" disabled={!isComplete || isBusy}>
        {isBusy ? 'Working…' : 'Preview'}
      </button>
    </form>
  )
}
