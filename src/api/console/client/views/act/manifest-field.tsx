import { useState } from 'preact/hooks'
import { Field } from '../../shell/field.tsx'
import { faultOfManifests, MANIFESTS_OCTETS_MAX } from './order.ts'

interface ManifestFieldProps {
  readonly text: string
  readonly change: (text: string) => void
}

/** Manifests to paste, to choose as files, or to drop on the field. */
export function ManifestField({ text, change }: ManifestFieldProps) {
  const [fault, setFault] = useState('')
  const read = async (files: FileList | null | undefined): Promise<void> => {
    const all = [...(files ?? [])]
    if (all.length === 0) return
    const octets = all.reduce((sum, { size }) => sum + size, 0)
    if (octets > MANIFESTS_OCTETS_MAX) {
      setFault('The files are longer than 1 MB together.')
      return
    }
    try {
      const texts = await Promise.all(all.map((file) => file.text()))
      setFault('')
      change(texts.map((one) => `---\n${one}`).join('\n'))
    } catch (error) {
      setFault(error instanceof Error ? error.message : String(error))
    }
  }
  return (
    <fieldset
      class="drop"
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => {
        event.preventDefault()
        void read(event.dataTransfer?.files)
      }}
    >
      <legend>Manifests</legend>
      <Field label="Files" hint="Choose files, or drop them here.">
        <input
          type="file"
          multiple
          accept=".yaml,.yml,.json"
          onChange={({ currentTarget }) => void read(currentTarget.files)}
        />
      </Field>
      <Field
        label="Text"
        hint="DNSRecords in YAML or JSON. They are compared, not applied."
        error={fault || faultOfManifests(text)}
      >
        <textarea
          rows={10}
          spellcheck={false}
          value={text}
          onInput={({ currentTarget }) => change(currentTarget.value)}
        />
      </Field>
    </fieldset>
  )
}
