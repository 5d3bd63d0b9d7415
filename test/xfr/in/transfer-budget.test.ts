// Own process: measures memory.
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import t from 'tap'
import { systemClock } from '../../../src/base/clock.ts'
import { systemTimers } from '../../../src/base/timers.ts'
import { fetchZone } from '../../../src/client/fetch-zone.ts'
import { RRClass, RRType } from '../../../src/dns/iana/index.ts'
import { composeMessage } from '../../../src/dns/message/compose-message.ts'
import { HeaderFlag } from '../../../src/dns/message/header.ts'
import type { Message, ResourceRecord } from '../../../src/dns/message/message.ts'
import { parseMessage } from '../../../src/dns/message/parse-message.ts'
import { lowerName, scanName } from '../../../src/dns/name/name.ts'
import { TransferBudget } from '../../../src/xfr/in/transfer-budget.ts'
import {
  type Received,
  TransferFault,
  type TransferFilter,
  TransferReader,
} from '../../../src/xfr/in/transfer-reader.ts'

// Long: it transfers zones until the budget is spent.

const MIB = 2 ** 20
const zone = lowerName(scanName('example.org.')!)

function record(name: string, type: number, rdata: Uint8Array): ResourceRecord {
  return { owner: scanName(name)!, type, rrclass: RRClass.IN, ttlSeconds: 60, rdata }
}

const soa = record('example.org.', RRType.SOA, new Uint8Array(22))
const newer = record(
  'example.org.',
  RRType.SOA,
  Uint8Array.from({ length: 22 }, (_, i) => (i === 5 ? 1 : 0)),
)
const address = (name: string) => record(`${name}.example.org.`, RRType.A, new Uint8Array(4))

function message(id: number, answer: readonly ResourceRecord[]): Message {
  const sections = { answer, authority: [], additional: [] }
  const flags = HeaderFlag.QR | HeaderFlag.AA
  return { id, opcode: 0, flags, rcode: 0, question: undefined, ...sections, edns: undefined }
}

/** Reads one message. Returns the fault; '' = none. */
function take(reader: TransferReader, answer: readonly ResourceRecord[]): Received | string {
  try {
    return reader.take(composeMessage(message(1, answer))) ?? ''
  } catch (error) {
    if (error instanceof TransferFault) return error.message
    throw error
  }
}

t.test('the largest transfer is cut, whichever one exceeds the limit', async (t) => {
  const budget = new TransferBudget(17_000)
  const open = () =>
    new TransferReader({ zone, id: 1, serial: undefined, origin: '' }, undefined, budget)
  const [large, small] = [open(), open()]
  let count = 0
  const some = (records: number) => Array.from({ length: records }, () => address(`n${count++}`))
  t.equal(take(large, [soa, ...some(60)]), '')
  t.equal(take(small, [soa, ...some(40)]), '')
  t.ok(budget.octets > 14_000 && budget.octets <= 17_000, `${budget.octets}`)
  t.equal(take(small, some(20)), '', 'it exceeds the limit')
  t.match(take(large, some(1)), /^this is the largest of the transfers, which hold more than/)
  t.match(take(small, [soa]), { kind: 'whole', serial: 0 })
  large.close()
  small.close()
  t.equal(budget.octets, 0)
  const next = open()
  t.equal(take(next, [soa, ...some(90)]), '', 'there is room again')
  t.match(take(next, some(200)), /largest of the transfers/, 'alone')
  t.equal(budget.octets, 0)
})

t.test('differences count too', async (t) => {
  const budget = new TransferBudget(10_000)
  const reader = new TransferReader({ zone, id: 1, serial: 0, origin: '' }, undefined, budget)
  const names = Array.from({ length: 100 }, (_, i) => address(`n${i}`))
  t.match(take(reader, [newer, soa, ...names]), /largest of the transfers/)
})

t.test('differences keep no message in memory', (t) => {
  const budget = new TransferBudget(1 * MIB)
  const [recordsMax, octetsMax] = [1e6, 1e9]
  const limits = { recordsMax, octetsMax, seenRecordsMax: recordsMax, seenOctetsMax: octetsMax }
  const keeps: TransferFilter['keeps'] = ({ type }) => type === RRType.TXT
  const filter = { keeps, ...limits, stepRecordsMax: recordsMax }
  const reader = new TransferReader({ zone, id: 1, serial: 0, origin: '' }, filter, budget)
  t.equal(take(reader, [newer, soa]), '')
  const text = record(
    't.example.org.',
    RRType.TXT,
    Uint8Array.from({ length: 201 }, (_, i) => (i ? 97 : 200)),
  )
  const others = Array.from({ length: 1000 }, (_, i) => address(`n${i}`))
  const before = budget.octets
  t.equal(take(reader, [text, ...others]), '')
  t.ok(budget.octets - before < 1000, `${budget.octets - before}`)
  const octets = composeMessage(message(1, Array(100).fill(text)))
  reader.take(octets)
  const received = reader.take(composeMessage(message(1, [newer, newer])))
  const [step] = received?.kind === 'steps' ? received.steps : []
  octets.fill(0)
  t.equal(step?.removed.length, 101)
  t.ok(step?.removed.every(({ rdata }) => rdata.buffer !== octets.buffer && rdata[0] === 200))
  t.end()
})

t.test('four zones without an end at a time', async (t) => {
  const budget = new TransferBudget(48 * MIB)
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', (octets) => {
      const { id, question } = parseMessage(octets.subarray(2))!
      const send = (answer: readonly ResourceRecord[]): boolean => {
        const reply = composeMessage({ ...message(id, answer), question })
        return socket.write(
          Buffer.concat([new Uint8Array([reply.length >> 8, reply.length]), reply]),
        )
      }
      send([soa])
      let next = 0
      const more = (): void => {
        let isFree = true
        while (isFree && !socket.destroyed) {
          isFree = send(Array.from({ length: 500 }, () => address(`n${next++}`)))
        }
      }
      socket.on('drain', more)
      more()
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const { port } = server.address() as AddressInfo
  const common = { zone, source: '', key: undefined, soa: undefined, serial: 0, budget }
  const parts = { ...common, clock: systemClock, timers: systemTimers }
  const fetch = () => fetchZone({ ...parts, primary: { host: '127.0.0.1', port } })
  const before = process.memoryUsage().rss
  let most = before
  const watch = setInterval(() => (most = Math.max(most, process.memoryUsage().rss)), 20)
  const endless = await Promise.allSettled([fetch(), fetch(), fetch(), fetch()])
  clearInterval(watch)
  for (const one of endless) {
    t.equal(one.status, 'rejected')
    if (one.status === 'rejected') t.match(one.reason.message, /largest of the transfers/)
  }
  t.equal(budget.octets, 0)
  // With what is not collected yet, of both sides. Without the budget it would be some GiB.
  t.ok(most - before < 8 * 48 * MIB, `${Math.round((most - before) / MIB)} MiB`)
})
