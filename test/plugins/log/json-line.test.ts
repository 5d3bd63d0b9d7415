import fc from 'fast-check'
import t from 'tap'
import { JSON_LINES } from '../../../src/base/telemetry/json-lines.ts'
import { setLogForm } from '../../../src/base/telemetry/log.ts'
import { Rcode, RRClass, RRType } from '../../../src/dns/iana/index.ts'
import { Section } from '../../../src/dns/message/section.ts'
import { LineFormat } from '../../../src/plugins/log/format.ts'
import { log } from '../../../src/plugins/log/setup.ts'
import { SetUp } from '../../support/setup.ts'
import { answering, type Question, transaction } from '../../support/transaction.ts'

const QUESTION: Question = {
  name: 'WWW.example.org.',
  from: '192.0.2.1',
  port: 50759,
  recursionDesired: true,
  startedMs: 1000,
}

function reply(rcode: number) {
  return answering((tx) => {
    const { response, query } = tx
    response.add(Section.Answer, query.qname, 0, RRType.A, RRClass.IN, 60, new Uint8Array(4), 0, 4)
    response.rcode = Math.max(0, rcode)
    return rcode
  }, false)
}

/** Other tests of the process print text: the form is that of JSON only while the formats are compiled. */
function setUpJson(corefile: string): SetUp {
  setLogForm(JSON_LINES)
  const setUp = new SetUp(log, corefile)
  setLogForm(undefined)
  return setUp
}

async function lineOf(corefile: string, asked = QUESTION, rcode: number = Rcode.NOERROR) {
  const setUp = setUpJson(corefile)
  setUp.clock.monotonicMs = 1000.037990251
  await setUp.handler(reply(rcode)).serve(transaction(asked))
  t.equal(setUp.lines.length, 1)
  const line = setUp.lines[0]!
  return { line, fields: JSON.parse(line) as Record<string, unknown>, time: setUp.clock.now() }
}

t.test('the fields of CoreDNS, in its order', async (t) => {
  const { line, time } = await lineOf('log . "{name} \\"{rcode}\\" \\\\"')
  const fields = [
    `{"time":"${new Date(time).toISOString()}","level":"INFO","msg":`,
    ',"plugin":"log","client_ip":"192.0.2.1","client_port":50759,"qname":"www.example.org."',
    ',"qtype":"A","qclass":"IN","protocol":"udp","id":4660,"opcode":0,"request_size":33',
    ',"dnssec_ok":false,"bufsize":512,"rcode":"NOERROR","response_size":64',
    ',"duration_seconds":0.00003799}',
  ]
  for (const part of fields) t.ok(line.includes(part), `${line} has ${part}`)
  const table = [
    { given: { from: '2001:db8::1' }, want: { client_ip: '2001:db8::1' } },
    { given: { tcp: true }, want: { protocol: 'tcp', bufsize: 65535 } },
    { given: { type: 65280 }, want: { qtype: 'TYPE65280' } },
    { given: { payloadOctets: 4096, dnssecOk: true }, want: { dnssec_ok: true, bufsize: 4096 } },
    { given: {}, rcode: Rcode.SERVFAIL, want: { rcode: 'SERVFAIL' } },
    { given: {}, rcode: -1, want: { rcode: null, response_size: 0 } },
  ]
  for (const { given, rcode, want } of table) {
    const { fields } = await lineOf('log', { ...QUESTION, ...given }, rcode)
    t.match(fields, want)
  }
})

t.test('msg is the line in text, whatever is in the query and the format', async (t) => {
  const label = fc.uint8Array({ minLength: 1, maxLength: 63 })
  const name = fc.array(label, { minLength: 1, maxLength: 3 })
  const formats = ['log', 'log . {combined}', 'log . "{name} \\"é\u2028\\" {type} {/x/y} \\\\"']
  await fc.assert(
    fc.asyncProperty(name, fc.constantFrom(...formats), async (labels, corefile) => {
      const text = labels.map((one) => `${[...one].map(escapeOctet).join('')}.`).join('')
      const { line, fields } = await lineOf(corefile, { ...QUESTION, name: text })
      const { msg, qname } = fields
      const asText = new SetUp(log, corefile)
      asText.clock.monotonicMs = 1000.037990251
      await asText.handler(reply(0)).serve(transaction({ ...QUESTION, name: text }))
      t.equal(`[INFO] ${String(msg)}`, asText.lines[0])
      t.ok(asText.lines[0]!.includes(String(qname)))
      t.notMatch(line, /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u)
    }),
    { numRuns: 60 },
  )
})

/** As `\DDD`, but letters in lower case. */
function escapeOctet(octet: number): string {
  return `\\${String(octet).padStart(3, '0')}`
}

t.test('a line never exceeds the room that its format asks for', (t) => {
  const text = new LineFormat('{name}'.repeat(50), () => undefined)
  const json = new LineFormat('{name}'.repeat(50), () => undefined, { now: () => 0 })
  t.ok(json.octetsMax > 2 * text.octetsMax)
  t.end()
})
