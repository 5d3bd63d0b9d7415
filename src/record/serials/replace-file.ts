import {
  closeSync,
  fstatSync,
  fsyncSync,
  lstatSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname } from 'node:path'

/** Tells one version of a file from every other: inode, time and size. '' = there is no file. */
export function stampOf(path: string): string {
  const stats = statSync(path, { bigint: true, throwIfNoEntry: false })
  return stats === undefined ? '' : printStamp(stats)
}

/**
 * Puts a new version in the place of the file of that stamp: after a crash it is either the old or the new
 * one. Returns the new stamp; undefined, and nothing was replaced, where another process was faster.
 * Throws the system's error.
 */
export function replaceFile(path: string, stamp: string, text: string): string | undefined {
  const next = `${path}.next`
  rmSync(next, { force: true })
  const file = openSync(next, 'wx', 0o644)
  try {
    writeFileSync(file, text)
    fsyncSync(file)
    const written = fstatSync(file, { bigint: true })
    // Another process that writes the same file would have taken ours away.
    const isOurs = lstatSync(next, { bigint: true, throwIfNoEntry: false })?.ino === written.ino
    if (!isOurs) return undefined
    if (stampOf(path) !== stamp) {
      rmSync(next, { force: true })
      return undefined
    }
    renameSync(next, path)
    syncDirectory(dirname(path))
    return printStamp(written)
  } finally {
    closeSync(file)
  }
}

function printStamp(stats: { ino: bigint; mtimeNs: bigint; size: bigint }): string {
  return `${stats.ino} ${stats.mtimeNs} ${stats.size}`
}

function syncDirectory(path: string): void {
  const directory = openSync(path, 'r')
  try {
    fsyncSync(directory)
  } finally {
    closeSync(directory)
  }
}
