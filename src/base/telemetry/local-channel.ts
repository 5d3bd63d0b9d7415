import type { OctetChannel } from './octet-channel.ts'

/** Passes each piece on at once, on the thread that receives them. */
export class LocalChannel implements OctetChannel {
  readonly octets: Buffer
  readonly #receive: (octets: Uint8Array) => void

  /** `octetsMax`: of a piece. */
  constructor(octetsMax: number, receive: (octets: Uint8Array) => void) {
    this.octets = Buffer.from(new ArrayBuffer(octetsMax))
    this.#receive = receive
  }

  begin(): number {
    return 0
  }

  end(end: number): void {
    this.#receive(this.octets.subarray(0, end))
  }
}
