import { assert } from '../../base/assert.ts'
import { RRType } from '../iana/index.ts'
import { labelOffsets, ROOT_NAME } from '../name/name.ts'
import { parseName } from '../name/parse-name.ts'
import { NameLayout, rdataNameLayout } from '../rdata/index.ts'
import { OctetWriter } from '../rdata/octets.ts'
import { HEADER_FLAGS_MASK, HeaderFlag, MESSAGE_OCTETS_MAX } from './header.ts'
import type { Edns, Message, ResourceRecord } from './message.ts'

/** Highest offset that a compression pointer can encode. */
const POINTER_MAX = 0x3fff

/**
 * Encodes a message with compressed names. Keeps the case of names: only equal octets are
 * compressed. Omits records that do not fit into 65535 octets, one by one, and sets TC. The OPT
 * record is last.
 */
export function composeMessage(message: Message): Uint8Array {
  assert(message.rcode < 16 || message.edns !== undefined, 'an extended rcode needs EDNS')
  return new MessageWriter().compose(message)
}

class MessageWriter {
  readonly #output = new OctetWriter()
  /** Offset of each name and each suffix of a name, by its octets. */
  readonly #offsets = new Map<string, number>()

  compose(message: Message): Uint8Array {
    const { id, opcode, flags, rcode, question, edns } = message
    const output = this.#output
    const word = (flags & HEADER_FLAGS_MASK) | (opcode << 11) | (rcode & 15)
    output.u16(id)
    output.u16(word)
    output.u16(question === undefined ? 0 : 1)
    for (let i = 0; i < 3; i++) output.u16(0)
    if (question !== undefined) {
      this.#putName(question.name)
      output.u16(question.type)
      output.u16(question.rrclass)
    }
    const opt = edns === undefined ? undefined : optRecord(edns, rcode)
    // Root owner, fixed fields and options: reserved for the end.
    const limit = MESSAGE_OCTETS_MAX - (opt === undefined ? 0 : 11 + opt.rdata.length)
    const sections = [message.answer, message.authority, message.additional]
    let isWhole = true
    for (const [i, records] of sections.entries()) {
      const count: number = isWhole ? this.#putRecords(records, limit) : 0
      isWhole &&= count === records.length
      const withOpt = i === 2 && opt !== undefined
      output.patchU16(6 + 2 * i, withOpt ? count + 1 : count)
    }
    if (!isWhole) output.patchU16(2, word | HeaderFlag.TC)
    if (opt !== undefined) this.#putRecord(opt)
    return output.octets()
  }

  /** Returns the number of records that fit. */
  #putRecords(records: readonly ResourceRecord[], limit: number): number {
    for (const [i, record] of records.entries()) {
      const start = this.#output.length
      this.#putRecord(record)
      if (this.#output.length <= limit) continue
      this.#output.cutTo(start)
      return i
    }
    return records.length
  }

  #putRecord(record: ResourceRecord): void {
    const output = this.#output
    this.#putName(record.owner)
    output.u16(record.type)
    output.u16(record.rrclass)
    output.u32(record.ttlSeconds)
    output.u16(0)
    const start = output.length
    this.#putRdata(record.type, record.rdata)
    output.patchU16(start - 2, output.length - start)
  }

  #putRdata(type: number, rdata: Uint8Array): void {
    const layout = rdataNameLayout[type]!
    let at = layout === NameLayout.NameAt2 ? 2 : 0
    const names = layout === NameLayout.None ? 0 : layout === NameLayout.TwoNames ? 2 : 1
    this.#output.put(rdata.subarray(0, at))
    for (let i = 0; i < names; i++) {
      const parsed = parseName(rdata, at, rdata.length)
      if (parsed === undefined) break
      this.#putName(parsed.name)
      at = parsed.end
    }
    this.#output.put(rdata.subarray(at))
  }

  #putName(name: Uint8Array): void {
    const output = this.#output
    for (const offset of labelOffsets(name)) {
      const key = Buffer.from(name.subarray(offset)).toString('latin1')
      const earlier = this.#offsets.get(key)
      if (earlier !== undefined) {
        output.u16(0xc000 | earlier)
        return
      }
      if (output.length <= POINTER_MAX) this.#offsets.set(key, output.length)
      output.put(name.subarray(offset, offset + 1 + name[offset]!))
    }
    output.u8(0)
  }
}

function optRecord(edns: Edns, rcode: number): ResourceRecord {
  const rdata = new OctetWriter()
  for (const { code, data } of edns.options) {
    rdata.u16(code)
    rdata.u16(data.length)
    rdata.put(data)
  }
  return {
    owner: ROOT_NAME,
    type: RRType.OPT,
    rrclass: edns.payloadOctets,
    ttlSeconds: ((rcode >> 4) * 256 + edns.version) * 65536 + edns.flags,
    rdata: rdata.octets(),
  }
}
