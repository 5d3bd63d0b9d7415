// Man pages and completions of shells.
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { writeTar } from './run.mjs'

/** Where Debian has the completions of each shell, below /usr. */
const COMPLETIONS = {
  'bash/sextant': 'share/bash-completion/completions/sextant',
  'zsh/_sextant': 'share/zsh/vendor-completions/_sextant',
  'fish/sextant.fish': 'share/fish/vendor_completions.d/sextant.fish',
}

/** Writes them to `usr`, as they lie below /usr. */
export async function putTexts(tree, usr) {
  const load = (name) => import(join(tree, 'dist/cli', name))
  const { writeManPages } = await load('man-pages.js')
  const { writeCompletions } = await load('completion.js')
  await mkdir(usr, { recursive: true })
  await writeManPages(join(usr, 'share/man/man1'))
  const made = await mkdtemp(join(usr, 'made-'))
  await writeCompletions(made)
  for (const [name, target] of Object.entries(COMPLETIONS)) {
    await mkdir(dirname(join(usr, target)), { recursive: true })
    await rename(join(made, name), join(usr, target))
  }
  await rm(made, { recursive: true })
}

/** Writes sextant-VERSION-share.tar.gz, to be unpacked in /usr/local. */
export async function makeTexts({ tree, work, out, version, epochSeconds }) {
  const usr = join(work, 'texts')
  await putTexts(tree, usr)
  await writeTar(join(out, `sextant-${version}-share.tar.gz`), usr, epochSeconds, ['share'])
}
