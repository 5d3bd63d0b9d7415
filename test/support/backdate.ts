import { readdirSync, utimesSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Makes all files in a directory, and below, some seconds old. A file system may store times in steps of milliseconds: what is
 * as long as before and was written in the same step can't be distinguished from what was there.
 */
export function backdate(directory: string): void {
  const seconds = Date.now() / 1000 - 10
  for (const entry of readdirSync(directory, { recursive: true, withFileTypes: true })) {
    if (entry.isFile()) utimesSync(join(entry.parentPath, entry.name), seconds, seconds)
  }
}
