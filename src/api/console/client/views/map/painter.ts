import { PATTERN_LINES } from '../../shell/endpoint-patterns.tsx'
import { endpointStyle } from '../../shell/endpoint-style.ts'
import { type FillPart, type Frame, WORLD_HEIGHT, WORLD_WIDTH } from './model.ts'
import { composeWorld, type Shape } from './world.ts'

const DOT_RADIUS = 4
const TILE = 32
/** Narrower countries have no letters. */
const LETTER_WIDTH_MIN = 26
/** Height of letters that this width is for. */
const LETTER_HEIGHT = 11

interface Look {
  readonly ground: string
  readonly line: string
  readonly empty: string
  readonly text: string
  readonly accent: string
  readonly pattern: string
  /** Height of letters, in CSS pixels. */
  readonly letters: number
}

/** How the clients of a place are drawn. */
interface Fill {
  readonly style: CanvasPattern | string
  readonly letters: string
}

/** Draws a map on a canvas. Its shapes are computed once. */
export class Painter {
  readonly #canvas: HTMLCanvasElement
  readonly #context: CanvasRenderingContext2D
  readonly #shapes = composeWorld()
  #fills = new Map<string, Fill>()
  #byKey = new Map<string, Fill>()
  #look: Look

  constructor(canvas: HTMLCanvasElement) {
    this.#canvas = canvas
    this.#context = canvas.getContext('2d')!
    this.#look = readLook(canvas)
  }

  /** Uses the fills of places from the next frame on, with the colours of the page. */
  setFills(parts: ReadonlyMap<string, readonly FillPart[]>): void {
    this.#look = readLook(this.#canvas)
    this.#byKey = new Map()
    this.#fills = new Map([...parts].map(([code, fill]) => [code, this.#fill(fill)]))
  }

  /** The code of the place at a point of the canvas, in CSS pixels; '' = none. */
  placeAt(frame: Frame, x: number, y: number): string {
    const unit = this.#unit
    const [wx, wy] = [(x / unit - frame.x) / frame.scale, (y / unit - frame.y) / frame.scale]
    const reach = (DOT_RADIUS + 2) / (frame.scale * unit)
    const dot = this.#shapes.find(({ isDot, centre }) => {
      return isDot && Math.hypot(centre[0] - wx, centre[1] - wy) <= reach
    })
    if (dot !== undefined) return dot.code
    const context = this.#context
    context.setTransform(1, 0, 0, 1, 0, 0)
    return this.#shapes.find(({ path }) => context.isPointInPath(path, wx, wy))?.code ?? ''
  }

  /** CSS pixels of one unit of the world. */
  get #unit(): number {
    return this.#canvas.clientWidth / WORLD_WIDTH
  }

  /** `marked`: the place that is outlined. */
  draw(frame: Frame, marked: string): void {
    const canvas = this.#canvas
    const dense = Math.min(2, window.devicePixelRatio || 1)
    const width = Math.round(canvas.clientWidth * dense)
    const height = Math.round((width * WORLD_HEIGHT) / WORLD_WIDTH)
    if (canvas.width !== width || canvas.height !== height) {
      canvas.width = width
      canvas.height = height
    }
    const unit = width / WORLD_WIDTH
    const scale = frame.scale * unit
    const context = this.#context
    context.setTransform(1, 0, 0, 1, 0, 0)
    context.clearRect(0, 0, width, height)
    context.setTransform(scale, 0, 0, scale, frame.x * unit, frame.y * unit)
    for (const { style } of this.#byKey.values()) {
      // Patterns keep their size on the screen.
      if (typeof style !== 'string') style.setTransform(new DOMMatrix().scale(dense / scale))
    }
    this.#drawShapes(dense / scale, marked)
    this.#drawLetters(dense, scale, frame, unit)
  }

  /** `pixel`: in units of the world. */
  #drawShapes(pixel: number, marked: string): void {
    const context = this.#context
    context.lineJoin = 'round'
    const outline = (shape: Shape): void => {
      const isMarked = marked !== '' && shape.code === marked
      context.strokeStyle = isMarked ? this.#look.accent : this.#look.ground
      context.lineWidth = (isMarked ? 3 : 0.75) * pixel
      context.stroke(shape.isDot ? this.#dot(shape, pixel) : shape.path)
    }
    for (const shape of this.#shapes) {
      context.fillStyle = this.#fills.get(shape.code)?.style ?? this.#look.empty
      context.fill(shape.isDot ? this.#dot(shape, pixel) : shape.path)
      outline(shape)
    }
    for (const shape of this.#shapes) if (shape.code === marked && marked !== '') outline(shape)
  }

  #dot({ centre: [x, y] }: Shape, pixel: number): Path2D {
    const path = new Path2D()
    path.arc(x, y, DOT_RADIUS * pixel, 0, 2 * Math.PI)
    return path
  }

  #drawLetters(dense: number, scale: number, frame: Frame, unit: number): void {
    const context = this.#context
    context.setTransform(1, 0, 0, 1, 0, 0)
    context.font = `600 ${this.#look.letters * dense}px system-ui, sans-serif`
    context.textAlign = 'center'
    context.textBaseline = 'middle'
    context.lineWidth = 3 * dense
    context.strokeStyle = this.#look.ground
    context.fillStyle = this.#look.text
    for (const { code, centre, width, isDot } of this.#shapes) {
      const { letters } = this.#fills.get(code) ?? { letters: '' }
      const least =
        LETTER_WIDTH_MIN *
        (this.#look.letters / LETTER_HEIGHT) *
        dense *
        Math.max(1, letters.length / 2)
      if (isDot || letters === '' || width * scale < least) continue
      const [x, y] = [centre[0] * scale + frame.x * unit, centre[1] * scale + frame.y * unit]
      context.strokeText(letters, x, y)
      context.fillText(letters, x, y)
    }
  }

  #fill(parts: readonly FillPart[]): Fill {
    const key = parts.map(({ answer, part }) => `${answer}:${part.toFixed(3)}`).join()
    const known = this.#byKey.get(key)
    if (known !== undefined) return known
    const letters = parts.map(({ answer }) => (answer < 0 ? '…' : endpointStyle(answer).letter))
    const made = { style: this.#tile(parts), letters: letters.join('') }
    this.#byKey.set(key, made)
    return made
  }

  /** Returns a pattern with a stripe for each part. */
  #tile(parts: readonly FillPart[]): CanvasPattern | string {
    const tile = document.createElement('canvas')
    tile.width = TILE
    tile.height = TILE
    const context = tile.getContext('2d')!
    let start = 0
    for (const { answer, part } of parts) {
      const width = part * TILE
      context.save()
      context.beginPath()
      context.rect(start, 0, width, TILE)
      context.clip()
      this.#paint(context, answer)
      context.restore()
      start += width
    }
    return this.#context.createPattern(tile, 'repeat') ?? this.#look.empty
  }

  #paint(context: CanvasRenderingContext2D, answer: number): void {
    context.fillStyle = this.#look.empty
    if (answer >= 0) {
      const { className } = endpointStyle(answer)
      context.fillStyle = readVariable(this.#canvas, `--${className}`)
    }
    context.fillRect(0, 0, TILE, TILE)
    if (answer < 0) return
    const lines = new Path2D(PATTERN_LINES[endpointStyle(answer).pattern])
    context.strokeStyle = this.#look.pattern
    context.lineWidth = 1.5
    for (let x = 0; x < TILE; x += 8) {
      for (let y = 0; y < TILE; y += 8) {
        context.setTransform(1, 0, 0, 1, x, y)
        context.stroke(lines)
      }
    }
  }
}

function readLook(canvas: HTMLCanvasElement): Look {
  const read = (name: string): string => readVariable(canvas, name)
  return {
    ground: read('--ground'),
    line: read('--line'),
    empty: read('--line'),
    text: read('--text'),
    accent: read('--accent'),
    pattern: read('--pattern'),
    letters: 0.7 * Number.parseFloat(getComputedStyle(canvas).fontSize),
  }
}

function readVariable(canvas: HTMLCanvasElement, name: string): string {
  return getComputedStyle(canvas).getPropertyValue(name).trim()
}
