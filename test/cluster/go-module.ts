import { execFileSync } from 'node:child_process'

/** The folder of a Go module. `directory`: the module whose `go.mod` names the version, unless `path` does. */
export function downloadModule(path: string, directory: string): string {
  const args = ['mod', 'download', '-json', path]
  // A module may need a newer Go than the installed one.
  const env = { ...process.env, GOTOOLCHAIN: 'auto' }
  return JSON.parse(execFileSync('go', args, { cwd: directory, env, encoding: 'utf8' })).Dir
}
