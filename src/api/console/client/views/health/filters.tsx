import { useEffect, useState } from 'preact/hooks'
import type { EndpointReport } from '../../../../../plugin/admin-health.ts'
import { Field } from '../../shell/field.tsx'
import { printNumber } from '../../shell/format.ts'
import { printable } from '../../shell/printable.ts'
import { useStatus } from '../../shell/status.ts'
import { useParameters } from '../../shell/use-parameters.ts'

const STATES: readonly (EndpointReport['state'] | 'not up')[] = [
  'not up',
  'down',
  'drained',
  'partly down',
  'slow start',
  'shifted',
  'up',
  'removed',
]
/** From the last key to the request. */
const PAUSE_MS = 300

/** Which endpoints are listed. Their values are in the address. */
export function Filters({ states }: { readonly states: Readonly<Record<string, number>> }) {
  const { get, set } = useParameters()
  const [name, setName] = useState(get('name'))
  const { data } = useStatus()
  const zones = [...new Set((data?.zones ?? []).map(({ zone }) => zone))]
  const isListed = get('zone') === '' || zones.includes(get('zone'))
  useEffect(() => setName(get('name')), [get('name')])
  useEffect(() => {
    const timer = window.setTimeout(() => {
      if (name !== get('name')) set({ name, page: '' }, true)
    }, PAUSE_MS)
    return () => window.clearTimeout(timer)
  }, [name])
  return (
    <search class="form-row">
      <Field label="Name contains">
        <input
          type="text"
          value={name}
          maxLength={1020}
          autocomplete="off"
          autocapitalize="none"
          spellcheck={false}
          onInput={({ currentTarget }) => setName(currentTarget.value)}
        />
      </Field>
      <Field label="State">
        <select
          value={get('state')}
          onChange={({ currentTarget }) => set({ state: currentTarget.value, page: '' })}
        >
          <option value="">any</option>
          {STATES.map((state) => (
            <option key={state} value={state}>
              {states[state] === undefined ? state : `${state} (${printNumber(states[state])})`}
            </option>
          ))}
        </select>
      </Field>
      <Field label="Zone">
        <select
          value={get('zone')}
          onChange={({ currentTarget }) => set({ zone: currentTarget.value, page: '' })}
        >
          <option value="">any</option>
          {[...zones, ...(isListed ? [] : [get('zone')])].map((zone) => (
            <option key={zone} value={zone}>
              {printable(zone)}
            </option>
          ))}
        </select>
      </Field>
    </search>
  )
}
