// What the links of a chain cost per query, over a last link that answers with four addresses.

import { systemClock } from '../dist/base/clock.js'
import { Random } from '../dist/base/random.js'
import { parseQuery } from '../dist/dns/message/parse-query.js'
import { scanCidr } from '../dist/dns/text/address.js'
import { AddressSet } from '../dist/dns/text/address-set.js'
import { CounterSlots } from '../dist/plugin/counter-slots.js'
import { Transaction } from '../dist/plugin/transaction.js'
import { Acl, AclAction } from '../dist/plugins/acl/acl.js'
import { Header } from '../dist/plugins/header/header.js'
import { Loadbalance } from '../dist/plugins/loadbalance/loadbalance.js'
import { EntrySender } from '../dist/plugins/log/entries/entry-sender.js'
import { EntryPrinter } from '../dist/plugins/log/entry-printer.js'
import { COMMON_FORMAT, LineFormat } from '../dist/plugins/log/format.js'
import { Log } from '../dist/plugins/log/log.js'
import { Minimal } from '../dist/plugins/minimal/minimal.js'
import { Prometheus } from '../dist/plugins/prometheus/prometheus.js'
import { ZoneSet } from '../dist/zone/lookup/zone-set.js'
import { report } from './rounds.mjs'

const packet = new Uint8Array([
  ...[0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0],
  ...Buffer.from('\x03www\x07example\x03org\0', 'latin1'),
  ...[0, 1, 0, 1],
])
const server = { address: 'dns://:53', lookupInternally: () => undefined, release: () => {} }
const tx = new Transaction(new Random(1), server)
tx.query.peerAddress.set([192, 0, 2, 1])
tx.zone = 'example.org.'
if (parseQuery(tx.query, packet, packet.length) !== 0) throw new Error('not a query')

const rdata = new Uint8Array(16)
const last = {
  name: 'last',
  serve: (tx) => {
    for (let i = 0; i < 4; i++) tx.response.add(0, tx.query.qname, 0, 1, 1, 60, rdata, i * 4, 4)
    tx.response.answeredBy = 'last'
    return 0
  },
}
const root = new ZoneSet([Uint8Array.of(0)])
const networks = Array.from({ length: 1000 }, (_, i) => scanCidr(`10.${i >> 8}.${i & 255}.0/24`))
const policies = [
  { action: AclAction.Block, qtypes: undefined, sources: new AddressSet(networks) },
  { action: AclAction.Allow, qtypes: undefined, sources: undefined },
]
const format = new LineFormat(COMMON_FORMAT, () => undefined)
const octets = Buffer.from(new ArrayBuffer(4096))
const view = new DataView(octets.buffer, octets.byteOffset, octets.length)
const lines = { octets, view, begin: () => 0, end: () => {}, write: () => {} }
const sender = new EntrySender({ octets, begin: () => 0, end: () => {} }, systemClock)
const printer = new EntryPrinter([format], lines)
const flags = { set: 0x80, clear: 0 }

const links = {
  'the last link alone': last,
  'header over it': new Header(last, { set: 0, clear: 0 }, flags),
  'minimal over it': new Minimal(last),
  'acl with 1000 networks over it': new Acl(
    last,
    [{ zones: root, zoneTexts: ['.'], policies }],
    new CounterSlots(),
  ),
  'loadbalance over it': new Loadbalance(last, { weights: undefined, preferred: [] }),
  'prometheus over it': new Prometheus(last, systemClock, new CounterSlots(), ['last']),
  'log over it, lines printed and thrown away': new Log(
    last,
    [{ names: root, format, classes: undefined }],
    { clock: systemClock, printer, sender: undefined },
  ),
  'log over it, entries thrown away': new Log(last, [{ names: root, format, classes: undefined }], {
    clock: systemClock,
    printer,
    sender,
  }),
}
for (const [name, link] of Object.entries(links)) {
  report(
    name,
    () => {
      tx.response.reset(tx.query)
      tx.startedMs = 0
      tx.finishedMs = 0
      tx.sentOctets = -1
      return link.serve(tx)
    },
    0,
    1_000_000,
  )
}
