import { Field } from '../../shell/field.tsx'
import type { ShiftDraft } from './order.ts'

interface ShiftFieldsProps {
  readonly shift: ShiftDraft
  readonly change: (shift: ShiftDraft) => void
}

const FIELDS = [
  { member: 'name', label: 'Host', hint: 'The root host of the DNSRecords.' },
  { member: 'to', label: 'To', hint: 'The set identifier that traffic moves to.' },
  { member: 'steps', label: 'Steps', hint: 'Ascending shares. The preview shows the last one.' },
  { member: 'bake', label: 'Each step lasts', hint: 'A duration such as 10m.' },
] as const

/** What to shift. */
export function ShiftFields({ shift, change }: ShiftFieldsProps) {
  return (
    <>
      {FIELDS.map(({ member, label, hint }) => (
        <Field key={member} label={label} hint={hint}>
          <input
            type="text"
            value={shift[member]}
            required
            maxLength={255}
            spellcheck={false}
            autocomplete="off"
            onInput={({ currentTarget }) => change({ ...shift, [member]: currentTarget.value })}
          />
        </Field>
      ))}
    </>
  )
}
