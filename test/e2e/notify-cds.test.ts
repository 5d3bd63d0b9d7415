import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { type Asked, ask } from '../../src/client/ask.ts'
import { Opcode, RRType } from '../../src/dns/iana/index.ts'
import { HeaderFlag } from '../../src/dns/message/header.ts'
import { parseMessage } from '../../src/dns/message/parse-message.ts'
import { printName } from '../../src/dns/name/name.ts'
import { notifyParent } from '../../src/signing/rolls/notify-parent.ts'
import { digAt, startPeer } from '../support/nameservers.ts'
import { needs } from '../support/peer.ts'
import { recordLog } from '../support/recorded-log.ts'
import { until } from '../support/until.ts'
import { wire } from '../support/zone-names.ts'

/* NOTIFY(CDS) goes where the DSYNC records of a parent zone in BIND say, and is what dig sends (RFC 9859). */

const CHILDREN: readonly (readonly [zone: string, dsync: string])[] = [
  ['child.example', 'child._dsync.example.'],
  ['a.deep.example', 'a.deep._dsync.example.'],
  ['wild.example', '*._dsync.example.'],
]

/** Stands for the receiver: NOTIFY to this host is refused. */
const RECEIVER = '192.0.2.9'

function askServer(asked: Asked): ReturnType<typeof ask> {
  const { host, port } = asked.server
  return ask({ ...asked, server: { host: host === RECEIVER ? '127.0.0.1' : host, port } })
}

for (const [zone, owner] of CHILDREN) {
  t.test(`${zone}, with ${owner}`, needs('named', 'dig'), async (t) => {
    const received: Buffer[] = []
    const receiver = createSocket('udp4')
    receiver.bind(0, '127.0.0.1')
    await once(receiver, 'listening')
    t.teardown(() => receiver.close())
    receiver.on('message', (octets, { port }) => {
      received.push(octets)
      const reply = Buffer.from(octets)
      reply[2]! |= 0x80
      receiver.send(reply, port, '127.0.0.1')
    })
    const { port } = receiver.address() as AddressInfo
    const rdata = Buffer.concat([
      Buffer.from([0, RRType.CDS, 1, port >> 8, port & 255]),
      wire('cds.example.'),
    ])
    const text = `$TTL 60
@ SOA ns host 1 3600 600 86400 1
@ NS ns
ns A 127.0.0.1
cds A ${RECEIVER}
child NS ns
wild NS ns
${owner} TYPE66 \\# ${rdata.length} ${rdata.toString('hex')}
`
    const named = await startPeer(t, 'named', {
      ...{ zone: 'example', port: 1, signed: false },
      zoneText: text,
    })
    const { log, lines } = recordLog()
    const resolvers = [{ host: '127.0.0.1', port: named.port }]
    await notifyParent(wire(`${zone}.`), log, { resolvers, askServer })
    t.strictSame(lines.length, 1, lines.join())
    t.match(lines[0], `NOTIFY(CDS) to cds.example. ${RECEIVER}:${port}: received`)
    t.equal(received.length, 1)
    await digAt(port, ['+opcode=notify', '+norec', '+aaflag', '+noad', `${zone}.`, 'CDS'])
    await until(() => received.length === 2, 'the query of dig')
    const [ours, digs] = received.map((octets) => {
      const { opcode, flags, question, answer } = parseMessage(octets)!
      const wanted = flags & (HeaderFlag.AA | HeaderFlag.TC | HeaderFlag.RD | HeaderFlag.QR)
      return { opcode, wanted, name: printName(question!.name), type: question!.type, answer }
    })
    t.strictSame(ours, digs)
    t.match(ours, { opcode: Opcode.NOTIFY, type: RRType.CDS, name: `${zone}.` })
  })
}
