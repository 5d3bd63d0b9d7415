// What `dnssec` costs per query: without DO, and with signatures of the cache, new ones, and none of its own.

import { randomFillSync } from 'node:crypto'
import { Random } from '../dist/base/random.js'
import { Algorithm } from '../dist/dns/dnssec/algorithms.js'
import { FLAGS_KSK, generatePrivateKey, signingKey } from '../dist/dns/dnssec/dnskey.js'
import { CounterSlots } from '../dist/plugin/counter-slots.js'
import { Dnssec } from '../dist/plugins/dnssec/dnssec.js'
import { ReplySigning } from '../dist/plugins/dnssec/reply-signing.js'
import { DNSSEC_COUNTS, ResponseSigner } from '../dist/plugins/dnssec/response-signer.js'
import { createBudgetMemory, SignatureBudget } from '../dist/plugins/dnssec/signature-budget.js'
import { SigningZones } from '../dist/plugins/dnssec/signing-zones.js'
import { ServerCounts } from '../dist/server/counters.js'
import { Server } from '../dist/server/server.js'
import { DEFAULT_SIGNING } from '../dist/signing/zone-keys.js'
import { report } from './rounds.mjs'

const ZONE = Uint8Array.from(Buffer.from('\x07example\x03org\0', 'latin1'))
const rdata = Uint8Array.of(192, 0, 2, 1)

/** An answer of one address. */
const last = {
  name: 'last',
  serve: ({ query, response }) => {
    response.authoritative = true
    response.add(0, query.qname, 0, 1, 1, 60, rdata, 0, 4)
    response.answeredBy = 'last'
    return 0
  },
}

const key = signingKey(
  await generatePrivateKey(Algorithm.EcdsaP256),
  Algorithm.EcdsaP256,
  FLAGS_KSK,
)
const keys = {
  dnskeys: [key.dnskey],
  dnskeyTtlSeconds: 3600,
  cds: [],
  cdnskeys: [],
  keySigners: [key],
  zoneSigners: [key],
}

function signing(next, { isClaimed }) {
  const settings = { zones: [ZONE], linked: [ZONE], policy: DEFAULT_SIGNING }
  const zones = new SigningZones(settings, {}, () => {})
  if (isClaimed) zones.of(ZONE).claim()
  zones.useKeys([{ zone: ZONE, keys }])
  const slots = new CounterSlots()
  slots.length = DNSSEC_COUNTS
  const budget = new SignatureBudget({ total: 60_000, perNetwork: 60_000 })
  budget.use(createBudgetMemory(randomFillSync))
  const parts = { policy: DEFAULT_SIGNING, capacity: 10_000, budget, slots }
  const signer = new ResponseSigner({ ...parts, now: Date.now, random: () => 0 })
  return new Dnssec(next, zones, new ReplySigning(zones, signer))
}

function serverOf(chain) {
  return new Server({
    address: 'dns://:53',
    blocks: [
      {
        zone: ZONE,
        zoneText: 'example.org.',
        chain,
        filters: [],
        viewName: '',
        bufsizeOctets: 1232,
        debug: true,
      },
    ],
    clock: { now: Date.now, monotonic: () => performance.now() },
    random: new Random(1),
    log: {},
    counters: new ServerCounts(),
  })
}

/** `name`: of five octets. */
function packetOf(name, dnssecOk) {
  return new Uint8Array([
    ...[0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 1],
    ...Buffer.from(`\x05${name}\x07example\x03org\0`, 'latin1'),
    ...[0, 1, 0, 1, 0, 0, 41, 4, 208, 0, 0, dnssecOk ? 0x80 : 0, 0, 0, 0],
  ])
}

const out = new Uint8Array(65_535)
function asking(chain, dnssecOk, isNew = false) {
  const server = serverOf(chain)
  const packet = packetOf('hosta', dnssecOk)
  const tx = server.acquire()
  tx.query.packet = packet
  tx.query.packetOctets = packet.length
  tx.query.peerAddress.set([192, 0, 2, 1])
  let number = 0
  return () => {
    if (isNew) {
      number++
      for (let i = 0, rest = number; i < 5; i++, rest = Math.floor(rest / 26))
        packet[13 + i] = 97 + (rest % 26)
    }
    return server.serve(tx, out) > 0 ? 1 : 0
  }
}

// Interleaved, because the machine's speed changes.
for (let i = 0; i < 3; i++) {
  report('no DO, without dnssec', asking(last, false), 1)
  report('no DO, dnssec over it', asking(signing(last, {}), false), 1)
  report('DO, without dnssec', asking(last, true), 1)
  report(
    'DO, dnssec over a zone that its source signs',
    asking(signing(last, { isClaimed: true }), true),
    1,
  )
  report('DO, dnssec, cached signature', asking(signing(last, {}), true), 1)
}
report('DO, dnssec, new signatures', asking(signing(last, {}), true, true), 1, 20_000)
