/*
 * Where records are read and lines are printed: memories that a module declares itself, whose place V8 knows when it
 * compiles code. Whoever uses them binds them in its own module.
 */

/** Records, one behind the other: more than come at once. */
const recordBuffer = new ArrayBuffer(2 ** 16)
export const recordOctets = new Uint8Array(recordBuffer)
export const recordWords = new Int32Array(recordBuffer)
export const recordView = new DataView(recordBuffer)

/** Longest line that a format may come to. Memory is taken when it is first touched. */
export const LINE_OCTETS_MAX = 2 ** 19
/** Lines are handed on when they come to this much. */
export const TEXT_FULL_OCTETS = 2 ** 14
const textBuffer = new ArrayBuffer(TEXT_FULL_OCTETS + LINE_OCTETS_MAX)
export const textOctets = Buffer.from(textBuffer)
export const textView = new DataView(textBuffer)
