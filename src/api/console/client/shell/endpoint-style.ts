/** How an endpoint looks in all views. Its letter and pattern distinguish it without colour. */
interface EndpointStyle {
  /** A class that sets the CSS variable `--endpoint` to the colour. */
  readonly className: string
  /** Colour, as a value of CSS. It has a dark and a light form. */
  readonly colour: string
  /** Fill of shapes, as a value of `fill`: the colour with a pattern. Needs `EndpointPatterns` in the page. */
  readonly fill: string
  /** Number of the pattern. */
  readonly pattern: number
  /** `A`, `B`, … `Z`, `AA`. */
  readonly letter: string
}

export const COLOUR_COUNT = 8
export const PATTERN_COUNT = 6

/** Returns the style of an endpoint. `index`: its place among the endpoints of the name, from 0. */
export function endpointStyle(index: number): EndpointStyle {
  const colour = index % COLOUR_COUNT
  const pattern = patternOf(index)
  return {
    className: `endpoint-${colour}`,
    colour: `var(--endpoint-${colour})`,
    fill: `url(#${patternId(colour, pattern)})`,
    pattern,
    letter: letterOf(index),
  }
}

export function patternId(colour: number, pattern: number): string {
  return `endpoint-${colour}-${pattern}`
}

/** Neighbours differ; a colour that returns has another pattern. */
function patternOf(index: number): number {
  return (index + Math.floor(index / COLOUR_COUNT)) % PATTERN_COUNT
}

function letterOf(index: number): string {
  const last = String.fromCharCode(65 + (index % 26))
  return index < 26 ? last : letterOf(Math.floor(index / 26) - 1) + last
}
