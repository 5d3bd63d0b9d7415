import { type Stats, statSync } from 'node:fs'

/**
 * The file at `path`, following symbolic links. Returns undefined if it does not exist or can't be
 * read (a circular link, a folder without permission): for callers that check again later anyway.
 */
export function statIfAny(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false })
  } catch (error) {
    if (error instanceof Error && 'syscall' in error) return undefined
    throw error
  }
}
