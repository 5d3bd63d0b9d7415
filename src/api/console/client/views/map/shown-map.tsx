import type { ComponentChildren } from 'preact'
import { useMemo, useState } from 'preact/hooks'
import type { AnswerMap, MapAnswer } from '../../../../../plugin/admin-map.ts'
import { EndpointMark } from '../../shell/endpoint-patterns.tsx'
import { Field } from '../../shell/field.tsx'
import { printPercent } from '../../shell/format.ts'
import { Message } from '../../shell/message.tsx'
import { printable } from '../../shell/printable.ts'
import { Table } from '../../shell/table.tsx'
import './map.css'
import { MapCanvas } from './map-canvas.tsx'
import { fillOf, labelOf, type MapRow, orderOf, rowsOf } from './model.ts'
import { nameOfPlace } from './places.ts'

/** Most shares of a place that are listed one by one. */
const LISTED_MAX = 8
/** More than all countries. */
const PLACES_MAX = 300

interface ShownMapProps {
  readonly map: AnswerMap
  /** What the picture and its tables are called, where a page has more than one; '' = as the map. */
  readonly title?: string
  /** Below the picture. */
  readonly children?: ComponentChildren
}

/** A map, and the same data as tables. */
export function ShownMap({ map, title = '', children }: ShownMapProps) {
  const [marked, setMarked] = useState('')
  // The same map as before is not drawn again.
  const key = JSON.stringify(map)
  const { countries, others, fills } = useMemo(() => {
    const countries = rowsOf(map, map.countries)
    const fills = new Map(countries.map(({ code, shares }) => [code, fillOf(shares)]))
    return { countries, others: rowsOf(map, map.others), fills }
  }, [key])
  const row = countries.find(({ code }) => code === marked)
  const captionOf = (caption: string): string => (title === '' ? caption : `${caption}: ${title}`)
  const tables = (
    <>
      <Answers map={map} caption={captionOf('Endpoints')} />
      <Places map={map} rows={countries} caption={captionOf('Countries')} />
      <Places map={map} rows={others} caption={captionOf('Clients without a country')} />
    </>
  )
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
        label={captionOf(
          `Map of ${printable(map.name)} ${map.type}; the tables below have the same data`,
        )}
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
      {title === '' ? (
        tables
      ) : (
        <details>
          <summary>{captionOf('Tables')}</summary>
          {tables}
        </details>
      )}
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

interface AnswersProps {
  readonly map: AnswerMap
  readonly caption: string
}

function Answers({ map, caption }: AnswersProps) {
  const { answers, answersOmitted, isByPlace } = map
  const rows = useMemo(() => orderOf(map).map((index) => ({ index, ...answers[index]! })), [map])
  return (
    <>
      {!isByPlace && <p>All clients of this name get the same shares.</p>}
      <Table<MapAnswer & { readonly index: number }>
        caption={caption}
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
