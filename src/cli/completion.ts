import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { bashScript } from './completion/bash.ts'
import { fishScript } from './completion/fish.ts'
import { placesOf } from './completion/places.ts'
import { zshScript } from './completion/zsh.ts'
import { type Shell, scanCompletionArgs } from './completion-args.ts'
import type { Output } from './output.ts'

const PRINTERS = { bash: bashScript, zsh: zshScript, fish: fishScript }

/** Where each shell searches for the script of `sextant`, below its folder for completions. */
const FILES: Readonly<Record<Shell, string>> = {
  bash: 'bash/sextant',
  zsh: 'zsh/_sextant',
  fish: 'fish/sextant.fish',
}

/** `sextant completion`: prints the script of a shell. Resolves to 0, or 1 with one line if that fails. */
export async function runCompletion(argv: readonly string[], output: Output): Promise<number> {
  const shell = scanCompletionArgs(argv)
  if (typeof shell !== 'string') {
    output.printError(shell.fault)
    return 1
  }
  for (const line of PRINTERS[shell](await placesOf())
    .trimEnd()
    .split('\n'))
    output.print(line)
  return 0
}

/** For a release: writes the scripts of all shells to `folder`, as `FILES` names them. */
export async function writeCompletions(folder: string): Promise<void> {
  const places = await placesOf()
  for (const shell of ['bash', 'zsh', 'fish'] as const) {
    await mkdir(join(folder, shell), { recursive: true })
    await writeFile(join(folder, FILES[shell]), PRINTERS[shell](places))
  }
}
