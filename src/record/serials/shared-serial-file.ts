import { SerialFile, type SerialFileOptions } from './serial-file.ts'

interface Use {
  readonly file: SerialFile
  users: number
}

const uses = new Map<string, Use>()

/**
 * The serials file at `options.path`, opened: one for all blocks that name it, and for both instances
 * of a reload. The returned function gives it back; the last one to do so closes it.
 */
export function acquireSerialFile(options: SerialFileOptions): {
  readonly file: SerialFile
  readonly release: () => void
} {
  const { path } = options
  let use = uses.get(path)
  if (use === undefined) {
    use = { file: new SerialFile(options), users: 0 }
    use.file.open()
    uses.set(path, use)
  }
  const taken = use
  taken.users++
  const release = (): void => {
    if (--taken.users > 0) return
    uses.delete(path)
    taken.file.close()
  }
  return { file: taken.file, release }
}
