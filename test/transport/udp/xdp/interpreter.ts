export const XDP_PASS = 2

/** What the program passes to bpf_redirect_map. */
export interface Redirect {
  readonly map: number
  readonly queue: number
}

/**
 * Runs an eBPF program of the instructions that ours has (RFC 9669) on a frame. Throws where the
 * kernel's verifier would refuse: a read outside of the frame, an unknown instruction, a jump outside.
 */
export function runProgram(
  program: Uint8Array,
  frame: Uint8Array,
  queue: number,
): number | Redirect {
  return new Machine(program, frame, queue).run()
}

/** Addresses of the context and of the frame, as registers hold them. */
const CONTEXT = 0x1000
const FRAME = 0x10_0000
/** Fields of `struct xdp_md`. */
const DATA = 0
const DATA_END = 4
const RX_QUEUE = 16
const EXIT = 0x95
const CALL = 0x85

class Machine {
  readonly #code: DataView
  readonly #frame: DataView
  readonly #context: ReadonlyMap<number, number>
  readonly #registers: number[] = new Array(11).fill(Number.NaN)
  #at = 0

  constructor(program: Uint8Array, frame: Uint8Array, queue: number) {
    this.#code = new DataView(program.buffer, program.byteOffset, program.byteLength)
    this.#frame = new DataView(frame.buffer, frame.byteOffset, frame.byteLength)
    this.#context = new Map([
      [DATA, FRAME],
      [DATA_END, FRAME + frame.length],
      [RX_QUEUE, queue],
    ])
    this.#registers[1] = CONTEXT
  }

  run(): number | Redirect {
    for (;;) {
      const code = this.#code.getUint8(this.#at)
      if (code === EXIT) return this.#registers[0]!
      if (code === CALL) {
        const [, map = 0, queue = 0, otherwise] = this.#registers
        if (otherwise !== XDP_PASS) throw new Error('r3 is not XDP_PASS')
        if (this.#code.getInt32(this.#at + 4, true) !== 51) throw new Error('unknown function')
        return { map, queue }
      }
      this.#step(code)
    }
  }

  #step(code: number): void {
    const at = this.#at
    const registers = this.#code.getUint8(at + 1)
    const to = registers & 15
    const from = registers >> 4
    const offset = this.#code.getInt16(at + 2, true)
    const immediate = this.#code.getInt32(at + 4, true)
    const r = this.#registers
    const jump = (condition: boolean): void => {
      if (condition) this.#at += offset * 8
    }
    this.#at += 8
    switch (code) {
      case 0xbf:
        r[to] = r[from]!
        return
      case 0xb7:
        r[to] = immediate
        return
      case 0x07:
        r[to]! += immediate
        return
      case 0x57:
        r[to] = r[to]! & immediate
        return
      case 0x18:
        r[to] = immediate
        this.#at += 8
        return
      case 0x61:
        r[to] = this.#load(r[from]! + offset, 4)
        return
      case 0x69:
        r[to] = this.#load(r[from]! + offset, 2)
        return
      case 0x71:
        r[to] = this.#load(r[from]! + offset, 1)
        return
      case 0x05:
        jump(true)
        return
      case 0x2d:
        jump(r[to]! > r[from]!)
        return
      case 0xad:
        jump(r[to]! < r[from]!)
        return
      case 0x16:
        jump((r[to]! | 0) === immediate)
        return
      case 0x56:
        jump((r[to]! | 0) !== immediate)
        return
      default:
        throw new Error(`unknown instruction ${code.toString(16)}`)
    }
  }

  #load(address: number, octets: number): number {
    if (address < FRAME) return this.#context.get(address - CONTEXT)!
    const at = address - FRAME
    if (octets === 4) return this.#frame.getUint32(at, true)
    return octets === 2 ? this.#frame.getUint16(at, true) : this.#frame.getUint8(at)
  }
}
