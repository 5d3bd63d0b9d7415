import { RefCounted } from '../../base/ref-counted.ts'
import { SerialFile, type SerialFileOptions } from './serial-file.ts'

const files = new RefCounted<SerialFile>((file) => file.close())

/**
 * The serials file at `options.path`, opened: one for all blocks that name it, and for both instances
 * of a reload. The returned function gives it back; the last one to do so closes it.
 */
export function acquireSerialFile(options: SerialFileOptions): {
  readonly file: SerialFile
  readonly release: () => void
} {
  const { item, release } = files.acquire(options.path, () => {
    const file = new SerialFile(options)
    file.open()
    return file
  })
  return { file: item, release }
}
