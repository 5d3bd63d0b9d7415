import { useState } from 'preact/hooks'
import type { AnswerMap } from '../../../../../plugin/admin-map.ts'
import { post } from '../../shell/api.ts'
import { Field } from '../../shell/field.tsx'
import { Message } from '../../shell/message.tsx'

interface ManifestFormProps {
  readonly name: string
  readonly type: string
  readonly onMap: (map: AnswerMap | undefined) => void
}

/** Shows the map as if DNSRecords were added or replaced. */
export function ManifestForm({ name, type, onMap }: ManifestFormProps) {
  const [manifests, setManifests] = useState('')
  const [fault, setFault] = useState('')
  const preview = async (): Promise<void> => {
    try {
      onMap(await post<AnswerMap>('/v1/map', { name, type: type || 'A', manifests }))
      setFault('')
    } catch (error) {
      onMap(undefined)
      setFault(error instanceof Error ? error.message : String(error))
    }
  }
  const drop = async (event: DragEvent): Promise<void> => {
    const file = event.dataTransfer?.files[0]
    if (file === undefined) return
    event.preventDefault()
    setManifests(await file.text())
  }
  return (
    <details>
      <summary>What if these manifests were served</summary>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          void preview()
        }}
      >
        <Field label="Manifests" hint="YAML or JSON of DNSRecords, or drop a file here">
          <textarea
            rows={8}
            value={manifests}
            required
            spellcheck={false}
            onInput={({ currentTarget }) => setManifests(currentTarget.value)}
            onDragOver={(event) => event.preventDefault()}
            onDrop={drop}
          />
        </Field>
        <button type="submit">Preview</button>
      </form>
      <Message kind="error" text={fault} />
    </details>
  )
}
