import type { EndpointReport } from '../../../../../plugin/admin-health.ts'
import { printAge, printTime } from '../../shell/format.ts'
import { printable } from '../../shell/printable.ts'
import { Table } from '../../shell/table.tsx'
import { describeSpans, placeOf, type SpanState, type StateSpan, spansOf } from './timeline.ts'

/** Lines of the pattern of each state, in a square of 8 units: states differ without colour. */
const LINES: Readonly<Record<SpanState, string>> = {
  down: 'M0 0 8 8M0 8 8 0',
  drained: 'M0 2H8M0 6H8',
  'partly down': 'M0 8 8 0',
  'slow start': 'M2 3h2M6 7h2',
  shifted: 'M2 0V8M6 0V8',
  up: '',
  removed: 'M0 4h3',
  unknown: 'M3 4h1',
}
const HEIGHT = 24
const TICKS = [25, 50, 75]

function classOf(state: SpanState): string {
  return `state-${state.replace(' ', '-')}`
}

/** The patterns of all states, once per page. */
export function StatePatterns() {
  return (
    <svg class="patterns" width="0" height="0" aria-hidden="true" focusable="false">
      <defs>
        {Object.entries(LINES).map(([state, lines]) => {
          const name = classOf(state as SpanState)
          return (
            <pattern
              key={name}
              id={name}
              class={name}
              width="8"
              height="8"
              patternUnits="userSpaceOnUse"
            >
              <rect width="8" height="8" class="state-ground" />
              <path d={lines} class="state-lines" />
            </pattern>
          )
        })}
      </defs>
    </svg>
  )
}

/** A state as a pattern and in words. */
export function StateMark({ state }: { readonly state: SpanState }) {
  return (
    <span class="state-mark">
      <svg width="24" height="16" aria-hidden="true" focusable="false">
        <rect width="24" height="16" class="state-box" fill={`url(#${classOf(state)})`} />
      </svg>
      <b>{state}</b>
    </span>
  )
}

interface TimelineProps {
  readonly endpoint: EndpointReport
  readonly noteMs: number
  readonly nowMs: number
}

/** The states of an endpoint in the last day, as a picture and as a table. */
export function Timeline({ endpoint, noteMs, nowMs }: TimelineProps) {
  const spans = spansOf(endpoint, noteMs, nowMs)
  const { length } = endpoint.transitions
  const count = length === 1 ? '1 change' : `${length} changes`
  return (
    <>
      <svg
        class="timeline"
        width="100%"
        height={HEIGHT}
        role="img"
        aria-label={`Last 24 hours: ${describeSpans(spans, printAge)}`}
      >
        {spans.map((span) => (
          <Bar key={`${span.fromMs} ${span.state}`} span={span} nowMs={nowMs} />
        ))}
        {TICKS.map((tick) => (
          <line
            key={tick}
            x1={`${tick}%`}
            x2={`${tick}%`}
            y1="0"
            y2={HEIGHT}
            class="timeline-tick"
          />
        ))}
      </svg>
      <p class="timeline-scale" aria-hidden="true">
        <span>-24 h</span>
        <span>-18 h</span>
        <span>-12 h</span>
        <span>-6 h</span>
        <span>now</span>
      </p>
      <details>
        <summary>{count} in the last 24 hours</summary>
        <Spans spans={spans} endpoint={endpoint} />
      </details>
    </>
  )
}

function Bar({ span, nowMs }: { readonly span: StateSpan; readonly nowMs: number }) {
  const { x, width } = placeOf(span, nowMs)
  return (
    <rect
      x={`${x}%`}
      width={`${width}%`}
      height={HEIGHT}
      class="state-box"
      fill={`url(#${classOf(span.state)})`}
    >
      <title>{`${span.state} from ${timeOf(span.fromMs)} ${printable(span.reason)}`}</title>
    </rect>
  )
}

function Spans({
  spans,
  endpoint,
}: {
  readonly spans: readonly StateSpan[]
  readonly endpoint: EndpointReport
}) {
  return (
    <Table
      caption={`States of ${printable(labelOf(endpoint))}, the newest first`}
      rows={[...spans].reverse()}
      keyOf={({ fromMs, state }) => `${fromMs} ${state}`}
      columns={[
        { title: 'From', cell: ({ fromMs }) => timeOf(fromMs) },
        { title: 'State', cell: ({ state }) => <StateMark state={state} /> },
        { title: 'For', cell: ({ fromMs, toMs }) => printAge((toMs - fromMs) / 1000) },
        { title: 'Reason', cell: ({ reason }) => printable(reason) || '-' },
        { title: 'Cause', cell: ({ actor }) => printable(actor) || '-' },
      ]}
    />
  )
}

/** What people call an endpoint. */
export function labelOf({ name, type, setIdentifier }: EndpointReport): string {
  return setIdentifier === '' ? `${name} ${type}` : `${name} ${type} ${setIdentifier}`
}

function timeOf(ms: number): string {
  return printTime(new Date(ms).toISOString())
}
