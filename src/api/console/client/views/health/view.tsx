import { useLayoutEffect, useRef } from 'preact/hooks'
import type { EndpointPage, EndpointReport } from '../../../../../plugin/admin-health.ts'
import { printAge, printNumber, printTime } from '../../shell/format.ts'
import { Link } from '../../shell/link.tsx'
import { Message } from '../../shell/message.tsx'
import { printable } from '../../shell/printable.ts'
import { type Parameters, useParameters } from '../../shell/use-parameters.ts'
import { usePolled } from '../../shell/use-polled.ts'
import { Filters } from './filters.tsx'
import './health.css'
import { Omitted, Sections } from './sections.tsx'
import { labelOf, StateMark, StatePatterns, Timeline } from './timeline.tsx'

export const id = 'health'
export const title = 'Health'

const PAGE_ENDPOINTS = 50

/** Which endpoints are in service, since when, and why not. */
export function View() {
  const parameters = useParameters()
  const page = pageOf(parameters)
  const { data, error } = usePolled<EndpointPage>(pathOf(parameters, page))
  // Shown until another selection arrives.
  const last = useRef(data)
  if (data !== undefined) last.current = data
  const shown = last.current
  return (
    <>
      <StatePatterns />
      <Filters states={shown?.states ?? {}} />
      <Message kind="error" text={error} />
      {shown !== undefined && <Endpoints page={page} shown={shown} />}
      <Sections />
    </>
  )
}

/** From 0. */
function pageOf({ get }: Parameters): number {
  return Math.max(0, Math.min(10_000, Math.trunc(Number(get('page')) || 1) - 1))
}

function pathOf({ get }: Parameters, page: number): string {
  const query = new URLSearchParams()
  for (const name of ['name', 'state', 'zone']) if (get(name) !== '') query.set(name, get(name))
  query.set('offset', String(page * PAGE_ENDPOINTS))
  query.set('limit', String(PAGE_ENDPOINTS))
  return `/v1/health?${query}`
}

interface EndpointsProps {
  readonly page: number
  readonly shown: EndpointPage
}

function Endpoints({ page, shown }: EndpointsProps) {
  const { endpoints, total, states, from, now, recordsOmitted } = shown
  useKeptFocus()
  const counts = Object.entries(states).map(([state, count]) => `${printNumber(count)} ${state}`)
  return (
    <section aria-label="Endpoints">
      <p>
        {printNumber(total)} endpoints{total > 0 && `: ${counts.join(', ')}`}. Changes are known
        since {printTime(from)}.
      </p>
      <Omitted count={recordsOmitted} what="records" />
      <ol class="endpoints">
        {endpoints.map((endpoint) => (
          <li key={keyOf(endpoint)}>
            <Endpoint endpoint={endpoint} noteMs={Date.parse(from)} nowMs={Date.parse(now)} />
          </li>
        ))}
      </ol>
      <Pages page={page} total={total} />
    </section>
  )
}

interface EndpointProps {
  readonly endpoint: EndpointReport
  readonly noteMs: number
  readonly nowMs: number
}

function Endpoint({ endpoint, noteMs, nowMs }: EndpointProps) {
  const { name, type, site, targets, record, state, detail, since, weightPercent } = endpoint
  const age = since === '' ? '' : ` for ${printAge((nowMs - Date.parse(since)) / 1000)}`
  return (
    <article>
      <h2>{printable(labelOf(endpoint))}</h2>
      <p>
        <StateMark state={state} />
        {age}
        {state === 'slow start' && `, ${weightPercent} % of its weight`}
        {detail !== '' && state !== 'slow start' && `: ${printable(detail)}`}
      </p>
      <p class="endpoint-facts">
        {printable(targets.join(', '))}; record {printable(record)}
        {site !== '' && `; site ${printable(site)}`};{' '}
        <Link view="map" parameters={{ name, type }}>
          map
        </Link>
        ,{' '}
        <Link view="why" parameters={{ name, type }}>
          why
        </Link>
      </p>
      <Timeline endpoint={endpoint} noteMs={noteMs} nowMs={nowMs} />
    </article>
  )
}

function Pages({ page, total }: { readonly page: number; readonly total: number }) {
  const { set } = useParameters()
  const pages = Math.max(1, Math.ceil(total / PAGE_ENDPOINTS))
  if (pages === 1 && page === 0) return null
  const open = (next: number) => () => set({ page: String(next + 1) })
  return (
    <nav class="pager" aria-label="Pages of endpoints">
      <button type="button" disabled={page === 0} onClick={open(Math.min(page, pages) - 1)}>
        Previous
      </button>
      <span role="status">
        Page {page + 1} of {pages}
      </span>
      <button type="button" disabled={page >= pages - 1} onClick={open(page + 1)}>
        Next
      </button>
    </nav>
  )
}

/** Keeps the focus in an element that moves to another place of the list. */
function useKeptFocus(): void {
  const focused = document.activeElement
  useLayoutEffect(() => {
    const isLost = document.activeElement === document.body && focused !== document.body
    if (isLost && focused instanceof HTMLElement && focused.isConnected) {
      focused.focus({ preventScroll: true })
    }
  })
}

function keyOf({ zone, name, type, setIdentifier, record, targets }: EndpointReport): string {
  return [zone, name, type, record, setIdentifier || targets.join()].join(' ')
}
