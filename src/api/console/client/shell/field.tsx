import { cloneElement, type VNode } from 'preact'
import { useId } from 'preact/hooks'

interface FieldProps {
  readonly label: string
  /** What to write, or what an empty field means. */
  readonly hint?: string
  /** What is wrong with the value; '' = nothing. */
  readonly error?: string
  /** An `input`, `select` or `textarea`. */
  readonly children: VNode<{ id?: string; 'aria-describedby'?: string; 'aria-invalid'?: boolean }>
}

/** A labelled input of a form. */
export function Field({ label, hint = '', error = '', children }: FieldProps) {
  const id = useId()
  const isInvalid = error !== ''
  const note = isInvalid ? error : hint
  const described = note === '' ? {} : { 'aria-describedby': `${id}-note` }
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {cloneElement(children, { id, ...described, ...(isInvalid ? { 'aria-invalid': true } : {}) })}
      {note !== '' && (
        <small id={`${id}-note`} class={isInvalid ? 'field-error' : 'field-hint'}>
          {note}
        </small>
      )}
    </div>
  )
}
