/*
 * Control frames of Frame Streams: a zero in place of the length of a data frame, the length of the control frame, its
 * kind, and fields. All numbers have 32 bits, most significant octet first.
 */
export const ControlKind = { Accept: 1, Start: 2, Stop: 3, Ready: 4, Finish: 5 } as const
export type ControlKind = (typeof ControlKind)[keyof typeof ControlKind]

const CONTENT_TYPE = 'protobuf:dnstap.Dnstap'
const CONTENT_TYPE_FIELD = 1
const HEADER_OCTETS = 8
/** As in the libraries of Frame Streams. */
const CONTROL_OCTETS_MAX = 512

/** Returns a control frame with the content type of dnstap, if its kind has one. */
export function composeControl(kind: ControlKind): Buffer {
  const hasType = kind !== ControlKind.Stop && kind !== ControlKind.Finish
  const fields = hasType ? [words(CONTENT_TYPE_FIELD, CONTENT_TYPE.length), CONTENT_TYPE] : []
  const body = Buffer.concat([words(kind), ...fields.map((part) => Buffer.from(part))])
  return Buffer.concat([words(0, body.length), body])
}

function words(...numbers: readonly number[]): Buffer {
  const out = Buffer.alloc(numbers.length * 4)
  for (const [i, number] of numbers.entries()) out.writeUInt32BE(number, i * 4)
  return out
}

/** Reads the control frames that a sink sends. */
export class ControlReader {
  #rest = Buffer.alloc(0)

  /** Returns the kinds of the frames that are complete now. Throws Error if the sink sent anything else. */
  read(octets: Uint8Array): number[] {
    this.#rest = Buffer.concat([this.#rest, octets])
    const kinds: number[] = []
    while (this.#rest.length >= HEADER_OCTETS) {
      const length = this.#rest.readUInt32BE(4)
      const isControl = this.#rest.readUInt32BE(0) === 0
      if (!isControl || length < 4 || length > CONTROL_OCTETS_MAX) {
        throw new Error('the sink does not speak Frame Streams')
      }
      if (this.#rest.length < HEADER_OCTETS + length) break
      kinds.push(readControl(this.#rest.subarray(HEADER_OCTETS, HEADER_OCTETS + length)))
      this.#rest = this.#rest.subarray(HEADER_OCTETS + length)
    }
    return kinds
  }
}

/** Returns the kind of a control frame. */
function readControl(body: Buffer): number {
  const kind = body.readUInt32BE(0)
  if (kind !== ControlKind.Accept) return kind
  const types: string[] = []
  for (let at = 4; at + HEADER_OCTETS <= body.length; ) {
    const end = at + HEADER_OCTETS + body.readUInt32BE(at + 4)
    if (body.readUInt32BE(at) === CONTENT_TYPE_FIELD) {
      types.push(body.toString('latin1', at + HEADER_OCTETS, end))
    }
    at = end
  }
  // Without a type, the sink accepts all.
  if (types.length === 0 || types.includes(CONTENT_TYPE)) return kind
  throw new Error(`the sink does not accept ${CONTENT_TYPE}, only ${types.join(', ')}`)
}
