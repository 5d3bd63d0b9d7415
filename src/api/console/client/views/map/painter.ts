import { PATTERN_LINES } from '../../shell/endpoint-patterns.tsx'
import { endpointStyle } from '../../shell/endpoint-style.ts'
import { type FillPart, type Frame, WORLD_HEIGHT, WORLD_WIDTH } from './model.ts'
import { type Shape, worldShapes } from './world.ts'

const DOT_RADIUS = 4
const TILE = 32
/** Narrower countries have no letters. */
const LETTER_WIDTH_MIN = 26
/** Height of letters that this width is for. */
const LETTER_HEIGHT = 11
/** Part of the view that a picture has beyond each of its edges. */
const MARGIN = 1 / 8
/** A picture that is magnified more is painted again. */
const RATIO_MAX = 1.25

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

/** The view, in pixels of the canvas. */
interface View {
  readonly width: number
  readonly height: number
  /** Pixels of one CSS pixel. */
  readonly dense: number
  /** Pixels of one unit of the world. */
  readonly unit: number
}

/** A part of the map that was painted once, which the view is copied from. */
interface Picture {
  readonly frame: Frame
  readonly unit: number
  /** Its place in the view of `frame`. */
  readonly left: number
  readonly top: number
}

/** Draws a map on a canvas. A movement copies it from a picture. */
export class Painter {
  readonly #canvas: HTMLCanvasElement
  readonly #context: CanvasRenderingContext2D
  readonly #pictured = document.createElement('canvas')
  #picture: Picture | undefined
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
    this.#picture = undefined
    this.#byKey = new Map()
    this.#fills = new Map([...parts].map(([code, fill]) => [code, this.#fill(fill)]))
  }

  /** The code of the place at a point of the canvas, in CSS pixels; '' = none. */
  placeAt(frame: Frame, x: number, y: number): string {
    const unit = this.#unit
    const [wx, wy] = [(x / unit - frame.x) / frame.scale, (y / unit - frame.y) / frame.scale]
    const reach = (DOT_RADIUS + 2) / (frame.scale * unit)
    const dot = worldShapes().find(({ isDot, centre }) => {
      return isDot && Math.hypot(centre[0] - wx, centre[1] - wy) <= reach
    })
    if (dot !== undefined) return dot.code
    const context = this.#context
    context.setTransform(1, 0, 0, 1, 0, 0)
    return worldShapes().find(({ path }) => context.isPointInPath(path, wx, wy))?.code ?? ''
  }

  /** CSS pixels of one unit of the world. */
  get #unit(): number {
    return this.#canvas.clientWidth / WORLD_WIDTH
  }

  /**
   * Draws a frame. `marked`: the place that is outlined. `isStill`: sharply, because nothing moves. Returns false if
   * the frame is magnified or shifted from another one.
   */
  draw(frame: Frame, marked: string, isStill: boolean): boolean {
    const view = this.#fit()
    // Not shown, and no canvas without pixels can be copied.
    if (view.width === 0) return true
    let picture = this.#picture
    if (picture === undefined || !this.#suits(picture, frame, view, isStill)) {
      picture = this.#paintPicture(frame, view)
    }
    const context = this.#context
    context.setTransform(1, 0, 0, 1, 0, 0)
    context.clearRect(0, 0, view.width, view.height)
    const { left, top, width, height } = this.#placeOf(picture, frame)
    context.drawImage(this.#pictured, left, top, width, height)
    this.#outline(frame, marked, view)
    return picture.frame === frame
  }

  /** Gives the canvas as many pixels as it has on the screen. */
  #fit(): View {
    const canvas = this.#canvas
    const dense = Math.min(2, window.devicePixelRatio || 1)
    const width = Math.round(canvas.clientWidth * dense)
    const height = Math.round((width * WORLD_HEIGHT) / WORLD_WIDTH)
    if (canvas.width !== width || canvas.height !== height) {
      canvas.width = width
      canvas.height = height
    }
    return { width, height, dense, unit: width / WORLD_WIDTH }
  }

  #suits(picture: Picture, frame: Frame, { width, height, unit }: View, isStill: boolean): boolean {
    if (picture.frame === frame) return picture.unit === unit
    if (isStill || picture.unit !== unit || frame.scale > picture.frame.scale * RATIO_MAX) {
      return false
    }
    const at = this.#placeOf(picture, frame)
    const [right, bottom] = [at.left + at.width, at.top + at.height]
    return at.left < 1 && at.top < 1 && right > width - 1 && bottom > height - 1
  }

  /** Returns where a frame shows the picture. */
  #placeOf({ frame: from, unit, left, top }: Picture, { scale, x, y }: Frame) {
    const ratio = scale / from.scale
    const at = { left: (left - from.x * unit) * ratio, top: (top - from.y * unit) * ratio }
    // Whole pixels stay sharp, and are copied quickly.
    const exact = (value: number): number => (ratio === 1 ? Math.round(value) : value)
    const { width, height } = this.#pictured
    return {
      left: exact(at.left + x * unit),
      top: exact(at.top + y * unit),
      width: width * ratio,
      height: height * ratio,
    }
  }

  #paintPicture(frame: Frame, { width, height, dense, unit }: View): Picture {
    const scale = frame.scale * unit
    // Nothing is beyond the edges of the world.
    const start = (offset: number, size: number): number => {
      return Math.floor(Math.max(offset * unit, -size * MARGIN))
    }
    const end = (offset: number, world: number, size: number): number => {
      return Math.ceil(Math.min(offset * unit + world * scale, size * (1 + MARGIN)))
    }
    const [left, top] = [start(frame.x, width), start(frame.y, height)]
    const canvas = this.#pictured
    canvas.width = end(frame.x, WORLD_WIDTH, width) - left
    canvas.height = end(frame.y, WORLD_HEIGHT, height) - top
    const context = canvas.getContext('2d')!
    const [x, y] = [frame.x * unit - left, frame.y * unit - top]
    context.setTransform(scale, 0, 0, scale, x, y)
    for (const { style } of this.#byKey.values()) {
      // Patterns keep their size on the screen.
      if (typeof style !== 'string') style.setTransform(new DOMMatrix().scale(dense / scale))
    }
    this.#drawShapes(context, dense / scale)
    context.setTransform(1, 0, 0, 1, x, y)
    this.#drawLetters(context, dense, scale)
    this.#picture = { frame, unit, left, top }
    return this.#picture
  }

  /** `pixel`: in units of the world. */
  #drawShapes(context: CanvasRenderingContext2D, pixel: number): void {
    context.lineJoin = 'round'
    context.strokeStyle = this.#look.ground
    context.lineWidth = 0.75 * pixel
    for (const shape of worldShapes()) {
      const path = this.#pathOf(shape, pixel)
      context.fillStyle = this.#fills.get(shape.code)?.style ?? this.#look.empty
      context.fill(path)
      context.stroke(path)
    }
  }

  #outline(frame: Frame, marked: string, { dense, unit }: View): void {
    if (marked === '') return
    const scale = frame.scale * unit
    const context = this.#context
    context.setTransform(scale, 0, 0, scale, frame.x * unit, frame.y * unit)
    context.lineJoin = 'round'
    context.strokeStyle = this.#look.accent
    context.lineWidth = (3 * dense) / scale
    for (const shape of worldShapes()) {
      if (shape.code === marked) context.stroke(this.#pathOf(shape, dense / scale))
    }
  }

  #pathOf(shape: Shape, pixel: number): Path2D {
    return shape.isDot ? this.#dot(shape, pixel) : shape.path
  }

  #dot({ centre: [x, y] }: Shape, pixel: number): Path2D {
    const path = new Path2D()
    path.arc(x, y, DOT_RADIUS * pixel, 0, 2 * Math.PI)
    return path
  }

  #drawLetters(context: CanvasRenderingContext2D, dense: number, scale: number): void {
    context.font = `600 ${this.#look.letters * dense}px system-ui, sans-serif`
    context.textAlign = 'center'
    context.textBaseline = 'middle'
    context.lineWidth = 3 * dense
    context.strokeStyle = this.#look.ground
    context.fillStyle = this.#look.text
    for (const { code, centre, width, isDot } of worldShapes()) {
      const { letters } = this.#fills.get(code) ?? { letters: '' }
      const least =
        LETTER_WIDTH_MIN *
        (this.#look.letters / LETTER_HEIGHT) *
        dense *
        Math.max(1, letters.length / 2)
      if (isDot || letters === '' || width * scale < least) continue
      const [x, y] = [centre[0] * scale, centre[1] * scale]
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
