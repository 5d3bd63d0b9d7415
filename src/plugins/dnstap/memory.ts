/*
 * Memory in which entries are read and frames are written. A module declares it, so V8 knows its place when it compiles
 * code. A module that uses the constants binds them itself.
 */

/** More than one entry has, and than data threads send at once. */
const ENTRIES_OCTETS = 2 ** 18
const entryBuffer = new ArrayBuffer(ENTRIES_OCTETS)
export const entryOctets = new Uint8Array(entryBuffer)
export const entryWords = new Int32Array(entryBuffer)
export const entryNumbers = new Float64Array(entryBuffer)
export const entryView = new DataView(entryBuffer)

/** Frames are passed on when they reach this size. */
export const FRAMES_FULL_OCTETS = 2 ** 14
/** More than the frames of one entry have besides. */
const FRAMES_OCTETS_MAX = FRAMES_FULL_OCTETS + 2 ** 18
const frameBuffer = new ArrayBuffer(FRAMES_OCTETS_MAX)
export const frameOctets = Buffer.from(frameBuffer)
export const frameView = new DataView(frameBuffer)
