import { spawn } from 'node:child_process'
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { agrees, lines, type Step, scanFences, scanSteps } from './page.ts'
import { root } from './server.ts'
import { until } from './until.ts'

/** Above what a step of a page may take, on a busy machine. */
const STEP_MS_MAX = 120_000

/**
 * Runs a page in one shell, word for word: variables, jobs and shells within the shell work as for a reader. Use `PageRun`
 * if the page names ports that may be in use.
 */
export class PageShell {
  readonly #t: Test
  readonly #write: (line: string) => void
  #printed = ''
  #count = 0

  private constructor(t: Test, directory: string, path: string) {
    this.#t = t
    const shell = spawn('bash', [], {
      cwd: directory,
      env: { ...process.env, PATH: path },
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    // Inner shells share it, and what they leave behind keeps it open.
    shell.stdout.on('data', (chunk) => (this.#printed += String(chunk)))
    this.#write = (line) => shell.stdin.write(`${line}\n`)
    this.#write('exec 2>&1')
    t.teardown(() => {
      shell.stdin.end()
      shell.stdout.destroy()
    })
  }

  /**
   * Runs the page at `page`, relative to the repository. `directory`: where its commands run. `programs`: the commands that
   * programs of this name stand for, besides `sextant`.
   */
  static async run(
    t: Test,
    page: string,
    directory: string,
    programs: Readonly<Record<string, string>> = {},
  ): Promise<void> {
    const tools = join(directory, '.bin')
    mkdirSync(tools)
    const sextant = `'${process.execPath}' '${join(root, 'dist/main.js')}'`
    for (const [name, command] of Object.entries({ sextant, ...programs })) {
      writeFileSync(join(tools, name), `#!/bin/sh\nexec ${command} "$@"\n`)
      chmodSync(join(tools, name), 0o755)
    }
    const shell = new PageShell(t, directory, `${tools}:${process.env.PATH}`)
    for (const { language, file, text } of scanFences(readFileSync(join(root, page), 'utf8'))) {
      if (file !== '') writeFileSync(join(directory, file), text)
      else if (language === 'console') {
        // Later steps depend on earlier ones.
        for (const step of scanSteps(text)) if (!(await shell.#step(step))) return
      }
    }
  }

  /** A command whose output does not agree is repeated: what it shows may take its time. Returns whether it agreed. */
  async #step({ command, want }: Step): Promise<boolean> {
    const wanted = lines(want.join('\n'))
    let got: readonly string[] = []
    const attempt = async (): Promise<boolean> => {
      got = lines(await this.#run(command))
      return agrees(wanted, got)
    }
    await until(attempt, command).catch(() => {})
    return this.#t.ok(agrees(wanted, got), command, { wanted, got })
  }

  /** Resolves to what the command prints. */
  async #run(command: string): Promise<string> {
    const mark = `-- end of command ${++this.#count}\n`
    this.#printed = ''
    this.#write(command)
    this.#write(`echo '${mark.trimEnd()}'`)
    await until(() => this.#printed.endsWith(mark), command, STEP_MS_MAX)
    return this.#printed.slice(0, -mark.length)
  }
}
