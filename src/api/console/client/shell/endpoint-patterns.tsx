import { COLOUR_COUNT, endpointStyle, PATTERN_COUNT, patternId } from './endpoint-style.ts'

/** Lines of each pattern, in a square of 8 units. The first one is plain. */
export const PATTERN_LINES = [
  '',
  'M0 8 8 0',
  'M0 0 8 8',
  'M0 4H8',
  'M4 0V8',
  'M0 0 8 8M0 8 8 0',
] as const

/** The patterns of all endpoints. The shell has them once for all views. */
export function EndpointPatterns() {
  const colours = Array.from({ length: COLOUR_COUNT }, (_, i) => i)
  const patterns = Array.from({ length: PATTERN_COUNT }, (_, i) => i)
  return (
    <svg class="patterns" width="0" height="0" aria-hidden="true" focusable="false">
      <defs>
        {colours.flatMap((colour) =>
          patterns.map((pattern) => (
            <pattern
              key={patternId(colour, pattern)}
              id={patternId(colour, pattern)}
              width="8"
              height="8"
              patternUnits="userSpaceOnUse"
              class={`endpoint-${colour}`}
            >
              <rect width="8" height="8" class="pattern-ground" />
              <path d={PATTERN_LINES[pattern]} class="pattern-lines" />
            </pattern>
          )),
        )}
      </defs>
    </svg>
  )
}

/** The colour, pattern and letter of an endpoint, to stand before its name in lists and tables. */
export function EndpointMark({ index }: { readonly index: number }) {
  const { className, fill, letter } = endpointStyle(index)
  return (
    <span class={`endpoint-mark ${className}`}>
      <svg width="16" height="16" viewBox="0 0 16 16" aria-hidden="true" focusable="false">
        <rect width="16" height="16" rx="3" fill={fill} />
      </svg>
      <b>{letter}</b>
    </span>
  )
}
