import { isIP } from 'node:net'
import t from 'tap'
import type { Answered, Asked } from '../../../src/client/ask.ts'
import { Opcode, RRClass, RRType } from '../../../src/dns/iana/index.ts'
import type { Message, ResourceRecord } from '../../../src/dns/message/message.ts'
import { printName, scanName } from '../../../src/dns/name/name.ts'
import { scanRdata } from '../../../src/dns/rdata/index.ts'
import { scanAddress } from '../../../src/dns/text/address.ts'
import { notifyParent } from '../../../src/signing/rolls/notify-parent.ts'
import { askParentDs } from '../../../src/signing/rolls/parent-ds.ts'
import { recordLog } from '../../support/recorded-log.ts'

const ZONE = scanName('city.ise.mie.jp.')!
const SERVERS = ['192.0.2.1', '192.0.2.2'].map((host) => ({ host, port: 53 }))

function record(owner: string, type: number, rdata: Uint8Array): ResourceRecord {
  return { owner: scanName(owner)!, type, rrclass: RRClass.IN, ttlSeconds: 3600, rdata }
}

function replied({ query }: Asked, part: Partial<Message>): Answered {
  const message = { ...query, id: 1, ...part }
  return { kind: 'reply', message, octets: new Uint8Array(), overTcp: false }
}

const DS = [
  record('city.ise.mie.jp.', RRType.DS, Buffer.from('30390d02aa', 'hex')),
  record('city.ise.mie.jp.', RRType.DS, Buffer.from('30390d02bb', 'hex')),
]
const SOA = (owner: string): ResourceRecord => record(owner, RRType.SOA, new Uint8Array(22))

t.test('what the servers of the parent have', async (t) => {
  const table: readonly (readonly [what: string, second: Partial<Message>, found: unknown])[] = [
    [
      'the same in another order',
      { answer: [...DS].reverse() },
      { rdata: { length: 2 }, ttlSeconds: 3600 },
    ],
    ['another set', { answer: [DS[0]!] }, 'the servers of the parent have different DS records'],
    ['no DS', { authority: [SOA('jp.')] }, 'the servers of the parent have different DS records'],
    [
      'the zone itself',
      { authority: [SOA('city.ise.mie.jp.')] },
      '192.0.2.2:53: it does not have the parent zone of city.ise.mie.jp.',
    ],
    ['nothing', {}, '192.0.2.2:53: it does not have the parent zone of city.ise.mie.jp.'],
    ['no such name', { rcode: 3 }, '192.0.2.2:53: it does not know city.ise.mie.jp.'],
    ['an error', { rcode: 2 }, '192.0.2.2:53: its rcode is SERVFAIL'],
    [
      'a TTL of a century',
      { answer: DS.map((one) => ({ ...one, ttlSeconds: 0xffffffff })) },
      { rdata: { length: 2 }, ttlSeconds: 604_800 },
    ],
    [
      'very many',
      { answer: Array.from({ length: 65 }, () => DS[0]!) },
      '192.0.2.2:53: it has more than 64 DS records of city.ise.mie.jp.',
    ],
  ]
  for (const [what, second, found] of table) {
    const ask = async (asked: Asked): Promise<Answered> =>
      replied(asked, asked.server.host === '192.0.2.1' ? { answer: DS } : second)
    const got = await askParentDs(ZONE, SERVERS, ask)
    if (typeof found === 'string') t.equal(got, found, what)
    else t.match(got, found, what)
  }
  const silent = async (): Promise<Answered> => ({
    kind: 'failed',
    reason: 'timed out',
    overTcp: true,
  })
  t.equal(await askParentDs(ZONE, SERVERS, silent), '192.0.2.1:53: timed out')
})

interface Receiver {
  readonly port: number
  readonly addresses: readonly string[]
}

const RECEIVER: Receiver = { port: 5359, addresses: ['192.0.2.9'] }

function dsyncRdata(port: number): Uint8Array {
  const fields = ['CDS', 'NOTIFY', String(port), 'cds.nic.jp.']
  const tokens = fields.map((text) => ({ text, quoted: false }))
  const rdata = scanRdata(RRType.DSYNC, tokens, scanName('.')!)
  if (!(rdata instanceof Uint8Array)) throw rdata
  return rdata
}

/** Parent zones by the name of their DSYNC record. */
async function notify(
  dsync: string,
  parent: string,
  { port, addresses }: Receiver = RECEIVER,
): Promise<{ asked: string[]; lines: string[] }> {
  const asked: string[] = []
  const { log, lines } = recordLog()
  const askServer = async (one: Asked): Promise<Answered> => {
    const { query, server } = one
    const { name, type } = query.question!
    if (query.opcode === Opcode.NOTIFY) {
      asked.push(`NOTIFY ${printName(name)} ${type} ${server.host}:${server.port}`)
      return replied(one, {})
    }
    if (type === RRType.DSYNC) {
      asked.push(printName(name))
      if (printName(name) !== dsync) return replied(one, { rcode: 3, authority: [SOA(parent)] })
      return replied(one, { answer: [record(dsync, RRType.DSYNC, dsyncRdata(port))] })
    }
    const family = type === RRType.A ? 4 : 6
    const answer = addresses
      .filter((address) => isIP(address) === family)
      .map((address) => record('cds.nic.jp.', type, scanAddress(address)!.bytes))
    return replied(one, { answer })
  }
  await notifyParent(ZONE, log, { resolvers: [SERVERS[0]!], askServer })
  return { asked, lines }
}

t.test('NOTIFY(CDS) is sent to where the DSYNC record of the parent says', async (t) => {
  const sent = 'NOTIFY city.ise.mie.jp. 59 192.0.2.9:5359'
  const table = [
    { dsync: 'city._dsync.ise.mie.jp.', asked: ['city._dsync.ise.mie.jp.', sent] },
    {
      dsync: 'city.ise.mie._dsync.jp.',
      asked: ['city._dsync.ise.mie.jp.', 'city.ise.mie._dsync.jp.', sent],
    },
    {
      dsync: '_dsync.jp.',
      asked: ['city._dsync.ise.mie.jp.', 'city.ise.mie._dsync.jp.', '_dsync.jp.', sent],
    },
    {
      dsync: '',
      asked: ['city._dsync.ise.mie.jp.', 'city.ise.mie._dsync.jp.', '_dsync.jp.'],
    },
  ]
  for (const { dsync, asked } of table) {
    const got = await notify(dsync, 'jp.')
    t.strictSame(got.asked, asked)
    t.strictSame(
      got.lines,
      dsync === ''
        ? []
        : ['[INFO] keys of city.ise.mie.jp.: NOTIFY(CDS) to cds.nic.jp. 192.0.2.9:5359: received'],
    )
  }
})

t.test('a parent cannot direct NOTIFY to this host, or to where no server can be', async (t) => {
  const special = ['127.0.0.1', '0.0.0.0', '169.254.169.254', '224.0.0.251', '255.255.255.255']
  const special6 = ['::', '::1', '::ffff:127.0.0.1', 'fe80::1', 'ff02::fb']
  const table = [
    { port: 53, addresses: [...special, ...special6], sent: [] },
    { port: 0, addresses: ['192.0.2.9'], sent: [] },
    {
      port: 53,
      addresses: ['127.0.0.1', '10.0.0.1', '::1', 'fd00::1'],
      sent: ['NOTIFY city.ise.mie.jp. 59 fd00::1:53'],
    },
  ]
  for (const { sent, ...receiver } of table) {
    const { asked } = await notify('city._dsync.ise.mie.jp.', 'jp.', receiver)
    t.strictSame(
      asked.filter((one) => one.startsWith('NOTIFY')),
      sent,
      receiver.addresses.join(' '),
    )
  }
})
