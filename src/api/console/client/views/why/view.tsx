import { useState } from 'preact/hooks'
import { post } from '../../shell/api.ts'
import { EndpointMark } from '../../shell/endpoint-patterns.tsx'
import { Field } from '../../shell/field.tsx'
import { Message } from '../../shell/message.tsx'
import { NamePicker } from '../../shell/name-picker.tsx'
import { printable } from '../../shell/printable.ts'
import { useParameters } from '../../shell/use-parameters.ts'

export const id = 'why'
export const title = 'Why'

/** Why a client gets its answer. */
export function View() {
  const { get, set } = useParameters()
  const [answer, setAnswer] = useState<readonly string[]>([])
  const [fault, setFault] = useState('')
  const ask = async (name: string, type: string): Promise<void> => {
    set({ name, type })
    try {
      const question = { name, type, client: get('client') || '127.0.0.1' }
      setAnswer(
        (await post<{ readonly answer: readonly string[] }>('/v1/explain', question)).answer,
      )
      setFault('')
    } catch (error) {
      setFault(error instanceof Error ? error.message : String(error))
    }
  }
  return (
    <>
      <Field label="Client" hint="Address; empty = this machine">
        <input
          type="text"
          value={get('client')}
          onInput={({ currentTarget }) => set({ client: currentTarget.value }, true)}
        />
      </Field>
      <NamePicker name={get('name')} type={get('type')} onPick={ask} action="Explain" />
      <Message kind="error" text={fault} />
      <ol>
        {answer.map((line, i) => (
          <li key={line}>
            <EndpointMark index={i} />
            {printable(line)}
          </li>
        ))}
      </ol>
    </>
  )
}
