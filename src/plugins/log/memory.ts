/*
 * Memory in which entries are read and lines are printed. A module declares it, so V8 knows its
 * place when it compiles code. A module that uses the constants binds them itself.
 */

/** Entries, one after the other: room for more than arrive at once. */
const entryBuffer = new ArrayBuffer(2 ** 16)
export const entryOctets = new Uint8Array(entryBuffer)
export const entryWords = new Int32Array(entryBuffer)
export const entryView = new DataView(entryBuffer)

/** Longest line of a format. The system allocates the memory on first use. */
export const LINE_OCTETS_MAX = 2 ** 19
/** Lines are passed on when they reach this size. */
export const TEXT_FULL_OCTETS = 2 ** 14
const textBuffer = new ArrayBuffer(TEXT_FULL_OCTETS + LINE_OCTETS_MAX)
export const textOctets = Buffer.from(textBuffer)
export const textView = new DataView(textBuffer)
