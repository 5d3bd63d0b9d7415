import type { Broadcast } from '../../base/broadcast.ts'
import type { SetupContext } from '../../plugin/directive.ts'
import { type ArenaHandle, ZoneReader } from '../../zone/image/reader.ts'
import type { ZoneImage } from '../../zone/image/writer.ts'
import { ZoneAnswerer } from '../../zone/lookup/answer.ts'

/** A zone image in every thread: the control thread writes it, and data threads read the same memory. */
export class ThreadedImage {
  /** Undefined until the image is served. */
  answerer: ZoneAnswerer | undefined = undefined
  readonly #buffers: Broadcast<SharedArrayBuffer>
  #handle: ArenaHandle | undefined

  constructor(c: SetupContext) {
    this.#buffers = c.broadcast<SharedArrayBuffer>((buffer) => this.#follow(buffer))
  }

  /** Makes all threads answer from the image. The returned function ends that they follow it. */
  serve(image: ZoneImage): () => void {
    const stop = image.onSwap((buffer) => this.#buffers.publish(buffer))
    this.#buffers.publish(image.handle.buffer)
    this.answerer = new ZoneAnswerer(image.reader())
    return stop
  }

  #follow(buffer: SharedArrayBuffer): void {
    if (this.#handle !== undefined) {
      this.#handle.buffer = buffer
      return
    }
    this.#handle = { buffer }
    this.answerer = new ZoneAnswerer(new ZoneReader(this.#handle))
  }
}
