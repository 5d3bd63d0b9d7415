import { escapeControls } from '../base/telemetry/log.ts'
import { type BeginProgress, setProgress, type WorkProgress } from '../base/telemetry/progress.ts'
import { systemTimers, type Timers } from '../base/timers.ts'

/** Work that ends sooner is not shown. */
const DELAY_MS = 1000
/** Time between two drawings. */
const EVERY_MS = 100
/** Of the bar between its brackets. */
const CELLS = 20
/** Of a line: it fits into the smallest usual terminal, and a log line covers it. */
const COLUMNS = 60
/** EL (ECMA-48 section 8.3.41): erases from the cursor to the end of the line. */
const ERASE = '\x1b[K'
const HIDDEN: WorkProgress = { at: () => {}, end: () => {} }

interface Parts {
  readonly write: (text: string) => void
  /** Monotonic milliseconds. */
  readonly now: () => number
  readonly timers: Pick<Timers, 'every'>
}

/** Shows the work of this thread on a terminal. */
export function showProgress(terminal: { write(text: string): unknown }): void {
  setProgress(
    progressBars({
      write: (text) => void terminal.write(text),
      now: () => performance.now(),
      timers: systemTimers,
    }),
  )
}

/**
 * Shows work as a bar on the last line of a terminal; without a known total as a count, or as the seconds since
 * its start. Of work within or beside other work, only what began first is shown. After each drawing the cursor is
 * at the start of the line, so that other output covers it.
 */
export function progressBars({ write, now, timers }: Parts): BeginProgress {
  let isBusy = false
  return (what) => {
    if (isBusy) return HIDDEN
    isBusy = true
    const startMs = now()
    let drawnMs = startMs + DELAY_MS - EVERY_MS
    let hasDrawn = false
    let done = 0
    let total = 0
    const draw = (): void => {
      const ms = now()
      if (ms - drawnMs < EVERY_MS) return
      drawnMs = ms
      hasDrawn = true
      write(`\r${composeBar(what, done, total, (ms - startMs) / 1000)}${ERASE}\r`)
    }
    // A load in another thread leaves this one idle, and calls nothing.
    const stop = timers.every(EVERY_MS, draw)
    return {
      at: (nextDone, nextTotal) => {
        done = nextDone
        total = nextTotal
        draw()
      },
      end: () => {
        stop()
        isBusy = false
        if (hasDrawn) write(`\r${ERASE}`)
      },
    }
  }
}

function composeBar(what: string, done: number, total: number, seconds: number): string {
  if (total <= 0) return compose(what, done > 0 ? `${done}` : `${Math.floor(seconds)} s`)
  const share = Math.min(1, done / total)
  const filled = Math.floor(share * CELLS)
  const bar = `[${'#'.repeat(filled)}${' '.repeat(CELLS - filled)}]`
  return compose(what, `${bar} ${`${Math.floor(share * 100)}`.padStart(3)} %`)
}

/** The end of a path says more than its start. */
function compose(what: string, state: string): string {
  const room = COLUMNS - state.length - 1
  const text = escapeControls(what)
  const cut = text.length <= room ? text : `…${text.slice(text.length - room + 1)}`
  return `${cut} ${state}`
}
