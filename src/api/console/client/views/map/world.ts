import { geoNaturalEarth1, geoPath } from 'd3-geo'
import { feature } from 'topojson-client'
import type { GeometryCollection, Topology } from 'topojson-specification'
import countries from 'world-atlas/countries-110m.json'
import { WORLD_HEIGHT, WORLD_WIDTH } from './model.ts'
import { codeOfShape, DOTTED_COUNTRIES } from './places.ts'

/** A country to draw, in units of the world. */
export interface Shape {
  /** '' = unknown. */
  readonly code: string
  readonly path: Path2D
  /** Where its letters stand, and how wide it is. */
  readonly centre: readonly [number, number]
  readonly width: number
  /** True: a dot of constant size at `centre`. */
  readonly isDot: boolean
}

/** Shapes narrower than this get a dot, too. */
const NARROW = 4

let world: readonly Shape[] | undefined

/** Returns the shapes, in the Natural Earth projection. Computes them at the first call only. */
export function worldShapes(): readonly Shape[] {
  world ??= composeWorld()
  return world
}

function composeWorld(): readonly Shape[] {
  const projection = geoNaturalEarth1().fitSize([WORLD_WIDTH, WORLD_HEIGHT], { type: 'Sphere' })
  const print = geoPath(projection)
  const topology = countries as unknown as Topology<{
    countries: GeometryCollection<{ name: string }>
  }>
  const { features } = feature(topology, topology.objects.countries)
  const shapes = features.map((one): Shape => {
    const [[left], [right]] = print.bounds(one)
    const [x, y] = print.centroid(one)
    const code = codeOfShape(one.id, one.properties.name)
    return {
      code,
      path: new Path2D(print(one) ?? ''),
      centre: [x, y],
      width: right - left,
      isDot: false,
    }
  })
  const narrow = shapes.filter(({ width, code }) => width < NARROW && code !== '')
  const dots = DOTTED_COUNTRIES.flatMap(({ code, at }) => {
    const centre = projection([at[0], at[1]])
    return centre === null ? [] : [dotAt(code, centre)]
  })
  return [...shapes, ...narrow.map(({ code, centre }) => dotAt(code, centre)), ...dots]
}

function dotAt(code: string, centre: readonly [number, number]): Shape {
  return { code, path: new Path2D(), centre, width: 0, isDot: true }
}
