import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import {
  type FillPart,
  type Frame,
  move,
  WHOLE,
  WORLD_HEIGHT,
  WORLD_WIDTH,
  zoomAt,
} from './model.ts'
import { Painter } from './painter.ts'

interface MapCanvasProps {
  /** What the picture shows, for screen readers. */
  readonly label: string
  readonly fills: ReadonlyMap<string, readonly FillPart[]>
  /** The country whose details are shown; '' = none. */
  readonly marked: string
  readonly onMark: (code: string) => void
}

const ZOOM_STEP = 1.5
/** Part of the width that an arrow key moves. */
const KEY_STEP = 1 / 12
const GLIDE_MS = 180
/** A longer pause between two frames ends a movement. */
const PAUSE_MS = 100
/** A movement that pauses for so long is over: the map is drawn sharply. */
const STILL_MS = 150
/** Frames of a movement until its rate is shown. */
const FRAMES_MIN = 10

/** The frame of the map, and the rate of frames while it moves. */
class Motion {
  frame: Frame = WHOLE
  marked = ''
  readonly #painter: Painter
  readonly #report: (framesPerSecond: number) => void
  #request = 0
  #still = 0
  #target: { readonly from: Frame; readonly to: Frame; readonly startMs: number } | undefined
  #lastMs = 0
  #startMs = 0
  #frames = 0

  constructor(painter: Painter, report: (framesPerSecond: number) => void) {
    this.#painter = painter
    this.#report = report
  }

  set(frame: Frame): void {
    this.frame = frame
    this.#target = undefined
    this.redraw()
  }

  /** Moves there smoothly, unless the reader prefers less motion. */
  glide(to: Frame): void {
    if (window.matchMedia('(prefers-reduced-motion: reduce)').matches) {
      this.set(to)
      return
    }
    this.#target = { from: this.frame, to, startMs: performance.now() }
    this.redraw()
  }

  redraw(): void {
    if (this.#request === 0) this.#request = requestAnimationFrame((now) => this.#draw(now))
  }

  stop(): void {
    cancelAnimationFrame(this.#request)
    window.clearTimeout(this.#still)
  }

  #draw(nowMs: number): void {
    this.#request = 0
    window.clearTimeout(this.#still)
    this.#advance(nowMs)
    const isSharp = this.#painter.draw(this.frame, this.marked, false)
    this.#count(nowMs)
    if (this.#target !== undefined) this.redraw()
    else if (!isSharp) {
      const draw = (): void => void this.#painter.draw(this.frame, this.marked, true)
      this.#still = window.setTimeout(draw, STILL_MS)
    }
  }

  #advance(nowMs: number): void {
    if (this.#target === undefined) return
    const { from, to, startMs } = this.#target
    const part = Math.min(1, Math.max(0, (nowMs - startMs) / GLIDE_MS))
    const between = (a: number, b: number): number => a + (b - a) * part
    this.frame = {
      scale: between(from.scale, to.scale),
      x: between(from.x, to.x),
      y: between(from.y, to.y),
    }
    if (part === 1) this.#target = undefined
  }

  #count(nowMs: number): void {
    if (nowMs - this.#lastMs > PAUSE_MS) {
      this.#startMs = nowMs
      this.#frames = 0
    } else if (++this.#frames >= FRAMES_MIN) {
      this.#report(Math.round((this.#frames * 1000) / (nowMs - this.#startMs)))
    }
    this.#lastMs = nowMs
  }
}

/** The picture of the map: the wheel, a drag, the buttons and keys move it. */
export function MapCanvas({ label, fills, marked, onMark }: MapCanvasProps) {
  const canvas = useRef<HTMLCanvasElement>(null)
  const motion = useRef<Motion>(undefined)
  const painter = useRef<Painter>(undefined)
  const [isZoomed, setZoomed] = useState(false)
  useEffect(() => {
    const element = canvas.current!
    painter.current = new Painter(element)
    const report = (rate: number): void => element.setAttribute('data-fps', String(rate))
    const moving = new Motion(painter.current, report)
    motion.current = moving
    const stopInput = followInput(element, moving, () => setZoomed(moving.frame.scale > 1))
    const sizes = new ResizeObserver(() => moving.redraw())
    sizes.observe(element)
    return () => {
      stopInput()
      sizes.disconnect()
      moving.stop()
    }
  }, [])
  const scheme = useDarkness()
  useEffect(() => {
    painter.current?.setFills(fills)
    motion.current?.redraw()
  }, [fills, scheme])
  useEffect(() => {
    if (motion.current === undefined) return
    motion.current.marked = marked
    motion.current.redraw()
  }, [marked])
  const zoom = useCallback((factor: number): void => {
    const moving = motion.current!
    const to = zoomAt(moving.frame, factor, WORLD_WIDTH / 2, WORLD_HEIGHT / 2)
    moving.glide(to)
    setZoomed(to.scale > 1)
  }, [])
  const showAll = (): void => {
    motion.current!.glide(WHOLE)
    setZoomed(false)
  }
  const pick = (event: MouseEvent): void => {
    const { x, y } = positionOf(event, canvas.current!)
    onMark(painter.current!.placeAt(motion.current!.frame, x, y))
  }
  return (
    <div class="map">
      <canvas
        ref={canvas}
        class="map-canvas"
        role="img"
        aria-label={label}
        tabIndex={0}
        onMouseMove={pick}
        onClick={pick}
      />
      <MapButtons isZoomed={isZoomed} zoom={zoom} showAll={showAll} />
    </div>
  )
}

interface MapButtonsProps {
  readonly isZoomed: boolean
  readonly zoom: (factor: number) => void
  readonly showAll: () => void
}

function MapButtons({ isZoomed, zoom, showAll }: MapButtonsProps) {
  return (
    <div class="map-buttons">
      <button type="button" aria-label="Zoom in" onClick={() => zoom(ZOOM_STEP)}>
        +
      </button>
      <button
        type="button"
        aria-label="Zoom out"
        disabled={!isZoomed}
        onClick={() => zoom(1 / ZOOM_STEP)}
      >
        −
      </button>
      <button type="button" disabled={!isZoomed} onClick={showAll}>
        Whole world
      </button>
    </div>
  )
}

function useDarkness(): boolean {
  const query = window.matchMedia('(prefers-color-scheme: dark)')
  const [isDark, setDark] = useState(query.matches)
  useEffect(() => {
    const follow = (): void => setDark(query.matches)
    query.addEventListener('change', follow)
    return () => query.removeEventListener('change', follow)
  }, [])
  return isDark
}

function positionOf(event: MouseEvent, canvas: HTMLCanvasElement): { x: number; y: number } {
  const { left, top } = canvas.getBoundingClientRect()
  return { x: event.clientX - left, y: event.clientY - top }
}

/** Returns the function that ends it. */
function followInput(canvas: HTMLCanvasElement, motion: Motion, moved: () => void): () => void {
  const stop = new AbortController()
  const { signal } = stop
  const unit = (): number => canvas.clientWidth / WORLD_WIDTH
  const set = (frame: Frame): void => {
    motion.set(frame)
    moved()
  }
  canvas.addEventListener(
    'wheel',
    (event) => {
      const factor = 2 ** (-event.deltaY / (event.deltaMode === 0 ? 300 : 10))
      const { x, y } = positionOf(event, canvas)
      const next = zoomAt(motion.frame, factor, x / unit(), y / unit())
      // At the ends of the zoom, the page scrolls.
      if (next.scale === motion.frame.scale) return
      event.preventDefault()
      set(next)
    },
    { passive: false, signal },
  )
  canvas.addEventListener('pointerdown', ({ pointerId }) => canvas.setPointerCapture(pointerId), {
    signal,
  })
  canvas.addEventListener(
    'pointermove',
    ({ buttons, movementX, movementY }) => {
      if (buttons !== 1) return
      set(move(motion.frame, movementX / unit(), movementY / unit()))
    },
    { signal },
  )
  canvas.addEventListener(
    'keydown',
    (event) => {
      const next = frameOfKey(event.key, motion.frame)
      if (next === undefined || event.ctrlKey || event.metaKey || event.altKey) return
      event.preventDefault()
      motion.glide(next)
      moved()
    },
    { signal },
  )
  return () => stop.abort()
}

function frameOfKey(key: string, frame: Frame): Frame | undefined {
  const step = WORLD_WIDTH * KEY_STEP
  const [x, y] = [WORLD_WIDTH / 2, WORLD_HEIGHT / 2]
  switch (key) {
    case 'ArrowLeft':
      return move(frame, step, 0)
    case 'ArrowRight':
      return move(frame, -step, 0)
    case 'ArrowUp':
      return move(frame, 0, step)
    case 'ArrowDown':
      return move(frame, 0, -step)
    case '+':
    case '=':
      return zoomAt(frame, ZOOM_STEP, x, y)
    case '-':
      return zoomAt(frame, 1 / ZOOM_STEP, x, y)
    case '0':
      return WHOLE
    default:
      return undefined
  }
}
