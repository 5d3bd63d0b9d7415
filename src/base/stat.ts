import { type Stats, statSync } from 'node:fs'

/**
 * What is at `path`, symbolic links followed; undefined where nothing is or where it can't be told (a
 * link in a circle, a folder without permission): for those who look again later anyway.
 */
export function statIfAny(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false })
  } catch (error) {
    if (error instanceof Error && 'syscall' in error) return undefined
    throw error
  }
}
