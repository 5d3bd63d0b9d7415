import { useEffect, useRef, useState } from 'preact/hooks'
import type { AnswerMap } from '../../../../../plugin/admin-map.ts'
import type { NameList } from '../../../../../plugin/admin-names.ts'
import { Link } from '../../shell/link.tsx'
import { Message } from '../../shell/message.tsx'
import { NamePicker } from '../../shell/name-picker.tsx'
import { type Parameters, useParameters } from '../../shell/use-parameters.ts'
import { usePolled } from '../../shell/use-polled.ts'
import { firstName } from './first-name.ts'
import { ManifestForm } from './manifest-form.tsx'
import { MapCanvas } from './map-canvas.tsx'
import type { FillPart } from './model.ts'
import { NOW, pathOfMap } from './preview-parameters.ts'
import { ShownMap } from './shown-map.tsx'
import { TimeControl } from './time-control.tsx'

export const id = 'map'
export const title = 'Map'

/** Enough to find a host. */
const NAMES_MAX = 100
const NO_FILLS: ReadonlyMap<string, readonly FillPart[]> = new Map()

/** Which endpoints of a name the clients of each country get. */
export function View() {
  const parameters = useParameters()
  const { get, set } = parameters
  const name = get('name')
  const { data, error } = usePolled<AnswerMap>(name === '' ? '' : pathOfMap(get))
  const [changed, setChanged] = useState<AnswerMap>()
  const last = useLast(data, `${name} ${get('type')}`)
  const shown = changed ?? (error === '' ? last : data)
  const pick = (name: string, type: string): void => {
    setChanged(undefined)
    set({ name, type, ...NOW })
  }
  // Also without a map: a preview that fails must be changed.
  const time = name !== '' && (
    <>
      <TimeControl
        parameters={parameters}
        names={last?.names ?? []}
        isChanged={changed !== undefined}
        onChoose={() => setChanged(undefined)}
      />
      <ManifestForm name={name} type={get('type')} onMap={setChanged} />
      <p>
        <Link view="why" parameters={{ name, type: get('type') }}>
          Why a client gets its answer
        </Link>
      </p>
    </>
  )
  return (
    <>
      <NamePicker name={name} type={get('type')} onPick={pick} />
      <Message kind="error" text={error} />
      {name === '' && <FirstName parameters={parameters} />}
      {shown === undefined && error === '' && name !== '' && <Loading />}
      {shown === undefined ? time : <ShownMap map={shown}>{time}</ShownMap>}
    </>
  )
}

/** The first map after a start takes a second, so the view begins with the world. */
function Loading() {
  return (
    <>
      <MapCanvas label="Map of the world" fills={NO_FILLS} marked="" onMark={() => {}} />
      <p class="map-details" role="status">
        Computing the map…
      </p>
    </>
  )
}

/** Opens the map of a name, so that the view begins with one. */
function FirstName({ parameters: { set } }: { readonly parameters: Parameters }) {
  const { data, error } = usePolled<NameList>(`/v1/names?limit=${NAMES_MAX}`)
  const first = firstName(data?.names ?? [])
  useEffect(() => {
    if (first !== undefined) set({ view: id, ...first }, true)
  }, [first?.name])
  if (data === undefined || first !== undefined) return <Message kind="error" text={error} />
  return (
    <p>
      No DNSRecord of this server has addresses, so choose a name. See its zones in the{' '}
      <Link view="overview">overview</Link>.
    </p>
  )
}

/** The map, or while another one of the same name is on its way, the one before: the page keeps its focus. */
function useLast(map: AnswerMap | undefined, key: string): AnswerMap | undefined {
  const last = useRef<{ readonly map: AnswerMap | undefined; readonly key: string }>({ map, key })
  if (map !== undefined || last.current.key !== key) last.current = { map, key }
  return last.current.map
}
