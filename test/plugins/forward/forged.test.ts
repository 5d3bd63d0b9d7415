import { createHash } from 'node:crypto'
import t from 'tap'
import { Random } from '../../../src/base/random.ts'
import { Rcode, RRType } from '../../../src/dns/iana/index.ts'
import { HeaderFlag } from '../../../src/dns/message/header.ts'
import { parseMessage } from '../../../src/dns/message/parse-message.ts'
import { printName, scanName } from '../../../src/dns/name/name.ts'
import { printAddress } from '../../../src/dns/text/address.ts'
import { serve } from '../../server/data/stage.ts'
import { UdpClient } from '../../support/client.ts'
import {
  type Asked,
  addressRecord,
  replyTo,
  ScriptedServer,
} from '../../support/scripted-server.ts'

// Long: it sends many thousand forged replies.

const FORGED = '203.0.113.66'
const ROUNDS = 4
const NAMES = 12

/** The directives of each zone, above `forward`. */
const ZONES: Readonly<Record<string, string>> = {
  'plain.example': '',
  'cache.example': 'cache {\nserve_stale\nprefetch 1\nsuccess 1024 1 0\n}',
  'late.example': 'k8s_cache {\nserve_stale 1h verify\nsuccess 1024 1 0\n}',
  'dns64.example': 'dns64 {\nallow_ipv4\n}\ncache {\nsuccess 1024 1 0\n}',
  'rewrite.example':
    'rewrite name suffix .rewrite.example .plain.example answer auto\nrewrite continue ttl . 1-9',
  'template.example':
    'template IN A {\nmatch ^(.*)\\.template\n' +
    'answer "{{ .Name }} 5 IN CNAME {{ index .Match 1 }}.cache.example."\n}\nloadbalance\nminimal',
}

/** 10.0.0.0/8, by name. */
function addressOf(name: string): string {
  return `10.${[...createHash('sha256').update(name).digest().subarray(0, 3)].join('.')}`
}

/** The address that a client must get. */
function wanted(name: string): string {
  const label = name.split('.')[0]!
  if (name.includes('.rewrite.')) return addressOf(`${label}.plain.example.`)
  if (name.includes('.template.')) return addressOf(`${label}.cache.example.`)
  return addressOf(name)
}

/** Sends replies to other queries than this one, then perhaps its own. */
function deceive({ query, send, isTcp }: Asked, random: Random): void {
  const question = query.question!
  const answer = [addressRecord(query, FORGED)]
  const other = { ...question, name: scanName('other.example.')! }
  const forged = [
    () => replyTo({ ...query, id: query.id ^ (1 << random.below(16)) }, { answer }),
    () => replyTo(query, { question: other, answer }),
    () => replyTo(query, { question: { ...question, rrclass: 3 }, answer }),
    () => replyTo(query, { question: { ...question, type: RRType.TXT }, answer }),
    () => replyTo(query, { question: undefined, answer }),
    () => replyTo(query, { flags: HeaderFlag.RD, answer }),
    () => replyTo(query, { opcode: 4, answer }),
  ]
  for (let i = random.below(4); i > 0; i--) send(forged[random.below(forged.length)]!())
  const kind = random.below(12)
  if (kind === 0) return
  if (kind === 1) send(replyTo(query, { rcode: Rcode.SERVFAIL, answer: [] }))
  else if (kind === 2 && !isTcp) {
    send(replyTo(query, { flags: HeaderFlag.QR | HeaderFlag.TC, answer }))
  } else {
    const name = printName(question.name).toLowerCase()
    const own = question.type === RRType.A ? [addressRecord(query, addressOf(name))] : []
    send(replyTo(query, { answer: own.map((record) => ({ ...record, ttlSeconds: 1 })) }))
  }
}

t.test('forged replies change no answer, whatever the directives above', async (t) => {
  const random = new Random(20_261_123)
  const upstream = await ScriptedServer.openRaw(t, (asked) => {
    if (random.below(4) === 0) setImmediate(() => deceive(asked, random))
    else deceive(asked, random)
  })
  const forward = `forward . ${upstream.address} {\nread_timeout 2s\nmax_fails 0\n}`
  const blocks = Object.entries(ZONES).map(([zone, text]) => {
    return `${zone}:{PORT} {\nbind 127.0.0.1\n${text}\n${forward}\n}\n`
  })
  const stage = await serve(t, 'batch', blocks.join(''))
  const clients = await Promise.all([1, 2, 3].map(() => UdpClient.connect(stage.port)))
  t.teardown(() => clients.forEach((client) => void client.close()))
  let answered = 0
  const ask = async (client: UdpClient, name: string): Promise<void> => {
    const isIPv6 = name.includes('.dns64.')
    const reply = parseMessage(await client.ask({ name, type: isIPv6 ? 'AAAA' : 'A' }))
    t.equal(printName(reply?.question?.name ?? new Uint8Array(1)), name)
    for (const { type, rdata } of reply?.answer ?? []) {
      if (type === RRType.CNAME) continue
      t.equal(printAddress(rdata.subarray(-4), 1), wanted(name), name)
      answered++
    }
  }
  for (let round = 0; round < ROUNDS; round++) {
    const names = Object.keys(ZONES).flatMap((zone) => {
      return Array.from({ length: NAMES }, (_, i) => `n${i}.${zone}.`)
    })
    await Promise.all(names.map((name) => ask(clients[random.below(clients.length)]!, name)))
  }
  t.ok(answered > (ROUNDS * NAMES * Object.keys(ZONES).length) / 2, `${answered} answers`)
  t.equal(stage.totals.panics, 0)
})
