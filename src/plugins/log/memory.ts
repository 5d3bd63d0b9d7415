/*
 * Memory in which records are read and lines are printed. A module declares it, so V8 knows its
 * place when it compiles code. A module that uses the constants binds them itself.
 */

/** Records, one after the other: room for more than arrive at once. */
const recordBuffer = new ArrayBuffer(2 ** 16)
export const recordOctets = new Uint8Array(recordBuffer)
export const recordWords = new Int32Array(recordBuffer)
export const recordView = new DataView(recordBuffer)

/** Longest line of a format. The system allocates the memory on first use. */
export const LINE_OCTETS_MAX = 2 ** 19
/** Lines are passed on when they reach this size. */
export const TEXT_FULL_OCTETS = 2 ** 14
const textBuffer = new ArrayBuffer(TEXT_FULL_OCTETS + LINE_OCTETS_MAX)
export const textOctets = Buffer.from(textBuffer)
export const textView = new DataView(textBuffer)
