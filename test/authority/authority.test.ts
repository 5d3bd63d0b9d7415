import { test } from 'tap'
import { answerFromImage, NOT_OURS, withdrawAnswer } from '../../src/authority/authority.ts'
import { Rcode, RRClass, RRType } from '../../src/dns/iana/index.ts'
import { Section } from '../../src/dns/message/section.ts'
import { DROP } from '../../src/plugin/handler.ts'
import { CHAIN_DEPTH_MAX, type ServerView, type Transaction } from '../../src/plugin/transaction.ts'
import { ZoneAnswerer } from '../../src/zone/lookup/answer.ts'
import { show, transaction } from '../support/transaction.ts'
import { imageOfText, wire } from '../support/zone-text.ts'

const ZONE = `
@ 60 SOA ns host 1 2 3 4 5
@ 60 NS ns
www 60 A 192.0.2.1
out 60 CNAME www.example.net.
one 60 CNAME out
`

const answerer = new ZoneAnswerer(imageOfText(ZONE).reader())
const handler = { name: 'test', serve: (tx: Transaction) => answerFromImage(tx, answerer) }

interface Asked {
  name: Uint8Array
  type: number
  depth: number
}

/** A server whose other zones answer as `fill` says; notes what it was asked, and what came back. */
function server(fill: ((tx: Transaction) => void) | undefined, late = false) {
  const asked: Asked[] = []
  const released: Transaction[] = []
  const view: ServerView = {
    address: 'dns://:53',
    zones: { deepest: 1, apexOctets: () => 0 },
    isHandingOver: false,
    handOver: () => DROP,
    canHandOver: true,
    repeat: () => {
      throw new Error('not used')
    },
    lookupInternally: (tx, qname, qtype) => {
      asked.push({ name: qname.slice(0, qname.indexOf(0) + 1), type: qtype, depth: tx.chainDepth })
      if (fill === undefined) return undefined
      const nested = transaction({ name: 'www.example.net.' }, view)
      fill(nested)
      return late ? Promise.resolve(nested) : nested
    },
    release: (tx) => {
      // What a pool does with what it gets back: the next query overwrites everything.
      released.push(tx)
      tx.query.qname.fill(0x58)
      for (const bytes of tx.response.rdataBytes.slice(0, tx.response.count)) bytes.fill(0x58)
      tx.response.count = 0
    },
  }
  return { view, asked, released }
}

function addAddress(tx: Transaction, last = 9): void {
  const rdata = new Uint8Array([198, 51, 100, last])
  tx.response.add(Section.Answer, tx.query.qname, 0, RRType.A, RRClass.IN, 30, rdata, 0, 4)
}

function addSoa(tx: Transaction): void {
  const rdata = new Uint8Array(22)
  const owner = wire('example.net.')
  tx.response.add(Section.Authority, owner, 0, RRType.SOA, RRClass.IN, 5, rdata, 0, rdata.length)
}

const CNAME = 'out.example.org. 60 IN CNAME 03777777076578616d706c65036e657400'
const ADDRESS = 'www.example.net. 30 IN A c6336409'

for (const late of [false, true]) {
  test(`authority: records of a CNAME's target are merged${late ? ', later' : ''}`, async (t) => {
    const { view, asked, released } = server((tx) => addAddress(tx), late)
    const shown = await show(handler, transaction({ name: 'out.example.org.' }, view))
    t.same(shown.answer, [CNAME, ADDRESS])
    t.equal(shown.status, 'NOERROR')
    t.equal(shown.flags, 'aa')
    t.equal(asked.length, 1)
    t.equal(released.length, 1)
    t.equal(asked[0]?.type, RRType.A)
  })
}

test('authority: steps inside the zone count towards the chain', async (t) => {
  const { view, asked } = server((tx) => addAddress(tx))
  await show(handler, transaction({ name: 'one.example.org.' }, view))
  t.equal(asked[0]?.depth, 1)
})

test('authority: a target that does not exist makes the answer NXDOMAIN with its SOA', async (t) => {
  const { view } = server((tx) => {
    tx.response.rcode = Rcode.NXDOMAIN
    addSoa(tx)
  })
  const shown = await show(handler, transaction({ name: 'out.example.org.' }, view))
  t.equal(shown.status, 'NXDOMAIN')
  t.same(shown.answer, [CNAME])
  t.match(shown.authority, [/^example\.net\. 5 IN SOA/])
})

test('authority: a target without the type makes the answer NODATA with its SOA', async (t) => {
  const { view } = server(addSoa)
  const shown = await show(handler, transaction({ name: 'out.example.org.' }, view))
  t.equal(shown.status, 'NOERROR')
  t.same(shown.answer, [CNAME])
  t.equal(shown.authority.length, 1)
})

test('authority: a negative answer without SOA gets that of the zone of the CNAME', async (t) => {
  const addNs = (tx: Transaction): void => {
    const ns = wire('ns.example.net.')
    tx.response.add(Section.Authority, wire('net.'), 0, RRType.NS, RRClass.IN, 7, ns, 0, ns.length)
  }
  const table: { name: string; fill: (tx: Transaction) => void; rcode: number }[] = [
    { name: 'NXDOMAIN', fill: () => {}, rcode: Rcode.NXDOMAIN },
    { name: 'NXDOMAIN with NS', fill: addNs, rcode: Rcode.NXDOMAIN },
    { name: 'NODATA', fill: () => {}, rcode: Rcode.NOERROR },
    { name: 'NODATA with NS', fill: addNs, rcode: Rcode.NOERROR },
  ]
  for (const apexNsInAuthority of [false, true]) {
    const answerer = new ZoneAnswerer(imageOfText(ZONE).reader(), undefined, { apexNsInAuthority })
    const handler = { name: 'test', serve: (tx: Transaction) => answerFromImage(tx, answerer) }
    for (const { name, fill, rcode } of table) {
      for (const late of [false, true]) {
        const { view } = server((tx) => {
          tx.response.authoritative = true
          tx.response.rcode = rcode
          fill(tx)
        }, late)
        const shown = await show(handler, transaction({ name: 'out.example.org.' }, view))
        t.equal(shown.status, rcode === Rcode.NXDOMAIN ? 'NXDOMAIN' : 'NOERROR', name)
        t.same(shown.answer, [CNAME])
        t.match(shown.authority, [/^example\.org\. 5 IN SOA/], name)
      }
    }
  }
})

test('authority: a target that fails makes SERVFAIL, and the CNAME is kept', async (t) => {
  const { view } = server((tx) => {
    tx.response.rcode = Rcode.SERVFAIL
  })
  const shown = await show(handler, transaction({ name: 'out.example.org.' }, view))
  t.equal(shown.status, 'NOERROR (sent: SERVFAIL)')
  t.same(shown.answer, [CNAME])
})

for (const [name, fill] of [
  ['no block serves', undefined],
  [
    'is refused',
    (tx: Transaction) => {
      tx.response.rcode = Rcode.REFUSED
    },
  ],
] as const) {
  test(`authority: a target that ${name} leaves the CNAME alone`, async (t) => {
    const { view } = server(fill)
    const shown = await show(handler, transaction({ name: 'out.example.org.' }, view))
    t.equal(shown.status, 'NOERROR')
    t.same(shown.answer, [CNAME])
  })
}

for (const late of [false, true]) {
  const when = late ? ', later' : ''

  test(`authority: a referral takes the place of our NS${when}`, async (t) => {
    const withNs = new ZoneAnswerer(imageOfText(ZONE).reader(), undefined, {
      apexNsInAuthority: true,
    })
    const { view } = server((tx) => {
      const owner = wire('sub.example.net.')
      const ns = wire('ns.sub.example.net.')
      const { response } = tx
      response.add(Section.Authority, owner, 0, RRType.NS, RRClass.IN, 7, ns, 0, ns.length)
      const address = new Uint8Array([192, 0, 2, 7])
      response.add(Section.Additional, ns, 0, RRType.A, RRClass.IN, 7, address, 0, 4)
    }, late)
    const handler = { name: 'test', serve: (tx: Transaction) => answerFromImage(tx, withNs) }
    const shown = await show(handler, transaction({ name: 'out.example.org.' }, view))
    t.same(shown.answer, [CNAME])
    t.same(shown.authority, ['sub.example.net. 7 IN NS 026e7303737562076578616d706c65036e657400'])
    t.same(shown.additional, ['ns.sub.example.net. 7 IN A c0000207'])
    t.equal(shown.flags, 'aa')
  })

  test(`authority: a target that leads back ends the chain${when}`, async (t) => {
    const { view } = server((tx) => {
      tx.response.authoritative = true
      const back = wire('out.example.org.')
      const { qname } = tx.query
      tx.response.add(Section.Answer, qname, 0, RRType.CNAME, RRClass.IN, 7, back, 0, back.length)
      const again = wire('www.example.net.')
      const owner = Buffer.from(back)
      owner[1] = 0x4f
      tx.response.add(Section.Answer, owner, 0, RRType.CNAME, RRClass.IN, 7, again, 0, again.length)
    }, late)
    const shown = await show(handler, transaction({ name: 'out.example.org.' }, view))
    t.same(shown.answer, [CNAME, 'www.example.net. 7 IN CNAME 036f7574076578616d706c65036f726700'])
  })
}

test('authority: a chain that is too long causes no lookup', async (t) => {
  const { view, asked } = server((tx) => addAddress(tx))
  const tx = transaction({ name: 'out.example.org.' }, view)
  tx.chainDepth = CHAIN_DEPTH_MAX
  const shown = await show(handler, tx)
  t.equal(asked.length, 0)
  t.equal(shown.status, 'NOERROR')
  t.same(shown.answer, [CNAME])
})

test('authority: more records than the first buffer holds are all kept', async (t) => {
  const { view } = server((tx) => {
    for (let i = 0; i < 600; i++) addAddress(tx, i & 255)
  })
  const tx = transaction({ name: 'out.example.org.' }, view)
  const shown = await show(handler, tx)
  t.equal(shown.answer.length, 601)
  shown.answer.slice(1).forEach((line, i) => {
    const last = (i & 255).toString(16).padStart(2, '0')
    if (line !== `www.example.net. 30 IN A c63364${last}`) t.fail(`${i}: ${line}`)
  })
  const buffer = tx.chasedOctets
  tx.response.reset(tx.query)
  tx.chainDepth = 0
  await show(handler, tx)
  t.equal(tx.chasedOctets, buffer, 'the grown buffer is used again')
})

test('authority: the scope of a steered target widens ours', async (t) => {
  const { view } = server((tx) => {
    tx.response.scopeBits = 20
    tx.response.isSteered = true
    addAddress(tx)
  })
  const tx = transaction({ name: 'out.example.org.' }, view)
  await show(handler, tx)
  t.equal(tx.response.scopeBits, 20)
  t.equal(tx.response.isSteered, true)
})

test('authority: a name in no zone is not ours, and the response is untouched', async (t) => {
  const tx = transaction({ name: 'www.example.com.' })
  t.equal(answerFromImage(tx, answerer), NOT_OURS)
  t.equal(tx.response.count, 0)
  t.notOk(tx.response.authoritative)
})

test('authority: an answer can be taken back', async (t) => {
  const tx = transaction({ name: 'nowhere.example.org.' })
  t.equal(answerFromImage(tx, answerer), Rcode.NXDOMAIN)
  t.ok(tx.response.count > 0)
  withdrawAnswer(tx.response)
  t.equal(tx.response.count, 0)
  t.equal(tx.response.rcode, Rcode.NOERROR)
  t.notOk(tx.response.authoritative)
})
