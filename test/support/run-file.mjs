import { once } from 'node:events'
import { relative } from 'node:path'
import t from 'tap'

/** What a test file may take, as in .taprc. */
const FILE_MS = 900_000

// tap ends the process soon after the last test of a file that has called this, before the next file is loaded.
t.teardown = () => {
  throw new Error('a teardown of a whole file needs a line `// Own process: REASON` in that file')
}

/** Runs the tests of the file `path` in this process; resolves when they have ended. */
export async function run(path) {
  t.setTimeout(FILE_MS)
  t.comment(relative(process.cwd(), path))
  await import(path)
  if (!t.idle) await once(t, 'idle')
}
