import type { ComponentChildren } from 'preact'
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import type { AnswerMap, MapAnswer } from '../../../../../plugin/admin-map.ts'
import type { NameList } from '../../../../../plugin/admin-names.ts'
import { EndpointMark } from '../../shell/endpoint-patterns.tsx'
import { Field } from '../../shell/field.tsx'
import { printPercent } from '../../shell/format.ts'
import { Link } from '../../shell/link.tsx'
import { Message } from '../../shell/message.tsx'
import { NamePicker } from '../../shell/name-picker.tsx'
import { printable } from '../../shell/printable.ts'
import { Table } from '../../shell/table.tsx'
import { type Parameters, useParameters } from '../../shell/use-parameters.ts'
import { usePolled } from '../../shell/use-polled.ts'
import { firstName } from './first-name.ts'
import './map.css'
import { ManifestForm } from './manifest-form.tsx'
import { MapCanvas } from './map-canvas.tsx'
import { fillOf, labelOf, type MapRow, orderOf, rowsOf } from './model.ts'
import { nameOfPlace } from './places.ts'
import { TimeControl } from './time-control.tsx'

export const id = 'map'
export const title = 'Map'

/** Most shares of a place that are listed one by one. */
const LISTED_MAX = 8
/** More than all countries. */
const PLACES_MAX = 300
/** Enough to find a host. */
const NAMES_MAX = 100

/** Which endpoints of a name the clients of each country get. */
export function View() {
  const parameters = useParameters()
  const { get, set } = parameters
  const name = get('name')
  const { data, error } = usePolled<AnswerMap>(name === '' ? '' : pathOf(get))
  const [changed, setChanged] = useState<AnswerMap>()
  const last = useLast(data, `${name} ${get('type')}`)
  const shown = changed ?? (error === '' ? last : data)
  const pick = (name: string, type: string): void => {
    setChanged(undefined)
    set({ name, type, drain: '', event: '' })
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
    </>
  )
  return (
    <>
      <NamePicker name={name} type={get('type')} onPick={pick} />
      <Message kind="error" text={error} />
      {name === '' && <FirstName parameters={parameters} />}
      {shown === undefined ? time : <Shown map={shown}>{time}</Shown>}
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

function pathOf(get: (name: string) => string): string {
  const query = new URLSearchParams({ name: get('name'), type: get('type') || 'A' })
  for (const preview of ['drain', 'event'])
    if (get(preview) !== '') query.set(preview, get(preview))
  return `/v1/map?${query}`
}

interface ShownProps {
  readonly map: AnswerMap
  /** Below the picture. */
  readonly children: ComponentChildren
}

function Shown({ map, children }: ShownProps) {
  const [marked, setMarked] = useState('')
  // The same map as before is not drawn again.
  const key = JSON.stringify(map)
  const { countries, others, fills } = useMemo(() => {
    const countries = rowsOf(map, map.countries)
    const fills = new Map(countries.map(({ code, shares }) => [code, fillOf(shares)]))
    return { countries, others: rowsOf(map, map.others), fills }
  }, [key])
  const row = countries.find(({ code }) => code === marked)
  return (
    <>
      <Message
        kind="warning"
        text={map.preview === '' ? '' : `This is a preview: ${map.preview}.`}
      />
      {map.notes.map((note) => (
        <Message key={note} kind="info" text={note} />
      ))}
      <MapCanvas
        label={`Map of ${printable(map.name)} ${map.type}; the tables below have the same data`}
        fills={fills}
        marked={marked}
        onMark={setMarked}
      />
      <p class="map-details" role="status">
        {row === undefined ? 'Point at a country, or choose one.' : describe(map, row)}
      </p>
      {children}
      <Field label="Country">
        <select value={marked} onChange={({ currentTarget }) => setMarked(currentTarget.value)}>
          <option value="">None</option>
          {countries.map(({ code }) => (
            <option key={code} value={code}>
              {nameOfPlace(code)}
            </option>
          ))}
        </select>
      </Field>
      <Answers map={map} />
      <p>
        <Link view="why" parameters={{ name: map.name, type: map.type }}>
          Why a client gets its answer
        </Link>
      </p>
      <Places map={map} rows={countries} caption="Countries" />
      <Places map={map} rows={others} caption="Clients without a country" />
    </>
  )
}

function describe({ answers }: AnswerMap, { code, shares, sharesOmitted }: MapRow): string {
  const listed = shares.slice(0, LISTED_MAX).map(({ answer, ipv4, ipv6 }) => {
    const share =
      ipv4 === ipv6
        ? printPercent(ipv4)
        : `${printPercent(ipv4)} of IPv4, ${printPercent(ipv6)} of IPv6`
    return `${labelOf(answers[answer])}: ${share}`
  })
  const more = shares.length - listed.length + sharesOmitted
  const all = more > 0 ? [...listed, `and ${more} more`] : listed
  return printable(`${nameOfPlace(code)}: ${all.join('; ')}`)
}

function Answers({ map }: { readonly map: AnswerMap }) {
  const { answers, answersOmitted, isByPlace } = map
  const rows = useMemo(() => orderOf(map).map((index) => ({ index, ...answers[index]! })), [map])
  return (
    <>
      {!isByPlace && <p>All clients of this name get the same shares.</p>}
      <Table<MapAnswer & { readonly index: number }>
        caption="Endpoints"
        rows={rows}
        keyOf={({ index }) => String(index)}
        columns={[
          {
            title: 'Endpoint',
            cell: ({ index, ...answer }) => (
              <>
                <EndpointMark index={index} /> {printable(labelOf(answer))}
              </>
            ),
          },
          {
            title: 'State',
            cell: ({ state, detail }) => printable(detail ? `${state}: ${detail}` : state),
          },
          { title: 'Weight', cell: ({ weight }) => weight ?? '-', isNumber: true },
          { title: 'RRset', cell: ({ name }) => printable(name) },
          { title: 'Record', cell: ({ record }) => printable(record || '-') },
        ]}
      />
      {answersOmitted > 0 && <p>{answersOmitted} more endpoints are not listed.</p>}
    </>
  )
}

interface PlacesProps {
  readonly map: AnswerMap
  readonly rows: readonly MapRow[]
  readonly caption: string
}

function Places({ map, rows, caption }: PlacesProps) {
  return (
    <Table
      caption={caption}
      rows={rows}
      keyOf={({ code }) => code}
      pageRows={PLACES_MAX}
      attributesOf={({ code, targets }) => {
        return { 'data-country': code, 'data-answers': targets.join(',') }
      }}
      columns={[
        { title: 'Country', cell: ({ code }) => `${nameOfPlace(code)} ${code}` },
        { title: 'Answers', cell: (row) => <Shares map={map} row={row} /> },
      ]}
    />
  )
}

function Shares({ map: { answers }, row }: { readonly map: AnswerMap; readonly row: MapRow }) {
  const listed = row.shares.slice(0, LISTED_MAX)
  const more = row.shares.length - listed.length + row.sharesOmitted
  return (
    <ul class="shares">
      {listed.map(({ answer, ipv4, ipv6 }) => (
        <li key={answer}>
          <EndpointMark index={answer} />
          {printable(labelOf(answers[answer]))} {printPercent(ipv4)}
          {ipv4 !== ipv6 && `, IPv6 ${printPercent(ipv6)}`}
        </li>
      ))}
      {more > 0 && <li>{more} more</li>}
    </ul>
  )
}
