import t, { type Test } from 'tap'
import { Rcode, RRType } from '../../../src/dns/iana/index.ts'
import type { Directive } from '../../../src/plugin/directive.ts'
import type { Handler } from '../../../src/plugin/handler.ts'
import { any } from '../../../src/plugins/any/setup.ts'
import { cache } from '../../../src/plugins/cache/setup.ts'
import { dns64 } from '../../../src/plugins/dns64/setup.ts'
import { dnssec } from '../../../src/plugins/dnssec/setup.ts'
import { header } from '../../../src/plugins/header/setup.ts'
import { loadbalance } from '../../../src/plugins/loadbalance/setup.ts'
import { minimal } from '../../../src/plugins/minimal/setup.ts'
import { SetUp } from '../../support/setup.ts'
import { temporaryDirectory } from '../../support/temporary-directory.ts'
import { type Question, transaction } from '../../support/transaction.ts'
import { SOA, type Source, source } from './source.ts'
import { printSigned, type WrittenKey, writeKey } from './stage.ts'

/** Replies of a chain: directives, top first, over a source. */
class Chain {
  readonly #key: WrittenKey
  readonly #handler: Handler

  private constructor(key: WrittenKey, handler: Handler) {
    this.#key = key
    this.#handler = handler
  }

  static async start(
    t: Test,
    directives: readonly (readonly [Directive, string])[],
    below: Source,
  ): Promise<Chain> {
    const key = await writeKey(temporaryDirectory(t), 'example.org.')
    let handler = source(below)
    for (const [directive, lines] of directives.toReversed()) {
      const c = new SetUp(directive, lines.replace('KEY', key.path))
      await c.start()
      t.teardown(() => c.stop())
      handler = c.handler(handler)
    }
    return new Chain(key, handler)
  }

  async ask(question: Partial<Question>, { compactOk = false, checkingDisabled = false } = {}) {
    const given = { name: 'www.example.org.', dnssecOk: true, payloadOctets: 1232, ...question }
    const tx = transaction({ recursionDesired: true, ...given })
    tx.query.compactOk = compactOk
    if (checkingDisabled) tx.query.flags |= 0x0010
    const status = await this.#handler.serve(tx)
    return { status, rcode: tx.response.rcode, lines: printSigned(tx.response, [this.#key.key]) }
  }
}

const SIGN = [dnssec, 'dnssec {\n key file KEY\n}'] as const
const TWO = ['www.example.org. 60 IN A 192.0.2.1', 'www.example.org. 60 IN A 192.0.2.2']
const SIGNED = 'answer www.example.org. A 60 192.0.2.1, 192.0.2.2'

t.test('loadbalance and header above it', async (t) => {
  const above = [
    [loadbalance, 'loadbalance'],
    [header, 'header {\n response set ra\n}'],
  ] as const
  const chain = await Chain.start(t, [...above, SIGN], { answer: TWO })
  for (let i = 0; i < 10; i++) t.strictSame((await chain.ask({})).lines, [SIGNED])
})

t.test('any above it: a client with DO gets the signed records', async (t) => {
  const chain = await Chain.start(t, [[any, 'any'], SIGN], { answer: TWO })
  t.strictSame((await chain.ask({ type: RRType.ANY })).lines, [SIGNED])
  const { lines } = await chain.ask({ type: RRType.ANY, dnssecOk: false })
  t.match(lines, [/ HINFO 8482 .* unsigned/])
})

t.test('minimal below it', async (t) => {
  const authority = ['example.org. 60 IN NS ns.example.org.']
  const positive = await Chain.start(t, [SIGN, [minimal, 'minimal']], { answer: TWO, authority })
  t.strictSame((await positive.ask({})).lines, [SIGNED])
  const missing = { authority: [SOA], rcode: Rcode.NXDOMAIN }
  const negative = await Chain.start(t, [SIGN, [minimal, 'minimal']], missing)
  t.match((await negative.ask({})).lines, [/SOA 300$/, /NSEC 60 .* NXNAME$/])
})

t.test('dns64 above it', async (t) => {
  const above = [dns64, 'dns64 {\n allow_ipv4\n}'] as const
  const chain = await Chain.start(t, [above, SIGN], {
    answer: ['www.example.org. 60 IN A 192.0.2.1'],
    types: [RRType.A],
    authority: [SOA],
  })
  const made = await chain.ask({ type: RRType.AAAA })
  t.match(made.lines[0], /^answer www\.example\.org\. AAAA 60 64:ff9b::c000:201 unsigned$/)
  const own = await chain.ask({ type: RRType.AAAA }, { checkingDisabled: true })
  t.match(own.lines, [/SOA 300$/, /^authority www\.example\.org\. NSEC 60 [^ ]+ A /])
})

t.test('cache above it: failures of this server are not cached', async (t) => {
  const sign = [dnssec, 'dnssec {\n key file KEY\n signatures_per_second 1\n}'] as const
  const below = { answer: TWO, types: [RRType.A], late: true }
  const chain = await Chain.start(t, [[cache, 'cache'], sign], below)
  const overTcp = { tcp: true, startedMs: 1000 }
  t.match((await chain.ask({ ...overTcp, type: RRType.TXT })).lines, [/SOA/, /NSEC/])
  t.match(await chain.ask(overTcp), { status: Rcode.SERVFAIL, lines: [] }, 'the limit is reached')
  const later = await chain.ask({ tcp: true, startedMs: 2500 })
  t.match(later, { status: Rcode.NOERROR, lines: [SIGNED] })
})

t.test('cache above it', async (t) => {
  const above = [cache, 'cache'] as const
  let asked = 0
  const positive = await Chain.start(t, [above, SIGN], {
    answer: TWO,
    late: true,
    onAsked: () => void asked++,
  })
  for (let i = 0; i < 3; i++) t.strictSame((await positive.ask({})).lines, [SIGNED])
  t.equal(asked, 1, 'signed answers are cached')

  asked = 0
  const negative = await Chain.start(t, [above, SIGN], {
    authority: [SOA],
    rcode: Rcode.NXDOMAIN,
    late: true,
    onAsked: () => void asked++,
  })
  const proof = [/SOA \d+$/, /NSEC \d+ .* NXNAME$/]
  const restored = await negative.ask({}, { compactOk: true })
  t.match(restored, { rcode: Rcode.NXDOMAIN, lines: proof })
  t.match(await negative.ask({}), { rcode: Rcode.NOERROR, lines: proof }, 'NXDOMAIN is not cached')
  t.match(await negative.ask({}), { rcode: Rcode.NOERROR, lines: proof })
  t.equal(asked, 2)
})
