import { useEffect, useState } from 'preact/hooks'
import { Field } from '../../shell/field.tsx'
import { printTime } from '../../shell/format.ts'
import { printable } from '../../shell/printable.ts'
import type { Parameters } from '../../shell/use-parameters.ts'
import { usePolled } from '../../shell/use-polled.ts'
import { isPresent, NOW } from './preview-parameters.ts'

/** An event of `GET /v1/events`. */
interface LoggedEvent {
  readonly id: number
  readonly time: string
  readonly actor: { readonly kind: string; readonly name: string }
  readonly name?: string
  readonly type?: string
  /** True: what was before the event. */
  readonly isBefore?: boolean
}

const EVENTS_MAX = 1000
/** From the last movement of the slider to the request for a map. */
const PAUSE_MS = 150

interface TimeControlProps {
  readonly parameters: Parameters
  /** Names that the answers come from. */
  readonly names: readonly string[]
  /** True: the map shows a change that this does not choose. */
  readonly isChanged: boolean
  readonly onChoose: () => void
}

/** Chooses what the map shows: the present, the answers after an event, or those after a drain. */
export function TimeControl({ parameters, names, isChanged, onChoose }: TimeControlProps) {
  const { get, set } = parameters
  const [drain, setDrain] = useState(get('drain'))
  useEffect(() => setDrain(get('drain')), [get('drain')])
  return (
    <form
      class="form-row"
      onSubmit={(event) => {
        event.preventDefault()
        onChoose()
        set({ ...NOW, drain: drain.trim() })
      }}
    >
      <EventSlider parameters={parameters} names={names} onChoose={onChoose} />
      <Field label="After a drain" hint="A selector, such as site:dublin">
        <input
          type="text"
          value={drain}
          maxLength={4096}
          autocomplete="off"
          spellcheck={false}
          onInput={({ currentTarget }) => setDrain(currentTarget.value)}
        />
      </Field>
      <button type="submit">Preview</button>
      <button
        type="button"
        disabled={!isChanged && isPresent(get)}
        onClick={() => {
          onChoose()
          set(NOW)
        }}
      >
        Now
      </button>
    </form>
  )
}

type SliderProps = Omit<TimeControlProps, 'isChanged'>

function EventSlider({ parameters: { get, set }, names, onChoose }: SliderProps) {
  const logged = useEvents(names)
  const first = logged[0]
  // The answers before the first event are known, too.
  const events: readonly LoggedEvent[] =
    first === undefined ? [] : [{ ...first, id: first.id - 1, isBefore: true }, ...logged]
  const shown = events.findIndex(({ id }) => String(id) === get('event'))
  const [position, setPosition] = useState(-1)
  useEffect(() => {
    if (position === -1) return
    const timer = window.setTimeout(() => {
      const event = String(events[position]?.id ?? '')
      onChoose()
      set({ ...NOW, event }, true)
      setPosition(-1)
    }, PAUSE_MS)
    return () => window.clearTimeout(timer)
  }, [position])
  const last = events.length
  const at = position !== -1 ? position : shown === -1 ? last : shown
  return (
    <Field
      label="Time"
      hint={last === 0 ? 'The log has no event of this name' : describe(events[at])}
    >
      <input
        type="range"
        min={0}
        max={last}
        value={at}
        disabled={last === 0}
        aria-valuetext={describe(events[at])}
        onInput={({ currentTarget }) => setPosition(Number(currentTarget.value))}
      />
    </Field>
  )
}

function describe(event: LoggedEvent | undefined): string {
  if (event === undefined) return 'Now'
  const { time, actor, name = '', type = '', isBefore = false } = event
  const cause = actor.name === '' ? actor.kind : `${actor.kind} ${actor.name}`
  return printable(`${isBefore ? 'Before ' : ''}${printTime(time)}: ${name} ${type}, ${cause}`)
}

/** The events of the names, the oldest first. */
function useEvents(names: readonly string[]): readonly LoggedEvent[] {
  const [after, setAfter] = useState(0)
  const [events, setEvents] = useState<readonly LoggedEvent[]>([])
  const { data } = usePolled<{ readonly events: readonly LoggedEvent[] }>(
    `/v1/events?after=${after}&limit=${EVENTS_MAX}`,
  )
  useEffect(() => {
    const last = data?.events.at(-1)
    if (data === undefined || last === undefined) return
    setEvents((known) =>
      [...known, ...data.events.filter(({ before }: Changed) => before)].slice(-EVENTS_MAX),
    )
    setAfter(last.id)
  }, [data])
  return events.filter(({ name }) => name !== undefined && names.includes(name))
}

type Changed = LoggedEvent & { readonly before?: unknown }
