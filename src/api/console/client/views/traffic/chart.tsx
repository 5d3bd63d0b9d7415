import { useEffect, useRef, useState } from 'preact/hooks'
import UPlot from 'uplot'
import { printTime } from '../../shell/format.ts'
import { printable } from '../../shell/printable.ts'
import { Table } from '../../shell/table.tsx'
import { type CurveSet, printValue } from './curves.ts'

interface ChartProps extends CurveSet {
  readonly title: string
  /** Of the vertical axis. */
  readonly unit: string
  /** The axis is logarithmic, for values above 0. */
  readonly isLogarithmic?: boolean
}

/** Pixels between two times of the axis: more than their text needs. */
const TIME_SPACE = 80
const HEIGHT = 240
const WIDTH_MIN = 200
/** Lines differ by their dashes too. */
const DASHES = [[], [8, 4], [2, 3], [12, 3, 2, 3], [5, 2], [1, 6]] as const
const COLOURS = 8
const DARK = '(prefers-color-scheme: dark)'

/** Lines over time, their values at the pointer or else the last ones, and all of them as a table. */
export function Chart({ title, unit, seconds, curves, isLogarithmic = false }: ChartProps) {
  const [pointed, setPointed] = useState<number | undefined>(undefined)
  const last = seconds.length - 1
  const shown = Math.min(pointed ?? last, last)
  return (
    <figure class="chart">
      <figcaption>
        {title}
        <small>{shown >= 0 && ` at ${printSecond(seconds[shown]!)}`}</small>
      </figcaption>
      <ul class="chart-legend">
        {curves.map(({ label, values }, i) => (
          <li key={label}>
            <svg width="32" height="8" aria-hidden="true" focusable="false">
              <line
                x1="0"
                y1="4"
                x2="32"
                y2="4"
                stroke={`var(--endpoint-${i % COLOURS})`}
                stroke-width="3"
                stroke-dasharray={dashOf(i).join(' ')}
              />
            </svg>
            {printable(label)}: <b>{printValue(values[shown])}</b>
          </li>
        ))}
      </ul>
      <Canvas {...{ title, unit, seconds, curves, isLogarithmic }} onPoint={setPointed} />
      <CurveTable title={title} unit={unit} seconds={seconds} curves={curves} />
    </figure>
  )
}

interface CanvasProps extends Required<ChartProps> {
  readonly onPoint: (index: number | undefined) => void
}

/** What screen readers get is the table. */
function Canvas(props: CanvasProps) {
  const { title, unit, seconds, curves, isLogarithmic, onPoint } = props
  const box = useRef<HTMLDivElement>(null)
  const plot = useRef<UPlot | undefined>(undefined)
  const isDark = useMedia(DARK)
  const labels = curves.map(({ label }) => label).join('\n')
  useEffect(() => {
    const own = box.current!
    const options = optionsOf(props, own, onPoint)
    plot.current = new UPlot(options, [[], ...curves.map(() => [])], own)
    const resize = (): void => plot.current?.setSize({ width: widthOf(own), height: HEIGHT })
    const observer = new ResizeObserver(resize)
    observer.observe(own)
    return () => {
      observer.disconnect()
      plot.current?.destroy()
      plot.current = undefined
    }
  }, [isDark, labels, unit, isLogarithmic])
  useEffect(() => {
    plot.current?.setData([[...seconds], ...curves.map(({ values }) => [...values])])
  }, [isDark, labels, unit, isLogarithmic, seconds, curves])
  const text = `${title}: a chart of ${curves.map(({ label }) => printable(label)).join(', ')}. The table below it has the values.`
  return <div ref={box} class="chart-canvas" role="img" aria-label={text} />
}

function optionsOf(
  { unit, curves, isLogarithmic }: CanvasProps,
  box: HTMLElement,
  onPoint: CanvasProps['onPoint'],
): UPlot.Options {
  const style = getComputedStyle(box)
  const colour = (name: string): string => style.getPropertyValue(name).trim()
  const font = `12px ${style.fontFamily}`
  const axis = {
    stroke: colour('--text'),
    grid: { stroke: colour('--line'), width: 1 },
    ticks: { stroke: colour('--line'), width: 1 },
    font,
    labelFont: font,
  }
  return {
    width: widthOf(box),
    height: HEIGHT,
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false, setScale: false } },
    scales: {
      y: isLogarithmic ? { distr: 3 } : { range: (_plot, _min, max) => [0, max * 1.1 || 1] },
    },
    axes: [
      {
        ...axis,
        label: 'time',
        space: TIME_SPACE,
        values: (_plot, values, _axis, _space, step) =>
          values.map((value) => printClock(value, step)),
      },
      {
        ...axis,
        label: unit,
        size: 64,
        values: (_plot, values) => values.map((value) => (value === null ? '' : printValue(value))),
      },
    ],
    series: [
      {},
      ...curves.map(({ label }, i) => {
        return {
          label,
          stroke: colour(`--endpoint-${i % COLOURS}`),
          width: 2,
          dash: [...dashOf(i)],
          points: { show: (plot: UPlot) => plot.data[0].length < 3 },
        }
      }),
    ],
    hooks: { setCursor: [({ cursor }) => onPoint(cursor.idx ?? undefined)] },
  }
}

/** The newest values first. */
function CurveTable({ title, unit, seconds, curves }: Omit<ChartProps, 'isLogarithmic'>) {
  const [isOpen, setOpen] = useState(false)
  const rows = isOpen ? seconds.map((_, i) => seconds.length - 1 - i) : []
  return (
    <details onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>{title} as a table</summary>
      {isOpen && (
        <Table
          caption={`${title} (${unit})`}
          rows={rows}
          keyOf={(i) => String(seconds[i])}
          empty="No values yet."
          columns={[
            { title: 'Time', cell: (i) => printSecond(seconds[i]!) },
            ...curves.map(({ label, values }) => {
              return {
                title: printable(label),
                cell: (i: number) => printValue(values[i]),
                isNumber: true,
              }
            }),
          ]}
        />
      )}
    </details>
  )
}

function useMedia(query: string): boolean {
  const [matches, setMatches] = useState(() => window.matchMedia(query).matches)
  useEffect(() => {
    const media = window.matchMedia(query)
    const take = (): void => setMatches(media.matches)
    media.addEventListener('change', take)
    return () => media.removeEventListener('change', take)
  }, [query])
  return matches
}

function widthOf(box: HTMLElement): number {
  return Math.max(WIDTH_MIN, box.clientWidth)
}

function dashOf(index: number): readonly number[] {
  return DASHES[index % DASHES.length]!
}

/** `stepSeconds`: from one label of the axis to the next. */
function printClock(seconds: number, stepSeconds: number): string {
  const time = printSecond(seconds).split(' ')[1]!
  return stepSeconds < 60 ? time : time.slice(0, 5)
}

function printSecond(seconds: number): string {
  return printTime(new Date(seconds * 1000).toISOString())
}
