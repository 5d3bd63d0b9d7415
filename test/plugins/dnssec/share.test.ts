import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { Rcode, RRType } from '../../../src/dns/iana/index.ts'
import { HMAC_SHA256 } from '../../../src/dns/tsig/algorithm.ts'
import { createTsigKey, TSIG_KEYS } from '../../../src/dns/tsig/key.ts'
import type { Directive } from '../../../src/plugin/directive.ts'
import { dnssec } from '../../../src/plugins/dnssec/setup.ts'
import { composeKeyQuestion } from '../../../src/signing/shared/key-question.ts'
import { ScriptedServer } from '../../support/scripted-server.ts'
import { FakeTimers, SetUp } from '../../support/setup.ts'
import { temporaryDirectory } from '../../support/temporary-directory.ts'
import { transaction } from '../../support/transaction.ts'
import { until } from '../../support/until.ts'
import { text, wire } from '../../support/zone-names.ts'
import { writeKey } from './stage.ts'

const STRONG = createTsigKey(wire('k.'), HMAC_SHA256, Buffer.alloc(32, 1))
const WEAK = createTsigKey(wire('weak.'), HMAC_SHA256, Buffer.alloc(15, 1))

/** A directive with a `tsig` beside it. */
function server(t: Test, lines: string, timers = new FakeTimers()): SetUp {
  const beside: Directive = {
    name: 'dnssec',
    setup(c) {
      c.block.shared.acquire(TSIG_KEYS).replace([STRONG, WEAK])
      return dnssec.setup(c)
    },
  }
  const found = new SetUp(beside, `dnssec {\n${lines}\n}`, undefined, { timers })
  t.teardown(() => found.stop())
  return found
}

const unreadiness = ({ readiness }: SetUp): string => readiness.map(({ check }) => check()).join()

t.test('which queries get keys', async (t) => {
  const leader = server(t, `keys ${join(temporaryDirectory(t), 'keys')}\nshare k.`)
  await leader.start()
  const token = new Uint8Array(16)
  const nameOf = (zone: string): string => {
    return text(composeKeyQuestion({ zone: wire(zone), nonce: token, digest: token })!)
  }
  for (const [what, zone, { key, isUdp = false, type = RRType.TXT }, want] of [
    ['the key', 'example.org.', { key: STRONG }, Rcode.NOERROR],
    ['no key', 'example.org.', {}, Rcode.REFUSED],
    ['another key', 'example.org.', { key: WEAK }, Rcode.REFUSED],
    ['a zone without keys', 'sub.example.org.', { key: STRONG }, Rcode.SERVFAIL],
    ['a zone of another block', 'example.net.', { key: STRONG }, Rcode.REFUSED],
    ['UDP', 'example.org.', { key: STRONG, isUdp: true }, undefined],
    ['another type', 'example.org.', { key: STRONG, type: RRType.A }, undefined],
  ] as const) {
    const tx = transaction({ name: nameOf(zone), type, tcp: !isUdp })
    tx.tsigKey = key
    let isPassed = false
    const next = leader.handler({
      name: '',
      serve: () => {
        isPassed = true
        return Rcode.NXDOMAIN
      },
    })
    const rcode = await next.serve(tx)
    t.equal(isPassed, want === undefined, what)
    if (want !== undefined) t.equal(rcode, want, what)
    t.equal(tx.response.count, want === Rcode.NOERROR ? 1 : 0, what)
    t.equal(tx.response.isSteered, want === Rcode.NOERROR, `${what}: not cached`)
  }
  t.match(leader.lines.join('\n'), /keys of example\.org\. sent to \S+, key k\.$/m)
})

t.test('keys of tsig that are missing or weak', async (t) => {
  const path = join(temporaryDirectory(t), 'keys')
  for (const [lines, want] of [
    ['share none.', /^Corefile:3: no key none\.; add it to the directive tsig of this block/],
    ['share k. weak.', /^Corefile:3: the secret of the key weak\. is too short to protect keys/],
    ['from 127.0.0.1:1 none.', /^Corefile:3: no key none\./],
    ['from 127.0.0.1:1 weak.', /^Corefile:3: the secret of the key weak\. is too short/],
  ] as const) {
    const checked = await server(t, `keys ${path}\n${lines}`).check(() => {}, true)
    t.match(checked.faults[0], want, lines)
    const message = new RegExp(want.source.replace('^Corefile:3: ', ''))
    await t.rejects(server(t, `keys ${path}\n${lines}`).start(), { message }, lines)
  }
})

t.test('a server without keys waits for the other one', async (t) => {
  const path = join(temporaryDirectory(t), 'keys')
  const silent = await ScriptedServer.open(t, () => Rcode.REFUSED)
  const lines = `keys ${path}\nfrom ${silent.address} k.`
  const follower = server(t, lines)
  await follower.start()
  await until(() => follower.problemText() !== '', 'a fault')
  t.match(
    unreadiness(follower),
    /^no usable keys for example\.org\.: keys of example\.org\.: 127\.0\.0\.1:\d+: the reply is not signed, rcode REFUSED; add tsig with the key k\. to its block of the zone; the keys come from 127/,
  )
  t.match(follower.problemText(), /^keys of example\.org\.: 127\.0\.0\.1/)
  const checked = await server(t, lines).check()
  t.strictSame(checked.faults, [])
  t.match(checked.warnings, [/^Corefile:3: 127\.0\.0\.1:\d+: the reply is not signed/])
  const offline = await server(t, lines).check(() => {}, true)
  t.strictSame(offline, { faults: [], warnings: [] })
})

t.test('keys that no server has confirmed are not used', async (t) => {
  const path = join(temporaryDirectory(t), 'keys')
  mkdirSync(path, { mode: 0o700 })
  await writeKey(path, 'example.org.')
  const lines = `keys ${path}\nfrom 127.0.0.1:1 k.`
  await t.rejects(server(t, lines).start(), {
    message:
      /127\.0\.0\.1:1: connection refused; this server does not sign with keys that the server of from may lack/,
  })
  rmSync(path, { recursive: true })
  const empty = server(t, lines)
  await empty.start()
})

t.test('two blocks with one directory', async (t) => {
  const quiet: Directive = { name: 'dnssec', setup: () => ({}) }
  const corefile = (lines: string): string => `dnssec {\nkeys a\n${lines}\n}`
  const first = new SetUp(dnssec, corefile('from 192.0.2.1 k'))
  for (const [lines, isRefused] of [
    ['', true],
    ['from 192.0.2.2 k', true],
    ['from 192.0.2.1 other', false],
  ] as const) {
    const context: SetUp = Object.create(new SetUp(quiet, corefile(lines)), {
      shared: { value: first.shared },
    })
    const want = /^Corefile:2 .* another block uses \S+\/a with another line from; use the same/
    if (isRefused) t.throws(() => dnssec.setup(context), { message: want }, lines)
    else t.ok(dnssec.setup(context), lines)
  }
})
