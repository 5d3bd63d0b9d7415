import type { ComponentChildren } from 'preact'
import { useEffect, useId, useState } from 'preact/hooks'
import type { AdminName, NameList } from '../../../../plugin/admin-names.ts'
import { get } from './api.ts'
import { Field } from './field.tsx'
import { printable } from './printable.ts'

interface NamePickerProps {
  readonly name: string
  readonly type: string
  readonly onPick: (name: string, type: string) => void
  /** Text of the button. */
  readonly action?: string
  /** More fields of the form. */
  readonly children?: ComponentChildren
}

const TYPES = ['A', 'AAAA', 'CNAME', 'TXT', 'MX', 'SRV', 'HTTPS', 'NS', 'SOA', 'CAA', 'SVCB']
const TYPE_DEFAULT = 'A'
const SUGGESTIONS_MAX = 50
/** From the last key to the request for suggestions. */
const PAUSE_MS = 150

/** A form for a name and a type, with the names that the server has. */
export function NamePicker(props: NamePickerProps) {
  const { name, type, onPick, action = 'Show', children } = props
  const [draft, setDraft] = useState({ name, type: type || TYPE_DEFAULT })
  const [suggested, setSuggested] = useState<readonly AdminName[]>([])
  const id = useId()
  useEffect(() => setDraft({ name, type: type || TYPE_DEFAULT }), [name, type])
  useEffect(() => {
    let isOver = false
    const timer = window.setTimeout(async () => {
      const names = await suggest(draft.name)
      if (!isOver) setSuggested(names)
    }, PAUSE_MS)
    return () => {
      isOver = true
      window.clearTimeout(timer)
    }
  }, [draft.name])
  const own = suggested.find((one) => one.name === draft.name)?.types ?? []
  const types = [...new Set([...own, ...TYPES, draft.type])]
  return (
    <form
      class="form-row"
      onSubmit={(event) => {
        event.preventDefault()
        onPick(draft.name.trim(), draft.type)
      }}
    >
      <Field label="Name">
        <input
          type="text"
          value={draft.name}
          list={`${id}-names`}
          required
          maxLength={1020}
          autocomplete="off"
          autocapitalize="none"
          spellcheck={false}
          onInput={({ currentTarget }) => setDraft({ ...draft, name: currentTarget.value })}
        />
      </Field>
      <datalist id={`${id}-names`}>
        {suggested.map((one) => (
          <option key={one.name} value={one.name}>
            {printable(one.types.join(', '))}
          </option>
        ))}
      </datalist>
      <Field label="Type">
        <select
          value={draft.type}
          onChange={({ currentTarget }) => setDraft({ ...draft, type: currentTarget.value })}
        >
          {types.map((one) => (
            <option key={one} value={one}>
              {printable(one)}
            </option>
          ))}
        </select>
      </Field>
      {children}
      <button type="submit">{action}</button>
    </form>
  )
}

/** Returns the names that start with a text; none if the server has no answer. */
async function suggest(prefix: string): Promise<readonly AdminName[]> {
  try {
    const query = new URLSearchParams({
      prefix: prefix.slice(0, 255),
      limit: String(SUGGESTIONS_MAX),
    })
    return (await get<NameList>(`/v1/names?${query}`)).names
  } catch {
    return []
  }
}
