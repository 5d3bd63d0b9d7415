import { execFileSync } from 'node:child_process'

/** The folder of a Go module. `directory`: the module whose `go.mod` names the version, unless `path` does. */
export function downloadModule(path: string, directory: string): string {
  const args = ['mod', 'download', '-json', path]
  return JSON.parse(execFileSync('go', args, { cwd: directory, encoding: 'utf8' })).Dir
}
