import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'

/**
 * Makes a directory for this test; a test may have several. It is removed after the processes
 * that were started later have ended. `t.testdir` can be removed before that, and then the
 * removal fails while a process writes.
 */
export function temporaryDirectory(t: Test): string {
  const directory = mkdtempSync(join(tmpdir(), 'sextant-test-'))
  t.teardown(() => rmSync(directory, { recursive: true, force: true, maxRetries: 5 }))
  return directory
}
