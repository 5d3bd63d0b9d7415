import { once } from 'node:events'
import { relative } from 'node:path'
import t from 'tap'

/** What a test file may take, as in .taprc. */
const FILE_MS = 900_000

// tap ends the process at the next pause after a call, so teardowns of whole files wait for the last file.
const teardowns = []
t.teardown = (teardown) => teardowns.push(teardown)

/** Runs the tests of the file `path` in this process; resolves when they have ended. */
export async function run(path) {
  t.setTimeout(FILE_MS)
  t.comment(relative(process.cwd(), path))
  await import(path)
  if (!t.idle) await once(t, 'idle')
}

/** Runs the teardowns of all files; called after the last one. */
export async function end() {
  for (const teardown of teardowns.reverse()) await teardown()
  t.comment('all files ended')
}
