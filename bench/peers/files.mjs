import { closeSync, openSync, writeSync } from 'node:fs'

/** Writes a string, or the strings of an iterable, without holding a million lines at once. */
export function write(path, text) {
  const file = openSync(path, 'w')
  try {
    let batch = ''
    for (const part of typeof text === 'string' ? [text] : text) {
      batch += part
      if (batch.length < 1 << 20) continue
      writeSync(file, batch)
      batch = ''
    }
    writeSync(file, batch)
  } finally {
    closeSync(file)
  }
}
