import { type BigIntStats, type Stats, statSync } from 'node:fs'

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

const READABLE_BY_OTHERS = 0o004

/** True if any user of the machine can read the file. Throws the system's error. */
export function isReadableByOthers(path: string): boolean {
  return (statSync(path).mode & READABLE_BY_OTHERS) !== 0
}

/** Identifies a version of a file by inode, time and size. '' = the file is missing. */
export function stampOf(path: string): string {
  const stats = statSync(path, { bigint: true, throwIfNoEntry: false })
  return stats === undefined ? '' : printStamp(stats)
}

/** As `stampOf`, of a file that was looked at. */
export function printStamp(stats: Pick<BigIntStats, 'ino' | 'mtimeNs' | 'size'>): string {
  return `${stats.ino} ${stats.mtimeNs} ${stats.size}`
}
