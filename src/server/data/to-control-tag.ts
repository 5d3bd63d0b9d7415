/** The tag of log lines: whole lines, newlines included. */
export const LINES_TO_CONTROL = 0xffff

const GENERATION_MASK = 0x7fff

/**
 * Tag of the texts of one `toControl` channel in a thread's ring: the instance in the high half,
 * the channel in the low.
 */
export function toControlTag(generation: number, toControl: number): number {
  return (generation & GENERATION_MASK) * 0x10000 + toControl
}

/** Whether a tag belongs to the instance of this generation. */
export function isOfGeneration(tag: number, generation: number): boolean {
  return tag >>> 16 === (generation & GENERATION_MASK)
}

export function toControlOf(tag: number): number {
  return tag & 0xffff
}
