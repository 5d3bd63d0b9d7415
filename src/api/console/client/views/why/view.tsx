import { useEffect, useState } from 'preact/hooks'
import { post, tokenCount } from '../../shell/api.ts'
import { Field } from '../../shell/field.tsx'
import { Link } from '../../shell/link.tsx'
import { Message } from '../../shell/message.tsx'
import { NamePicker } from '../../shell/name-picker.tsx'
import { useParameters } from '../../shell/use-parameters.ts'
import { useStore } from '../../shell/use-store.ts'
import { Explained } from './explained.tsx'
import type { WhyExplanation } from './explanation.ts'
import { noteOf, questionOf, SEED_DEFAULT, seedOf, type WhyFields } from './question.ts'
import './why.css'

export const id = 'why'
export const title = 'Why'

/** Fields beside name and type. */
const FIELDS = [
  { name: 'client', label: 'Client', hint: 'Its address' },
  { name: 'resolver', label: 'Resolver', hint: 'Its address; empty = the client asks directly' },
  { name: 'subnet', label: 'Client subnet (ECS)', hint: '192.0.2.0/24; empty = none is sent' },
  { name: 'seed', label: 'Seed', hint: 'The same seed repeats a draw' },
] as const

/** Why a client gets its answer. */
export function View() {
  const { get, set } = useParameters()
  const fields: WhyFields = {
    name: get('name'),
    type: get('type'),
    client: get('client'),
    resolver: get('resolver'),
    subnet: get('subnet'),
    seed: get('seed'),
  }
  const [drafts, setDrafts] = useState(fields)
  const [asked, setAsked] = useState(0)
  useEffect(() => setDrafts(fields), [JSON.stringify(fields)])
  const { explanation, fault } = useExplanation(fields, asked)
  const pick = (name: string, type: string): void => {
    const { client, resolver, subnet, seed } = drafts
    set({
      name,
      type,
      client: client.trim(),
      resolver: resolver.trim(),
      subnet: subnet.trim(),
      seed,
    })
    // The same question again: health and peers may have changed.
    setAsked(asked + 1)
  }
  const isMissing = fields.name !== '' && questionOf(fields) === undefined
  return (
    <>
      <NamePicker name={fields.name} type={fields.type} onPick={pick} action="Explain">
        {FIELDS.map(({ name, label, hint }) => (
          <Field key={name} label={label} hint={hint}>
            <input
              type="text"
              class="why-field"
              value={drafts[name]}
              maxLength={64}
              autocomplete="off"
              autocapitalize="none"
              spellcheck={false}
              placeholder={name === 'seed' ? String(SEED_DEFAULT) : undefined}
              inputMode={name === 'seed' ? 'numeric' : undefined}
              onInput={({ currentTarget }) => setDrafts({ ...drafts, [name]: currentTarget.value })}
            />
          </Field>
        ))}
      </NamePicker>
      <Message
        kind="info"
        text={isMissing ? 'Write the address of a client or resolver, or a client subnet.' : ''}
      />
      <Message kind="warning" text={noteOf(fields)} />
      <Message kind="error" text={fault} />
      {explanation !== undefined && (
        <Explained
          explanation={explanation}
          again={
            <Link view={id} parameters={{ ...fields, seed: String(seedOf(fields) + 1) }}>
              Draw again
            </Link>
          }
        />
      )}
    </>
  )
}

interface Asked {
  readonly explanation: WhyExplanation | undefined
  /** '' = none. */
  readonly fault: string
}

const NOTHING: Asked = { explanation: undefined, fault: '' }

/** Asks once for each question, after each new token, and when `asked` changes. */
function useExplanation(fields: WhyFields, asked: number): Asked {
  const question = questionOf(fields)
  const tokens = useStore(tokenCount)
  const [reply, setReply] = useState<Asked>(NOTHING)
  useEffect(() => {
    if (question === undefined) {
      setReply(NOTHING)
      return
    }
    let isOver = false
    const ask = async (): Promise<void> => {
      const next = await post<WhyExplanation>('/v1/explain', question).then(
        (explanation) => ({ explanation, fault: '' }),
        (error) => ({
          explanation: undefined,
          fault: error instanceof Error ? error.message : String(error),
        }),
      )
      if (!isOver) setReply(next)
    }
    void ask()
    return () => {
      isOver = true
    }
  }, [JSON.stringify(question), tokens, asked])
  return reply
}
