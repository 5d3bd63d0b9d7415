import { printOption } from '../dns/edns/print-option.ts'
import { printClass, printOpcode, printRcode, printType } from '../dns/iana/index.ts'
import { EDNS_DNSSEC_OK } from '../dns/message/header.ts'
import type { Edns, Message, ResourceRecord } from '../dns/message/message.ts'
import { flagNames } from '../dns/message/print-message.ts'
import { printName } from '../dns/name/name.ts'
import { printRdata } from '../dns/rdata/index.ts'

/** Returns a message as data for JSON, with names and record data as in zone files. */
export function dataOfMessage(message: Message) {
  const { id, opcode, rcode, flags, question, edns } = message
  return {
    id,
    opcode: printOpcode(opcode),
    status: printRcode(rcode),
    flags: flagNames(flags),
    question:
      question === undefined
        ? null
        : {
            name: printName(question.name),
            class: printClass(question.rrclass),
            type: printType(question.type),
          },
    answer: message.answer.map(dataOfRecord),
    authority: message.authority.map(dataOfRecord),
    additional: message.additional.map(dataOfRecord),
    edns: edns === undefined ? null : dataOfEdns(edns),
  }
}

function dataOfRecord({ owner, ttlSeconds, rrclass, type, rdata }: ResourceRecord) {
  return {
    name: printName(owner),
    ttl: ttlSeconds,
    class: printClass(rrclass),
    type: printType(type),
    data: printRdata(type, rdata),
  }
}

function dataOfEdns({ version, flags, payloadOctets, options }: Edns) {
  return {
    version,
    dnssecOk: (flags & EDNS_DNSSEC_OK) !== 0,
    payloadOctets,
    options: options.map(({ code, data }) => printOption(code, data)),
  }
}
