import { RRType } from '../iana/index.ts'
import { parseName } from '../name/parse-name.ts'
import { parseRdata } from '../rdata/index.ts'
import { OctetReader } from '../rdata/octets.ts'
import { HEADER_FLAGS_MASK } from './header.ts'
import type { Edns, EdnsOption, Message, Question, ResourceRecord } from './message.ts'

/** A higher TTL counts as 0 (RFC 2181 section 8). */
const TTL_SECONDS_MAX = 0x7fff_ffff

/** A record whose rdata is still in the packet. */
interface RawRecord {
  readonly owner: Uint8Array
  readonly type: number
  readonly rrclass: number
  readonly ttl: number
  readonly rdataOffset: number
  readonly rdataOctets: number
}

/** The header and the question of a message. */
export interface MessageHead {
  readonly id: number
  readonly opcode: number
  readonly flags: number
  /** The lower four bits. */
  readonly rcode: number
  readonly question: Question | undefined
  readonly answers: number
  readonly authorities: number
  readonly additionals: number
}

/** What follows the answers of a message. */
type MessageRest = Pick<Message, 'authority' | 'additional' | 'edns' | 'rcode'>

/**
 * Parses one whole message. Returns undefined if any part is malformed: a wrong count, more than
 * one question, an invalid name or rdata, an OPT record that is not alone or not in the additional
 * section, or trailing octets.
 */
export function parseMessage(bytes: Uint8Array): Message | undefined {
  const input = new OctetReader(bytes, 0, bytes.length)
  const head = parseHead(input)
  if (head === undefined) return undefined
  const answer = parseSection(input, head.answers)
  if (answer === undefined || answer.opt !== undefined) return undefined
  const rest = parseRest(input, head)
  if (rest === undefined) return undefined
  const { id, opcode, flags, question } = head
  const { rcode, authority, additional, edns } = rest
  const sections = { answer: answer.records, authority, additional }
  return { id, opcode, flags, rcode, question, ...sections, edns }
}

/** Parses the beginning of a message; undefined = it is malformed. */
export function parseHead(input: OctetReader): MessageHead | undefined {
  const id = input.uint(2)
  const word = input.uint(2)
  const questions = input.uint(2)
  const [answers, authorities, additionals] = [input.uint(2), input.uint(2), input.uint(2)]
  if (additionals < 0 || questions > 1) return undefined
  const question = questions === 1 ? parseQuestion(input) : undefined
  if (questions === 1 && question === undefined) return undefined
  const [opcode, flags, rcode] = [(word >> 11) & 15, word & HEADER_FLAGS_MASK, word & 15]
  return { id, opcode, flags, rcode, question, answers, authorities, additionals }
}

/** Parses what follows the answers, to the end of the message; undefined = it is malformed. */
export function parseRest(
  input: OctetReader,
  { rcode, authorities, additionals }: MessageHead,
): MessageRest | undefined {
  const authority = parseSection(input, authorities)
  const additional = parseSection(input, additionals)
  if (!authority || !additional || input.remaining > 0) return undefined
  if (authority.opt !== undefined) return undefined
  const { opt } = additional
  const edns = opt && parseEdns(input.bytes, opt)
  if (opt !== undefined && edns === undefined) return undefined
  return {
    rcode: rcode | (((opt?.ttl ?? 0) >>> 24) << 4),
    authority: authority.records,
    additional: additional.records,
    edns,
  }
}

function parseQuestion(input: OctetReader): Question | undefined {
  const name = takeName(input)
  const type = input.uint(2)
  const rrclass = input.uint(2)
  return name === undefined || rrclass < 0 ? undefined : { name, type, rrclass }
}

function takeName(input: OctetReader): Uint8Array | undefined {
  const parsed = parseName(input.bytes, input.at, input.end)
  if (parsed !== undefined) input.at = parsed.end
  return parsed?.name
}

function parseSection(
  input: OctetReader,
  count: number,
): { records: ResourceRecord[]; opt: RawRecord | undefined } | undefined {
  const records: ResourceRecord[] = []
  let opt: RawRecord | undefined
  for (let i = 0; i < count; i++) {
    const raw = parseRecord(input)
    if (raw === undefined) return undefined
    if (raw.type === RRType.OPT) {
      if (opt !== undefined) return undefined
      opt = raw
      continue
    }
    const { owner, type, rrclass, ttl } = raw
    const rdata = parseRdata(type, input.bytes, raw.rdataOffset, raw.rdataOctets)
    if (rdata === undefined) return undefined
    const ttlSeconds = ttl > TTL_SECONDS_MAX ? 0 : ttl
    records.push({ owner, type, rrclass, ttlSeconds, rdata })
  }
  return { records, opt }
}

function parseRecord(input: OctetReader): RawRecord | undefined {
  const owner = takeName(input)
  const type = input.uint(2)
  const rrclass = input.uint(2)
  const ttl = input.uint(4)
  const rdataOctets = input.uint(2)
  const rdataOffset = input.at
  if (owner === undefined || rdataOctets < 0) return undefined
  if (input.take(rdataOctets) === undefined) return undefined
  return { owner, type, rrclass, ttl, rdataOffset, rdataOctets }
}

function parseEdns(bytes: Uint8Array, opt: RawRecord): Edns | undefined {
  if (opt.owner.length !== 1) return undefined
  const input = new OctetReader(bytes, opt.rdataOffset, opt.rdataOffset + opt.rdataOctets)
  const options: EdnsOption[] = []
  while (input.remaining > 0) {
    const code = input.uint(2)
    const octets = input.uint(2)
    const data = octets < 0 ? undefined : input.take(octets)
    if (data === undefined) return undefined
    options.push({ code, data: data.slice() })
  }
  return {
    payloadOctets: opt.rrclass,
    version: (opt.ttl >>> 16) & 0xff,
    flags: opt.ttl & 0xffff,
    options,
  }
}
