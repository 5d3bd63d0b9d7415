import fc from 'fast-check'
import t from 'tap'
import { LineBuffer } from '../../../../src/base/telemetry/lines.ts'
import type { OctetChannel } from '../../../../src/base/telemetry/octet-channel.ts'
import { printClass, printRcode, printType } from '../../../../src/dns/iana/index.ts'
import { printName } from '../../../../src/dns/name/name.ts'
import { printAddress } from '../../../../src/dns/text/address.ts'
import { DROP } from '../../../../src/plugin/handler.ts'
import type { Transaction } from '../../../../src/plugin/transaction.ts'
import { EntrySender } from '../../../../src/plugins/log/entries/entry-sender.ts'
import { printEntries } from '../../../../src/plugins/log/entries/print-entries.ts'
import { EntryPrinter } from '../../../../src/plugins/log/entry-printer.ts'
import { COMBINED_FORMAT, COMMON_FORMAT, LineFormat } from '../../../../src/plugins/log/format.ts'
import { Log, type LogRule } from '../../../../src/plugins/log/log.ts'
import { ZoneSet } from '../../../../src/zone/lookup/zone-set.ts'
import { lineBufferTo } from '../../../support/line-buffer.ts'
import { runs } from '../../../support/runs.ts'
import { answering, refill, transaction } from '../../../support/transaction.ts'

/* Lines that were sent to another thread as entries, compared field by field with a printer of strings. */

const clock = { now: () => 0, monotonic: () => 0 }
const UNWRITTEN = [1, 2, 4, 5]

function printSeconds(milliseconds: number): string {
  const ms = Math.max(0, milliseconds)
  const whole = Math.floor(ms / 1000)
  const nanoseconds = Math.floor((ms - whole * 1000) * 1e6 + 0.5)
  const seconds = nanoseconds === 1e9 ? whole + 1 : whole
  const digits = `${nanoseconds % 1e9}`.padStart(9, '0').replace(/0+$/, '')
  return `${seconds}${digits === '' ? '' : `.${digits}`}s`
}

function printHost(bytes: Uint8Array, family: number): string {
  const text = printAddress(bytes.subarray(0, family === 1 ? 4 : 16), family as 1 | 2)
  return family === 1 ? text : `[${text}]`
}

/** What each field of a format is to print. */
function fieldsOf(tx: Transaction, status: number): Record<string, string> {
  const { query, response } = tx
  const isBare = UNWRITTEN.includes(status)
  const flags = [
    ['qr', true],
    ['aa', response.authoritative && !isBare],
    ['tc', response.truncated && !isBare],
    ['rd', response.recursionDesired],
    ['ra', response.recursionAvailable],
    ['ad', response.authenticData && !isBare],
    ['cd', response.checkingDisabled],
  ] as const
  const taken = query.hasEdns ? Math.max(512, query.payloadOctets) : 512
  const isSilent = status === DROP
  return {
    type: printType(query.qtype),
    class: printClass(query.qclass),
    name: printName(query.qname),
    proto: query.protocol === 1 ? 'tcp' : 'udp',
    size: `${query.packetOctets}`,
    remote: printHost(query.peerAddress, query.peerFamily),
    port: `${query.peerPort}`,
    local: printHost(query.localAddress, query.localFamily),
    duration: printSeconds(tx.finishedMs - tx.startedMs),
    rcode: isSilent ? '-' : printRcode(isBare ? status : response.rcode),
    rsize: `${tx.sentOctets}`,
    '>id': `${query.id}`,
    '>opcode': `${query.opcode}`,
    '>do': `${query.dnssecOk}`,
    '>bufsize': query.protocol === 1 ? '65535' : `${taken}`,
    '>rflags': isSilent
      ? '-'
      : flags
          .filter(([, isSet]) => isSet)
          .map(([flag]) => flag)
          .join(),
  }
}

function wanted(format: string, tx: Transaction, status: number): string {
  const fields = fieldsOf(tx, status)
  return `[INFO] ${format.replace(/\{([^{}]*)\}/g, (text, name) => fields[name] ?? text)}`
}

/** A channel to the control thread, in memory: `take` returns the octets that were written. */
function channel(): { readonly sender: EntrySender; take(): Uint8Array } {
  const octets = Buffer.from(new ArrayBuffer(400_000))
  let filled = 32
  const out: OctetChannel = {
    octets,
    begin: () => filled,
    end: (end) => {
      filled = end
    },
  }
  return {
    sender: new EntrySender(out, clock),
    take: () => {
      const taken = Uint8Array.from(octets.subarray(32, filled))
      octets.fill(-1)
      filled = 32
      return taken
    },
  }
}

/** A log of all names in one format, and the entries that it sends. */
function logOf(format: LineFormat, buffer: LineBuffer): { log: Log; take: () => Uint8Array } {
  const printer = new EntryPrinter([format], buffer)
  const rules = [{ names: new ZoneSet([Uint8Array.of(0)]), format, classes: undefined }]
  const { sender, take } = channel()
  const log = new Log(
    answering(() => 0),
    rules,
    { clock, printer, sender },
  )
  return { log, take }
}

const arbitraryLabel = fc.oneof(
  { weight: 4, arbitrary: fc.stringMatching(/^[a-z0-9_-]{1,20}$/) },
  fc.uint8Array({ minLength: 1, maxLength: 63 }).map((octets) => {
    return Array.from(octets, (octet) => `\\${String(octet).padStart(3, '0')}`).join('')
  }),
  fc.string({ unit: fc.constantFrom(...'!*=~`_{}/?'), minLength: 1, maxLength: 9 }),
)
const arbitraryName = fc.array(arbitraryLabel, { maxLength: 3 }).map((labels) => {
  return labels.length === 0 ? '.' : `${labels.join('.')}.`
})
const arbitraryAddress = fc.oneof(fc.ipV4(), fc.ipV6())
const arbitraryQuery = fc.record({
  name: arbitraryName,
  type: fc.oneof(fc.constantFrom(1, 28, 16, 65), fc.nat(65_535)),
  class: fc.oneof({ weight: 3, arbitrary: fc.constant(1) }, fc.nat(65_535)),
  from: arbitraryAddress,
  to: arbitraryAddress,
  port: fc.nat(65_535),
  tcp: fc.boolean(),
  recursionDesired: fc.boolean(),
  dnssecOk: fc.boolean(),
  payloadOctets: fc.option(fc.oneof(fc.constantFrom(512, 1232), fc.nat(65_535)), {
    nil: undefined,
  }),
})
const arbitraryReply = fc.record({
  id: fc.nat(65_535),
  opcode: fc.nat(15),
  packetOctets: fc.oneof(fc.integer({ min: 17, max: 100 }), fc.nat(65_535)),
  status: fc.oneof(fc.constantFrom(0, 0, 0, 1, 2, 3, 4, 5, DROP), fc.nat(4095)),
  flags: fc.nat(63),
  sentOctets: fc.oneof(fc.nat(1500), fc.nat(2 ** 31 - 1)),
  ms: fc.oneof(
    fc.constantFrom(0, 0.001, 0.0379902515, 999.9999999, 1000, 2500),
    fc.double({ min: -5, max: 4000, noNaN: true }),
    fc.double({ min: 0, max: 2e9, noNaN: true }),
  ),
})
const pieces = [
  ...['type', 'class', 'name', 'proto', 'size', 'remote', 'port', 'local', 'duration', 'rcode'],
  ...['rsize', '>id', '>opcode', '>do', '>bufsize', '>rflags', 'unknown', ''],
].map((name) => `{${name}}`)
const arbitraryFormat = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(COMMON_FORMAT, COMBINED_FORMAT) },
  fc
    .array(fc.constantFrom(...pieces, ' ', '|text|', 'ä', COMMON_FORMAT), {
      minLength: 1,
      maxLength: 12,
    })
    .map((parts) => parts.join('')),
)

const reused = transaction({ name: '.' })

/** What was asked and answered, as a chain leaves it behind; valid until the next call. */
function answered(
  question: typeof arbitraryQuery extends fc.Arbitrary<infer Q> ? Q : never,
  reply: typeof arbitraryReply extends fc.Arbitrary<infer R> ? R : never,
): Transaction {
  const { payloadOctets, ...rest } = question
  const tx = refill(reused, payloadOctets === undefined ? rest : { ...rest, payloadOctets })
  const { query, response } = tx
  query.id = reply.id
  query.opcode = reply.opcode
  query.packetOctets = reply.packetOctets
  response.rcode = Math.max(0, reply.status)
  response.authoritative = (reply.flags & 1) !== 0
  response.truncated = (reply.flags & 2) !== 0
  response.recursionAvailable = (reply.flags & 8) !== 0
  response.authenticData = (reply.flags & 16) !== 0
  response.checkingDisabled = (reply.flags & 32) !== 0
  tx.sentOctets = reply.sentOctets
  tx.startedMs = 5
  tx.finishedMs = 5 + reply.ms || Number.MIN_VALUE
  return tx
}

t.test('entries of any query print as its fields do, in any format', async () => {
  const one = fc.record({ question: arbitraryQuery, reply: arbitraryReply })
  const cases = fc.record({
    formats: fc.array(arbitraryFormat, { minLength: 1, maxLength: 3 }),
    queries: fc.array(one, { minLength: 1, maxLength: 6 }),
  })
  fc.assert(
    fc.property(cases, ({ formats, queries }) => {
      const compiled = formats.map((format) => new LineFormat(format, () => undefined))
      const [there, here]: [string[], string[]] = [[], []]
      const { sender, take } = channel()
      const want: string[] = []
      for (const [i, { question, reply }] of queries.entries()) {
        const rules = compiled.map((format, rule): LogRule => {
          const names = rule === i % formats.length ? ['\0'] : ['\x07nowhere\0']
          return {
            names: new ZoneSet(names.map((name) => Buffer.from(name))),
            format,
            classes: undefined,
          }
        })
        const tx = answered(question, reply)
        const below = answering(() => reply.status)
        const printer = new EntryPrinter(compiled, lineBufferTo(here))
        new Log(below, rules, { clock, printer, sender }).serve(tx)
        new Log(below, rules, { clock, printer, sender: undefined }).serve(tx)
        want.push(wanted(formats[i % formats.length]!, tx, reply.status))
      }
      printEntries(take(), compiled, lineBufferTo(there))
      if (there.join('\n') !== want.join('\n') || here.join('\n') !== want.join('\n')) {
        throw new Error(`${there.join('\n')}\nis not\n${want.join('\n')}`)
      }
    }),
    { seed: 7, numRuns: runs(250) },
  )
})

t.test('a line with metadata is printed by the thread that has the metadata', async (t) => {
  const lines: string[] = []
  const format = new LineFormat('{name} {/a/b}', () => (tx) => `${tx.query.id}`)
  const { log, take } = logOf(format, lineBufferTo(lines))
  log.serve(transaction({ name: 'a.example.' }))
  t.strictSame(lines, ['[INFO] a.example. 4660'])
  t.equal(take().length, 0)
})

t.test(
  'entries that arrive together are printed in order, and written in few pieces',
  async (t) => {
    const lines: string[] = []
    const writes: number[] = []
    const buffer = lineBufferTo(lines)
    const write = buffer.write.bind(buffer)
    buffer.write = (octets) => {
      writes.push(octets.length)
      write(octets)
    }
    const format = new LineFormat(COMMON_FORMAT, () => undefined)
    const { log, take } = logOf(format, buffer)
    for (let port = 0; port < 800; port++) log.serve(transaction({ name: 'a.example.', port }))
    printEntries(take(), [format], buffer)
    t.strictSame(
      lines.map((line) => Number(/:(\d+) /.exec(line)?.[1])),
      Array.from({ length: 800 }, (_, i) => i),
    )
    t.ok(writes.length <= 6, `${writes}`)
  },
)

t.test('lines for which the buffer has no room are dropped and counted one by one', async (t) => {
  const buffer = new LineBuffer({ isBusy: () => true, write: () => {} }, () => {})
  const format = new LineFormat(`{name} ${'x'.repeat(1000)}`, () => undefined)
  const { log, take } = logOf(format, buffer)
  for (let i = 0; i < 20; i++) {
    for (let line = 0; line < 100; line++) log.serve(transaction({ name: 'a.example.' }))
    printEntries(take(), [format], buffer)
  }
  t.ok(
    buffer.dropped > 900 && buffer.dropped < 1100,
    `${buffer.dropped} of 2000 did not fit in 1 MiB`,
  )
})
