import { RefCounted } from '../../base/ref-counted.ts'
import { SerialFile, type SerialFileOptions } from './serial-file.ts'

const files = new RefCounted<SerialFile>((file) => file.close())

/**
 * Opens the serials file at `options.path`. All blocks that name it share it, and so do both
 * instances at a reload. The returned function releases it; the last release closes it.
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
