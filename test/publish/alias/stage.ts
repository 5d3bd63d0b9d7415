import type { Test } from 'tap'
import { Random } from '../../../src/base/random.ts'
import type { Answered } from '../../../src/client/ask.ts'
import type { AddressQuery } from '../../../src/client/resolver/ask-addresses.ts'
import { Rcode, RRClass, RRType } from '../../../src/dns/iana/index.ts'
import { HeaderFlag } from '../../../src/dns/message/header.ts'
import type { ResourceRecord } from '../../../src/dns/message/message.ts'
import { printName, scanName } from '../../../src/dns/name/name.ts'
import { scanAddress } from '../../../src/dns/text/address.ts'
import { AliasSource } from '../../../src/publish/alias/alias-source.ts'
import { refuserOf } from '../../../src/publish/alias/expand-record.ts'
import { OutsideAddresses } from '../../../src/publish/alias/outside-addresses.ts'
import { unpackRecord } from '../../../src/records/pack.ts'
import { printRecordType, printTarget } from '../../../src/records/print-endpoint.ts'
import type { RecordChange, StoredRecord } from '../../../src/records/record-source.ts'
import { TestSource } from '../../health/stage.ts'
import { recordLog } from '../../support/recorded-log.ts'
import { FakeClock, FakeTimers } from '../../support/setup.ts'
import { record } from '../record-zone-stage.ts'

export const wireOf = (name: string): Uint8Array => scanName(name)!

/** What a server says of a name: addresses of both families, after a CNAME; an rcode; undefined = silence. */
export type Says =
  | { readonly ttl?: number; readonly cname?: string; readonly addresses: readonly string[] }
  | 'NXDOMAIN'
  | 'SERVFAIL'
  | undefined

/** Names outside that fake servers answer for. `world`: by name without the final dot; the test changes it. */
export function outsideOf(
  t: Test,
  world: Map<string, Says>,
  known: readonly OutsideAddresses[] = [],
) {
  const [clock, timers] = [new FakeClock(), new FakeTimers()]
  const { log, lines } = recordLog()
  let asked = 0
  const ask = async (query: AddressQuery): Promise<Answered> => {
    asked++
    return answerOf(query, world.get(printName(query.name).slice(0, -1)))
  }
  const servers = [{ host: '192.0.2.53', port: 53 }]
  const parts = { servers, clock, timers, random: new Random(7), log, ask, known }
  const outside = new OutsideAddresses(parts)
  t.teardown(() => outside.close())
  const pass = async (ms: number, stepMs = 100): Promise<void> => {
    for (let passed = 0; passed < ms; passed += stepMs) {
      clock.pass(stepMs)
      await timers.advance(stepMs)
    }
  }
  return { outside, clock, timers, log, lines, pass, asked: () => asked }
}

function answerOf({ name, family }: AddressQuery, says: Says): Answered {
  if (says === undefined) return { kind: 'failed', reason: 'timed out', overTcp: false }
  const type = family === 1 ? RRType.A : RRType.AAAA
  const rcode = typeof says === 'object' ? Rcode.NOERROR : Rcode[says]
  const answer: ResourceRecord[] = []
  if (typeof says === 'object') {
    const { ttl: ttlSeconds = 60, cname, addresses } = says
    const common = { rrclass: RRClass.IN, ttlSeconds }
    const owner = cname === undefined ? name : wireOf(cname)
    if (cname !== undefined) {
      answer.push({ ...common, owner: name, type: RRType.CNAME, rdata: owner })
    }
    for (const text of addresses) {
      const address = scanAddress(text)!
      if (address.family !== family) continue
      answer.push({ ...common, owner, type, rdata: address.bytes })
    }
  }
  const message = {
    ...{ id: 1, opcode: 0, flags: HeaderFlag.QR, rcode, answer, authority: [], additional: [] },
    question: { name, type, rrclass: RRClass.IN },
    edns: undefined,
  }
  return { kind: 'reply', message, octets: new Uint8Array(), overTcp: false }
}

/** The record `n/NAME` of k.test. `endpoints`: as in `Given`. */
export function aliasRecord(name: string, ...endpoints: readonly string[]): StoredRecord {
  return record({ name, rootHost: 'k.test', endpoints })
}

/** Prints the endpoints that ALIAS endpoints of a record stand for, in the form of `Given`. */
export function printExpanded(record: StoredRecord | undefined): string[] {
  const { endpoints } = unpackRecord(record!.packed)
  return endpoints
    .filter(({ aliasOf }) => aliasOf !== undefined)
    .map(({ owner, type, rdata, setIdentifier, weight, codes, isDefault, ttlSeconds }) => {
      const targets = rdata.map((one) => printTarget(type, one))
      const geo = [...codes.map(({ text }) => text), ...(isDefault ? ['*'] : [])]
      const words = [printName(owner).slice(0, -1), printRecordType(type), targets.join(',')]
      if (setIdentifier !== '') words.push(`id=${setIdentifier}`)
      if (weight !== undefined) words.push(`weight=${weight}`)
      if (geo.length > 0) words.push(`geo=${geo.join(',')}`)
      return [...words, `ttl=${ttlSeconds}`].join(' ')
    })
}

/** Records of k.test with ALIAS endpoints, and names outside. */
export function aliasStage(
  t: Test,
  records: readonly StoredRecord[],
  world: Map<string, Says> = new Map(),
  options: { readonly resolves?: boolean; readonly allowed?: Parameters<typeof refuserOf>[0] } = {},
) {
  const { resolves = true, allowed = [] } = options
  const names = outsideOf(t, world)
  const source = new TestSource()
  source.put(...records)
  const { clock, timers, log } = names
  const aliases = new AliasSource({
    source,
    zones: [wireOf('k.test.')],
    outside: resolves ? names.outside : undefined,
    refusal: refuserOf(allowed),
    ...{ clock, timers, log },
  })
  t.teardown(() => aliases.close())
  const batches: (readonly RecordChange[])[] = []
  aliases.subscribe((changes) => batches.push(changes))
  const expanded = (name: string): string[] => printExpanded(aliases.find(`n/${name}`))
  const faults = (): string[] => [...aliases.faults()].map(({ text }) => text)
  return { ...names, source, aliases, batches, expanded, faults }
}
