import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'

/** `test/e2e/frame-client.mjs`: sends Ethernet frames, and collects DNS replies. */
export class FrameClient {
  readonly #process: ChildProcess
  readonly #closed: Promise<unknown>
  #printed = ''

  constructor([program = '', ...args]: readonly string[]) {
    this.#process = spawn(program, args, { stdio: ['pipe', 'pipe', 'inherit'] })
    this.#closed = once(this.#process, 'close')
    this.#process.stdout!.on('data', (chunk) => (this.#printed += String(chunk)))
  }

  /** Resolves when the program can take more frames. */
  async send(frames: readonly Uint8Array[]): Promise<void> {
    const lines = frames.map((frame) => `${Buffer.from(frame).toString('hex')}\n`)
    const stdin = this.#process.stdin!
    if (!stdin.write(lines.join(''))) await once(stdin, 'drain')
  }

  /** The replies that have arrived, by ID. */
  replies(): Map<number, Buffer> {
    const lines = this.#printed.split('\n').slice(0, -1)
    const messages = lines.map((line) => Buffer.from(line, 'hex'))
    return new Map(messages.map((message) => [message.readUInt16BE(0), message]))
  }

  /** Resolves to the number of frames that were sent. */
  async end(): Promise<number> {
    this.#process.stdin!.end()
    await this.#closed
    return Number(/(\d+) frames sent/.exec(this.#printed)?.[1])
  }
}
