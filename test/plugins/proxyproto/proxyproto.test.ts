import { join } from 'node:path'
import t from 'tap'
import { check } from '../../../src/cli/check.ts'
import { scanAddress } from '../../../src/dns/text/address.ts'
import { proxyproto } from '../../../src/plugins/proxyproto/setup.ts'
import { PROXY_RULES, ProxyAction, proxyRulesOf } from '../../../src/transport/proxy/rules.ts'
import { recordOutput } from '../../support/recorded-output.ts'
import { SetUp, setupError } from '../../support/setup.ts'
import { transaction } from '../../support/transaction.ts'

const { Use, Ignore, Reject, Skip } = ProxyAction

function rulesOf(c: SetUp) {
  return c.block.shared.find(PROXY_RULES)![0]!
}

t.test('syntax', async (t) => {
  for (const [given, error] of [
    ['proxyproto', ''],
    ['proxyproto {\nallow 127.0.0.1/8 ::1/128\n}', ''],
    ['proxyproto {\nallow\n}', ''],
    ['proxyproto {\nallow 10.0.0.0/8\nallow ::1/128\ndefault SKIP\n}', ''],
    ['proxyproto {\nudp_session_tracking 28s\n}', ''],
    ['proxyproto {\nudp_session_tracking 28s 20000\ntlv_metadata\n}', ''],
    ['proxyproto extra', /Wrong argument count/],
    ['proxyproto {\nallow 10.0.0.1\n}', /invalid CIDR address: "10.0.0.1"; write 10.0.0.1\/32/],
    ['proxyproto {\nallow ::1\n}', /write ::1\/128/],
    ['proxyproto {\nallow proxy.example\n}', /:2 - .*invalid CIDR address: "proxy.example"$/],
    [
      'proxyproto {\nallow 10.0.0.0/8\ndefault deny\n}',
      /default is "deny"; use use, ignore, reject, skip/,
    ],
    ['proxyproto {\ndefault\n}', /Wrong argument count/],
    ['proxyproto {\nudp_session_tracking\n}', /Wrong argument count/],
    ['proxyproto {\nudp_session_tracking 28s 1 2\n}', /Wrong argument count/],
    ['proxyproto {\nudp_session_tracking soon\n}', /invalid duration "soon"; write 28s/],
    [
      'proxyproto {\nudp_session_tracking 28s 0\n}',
      /invalid max sessions "0"; use a number from 1/,
    ],
    ['proxyproto {\nudp_session_tracking 28s 1000001\n}', /invalid max sessions "1000001"/],
    ['proxyproto {\ntlv_metadata on\n}', /Wrong argument count/],
    ['proxyproto {\nalow 10.0.0.0/8\n}', /unknown property 'alow'.*allow/],
  ] as const) {
    if (error === '') t.equal(setupError(proxyproto, given), '', given)
    else t.match(setupError(proxyproto, given), error, given)
  }
})

t.test('which peers are proxies', async (t) => {
  const allow = 'allow 10.0.0.0/8 2001:db8::/32'
  for (const [lines, proxy, stranger] of [
    ['', Use, Use],
    ['allow', Use, Use],
    [allow, Use, Ignore],
    [`${allow}\ndefault use`, Use, Use],
    [`${allow}\ndefault reject`, Use, Reject],
    [`${allow}\ndefault skip`, Use, Skip],
    ['default reject', Reject, Reject],
  ] as const) {
    const rules = rulesOf(new SetUp(proxyproto, `proxyproto {\n${lines}\n}`))
    const actionFor = (text: string) => {
      const { family, bytes } = scanAddress(text)!
      return rules.actionFor(bytes, family)
    }
    t.strictSame([actionFor('10.1.2.3'), actionFor('192.0.2.1')], [proxy, stranger], lines)
    t.strictSame([actionFor('2001:db8::1'), actionFor('::1')], [proxy, stranger], lines)
  }
})

t.test('settings of UDP and TLVs', async (t) => {
  for (const [lines, want] of [
    ['', [0, 10_240, false]],
    ['udp_session_tracking 28s', [28_000, 10_240, false]],
    ['udp_session_tracking 1m 5\ntlv_metadata', [60_000, 5, true]],
    ['udp_session_tracking -1s 5', [0, 5, false]],
  ] as const) {
    const rules = rulesOf(new SetUp(proxyproto, `proxyproto {\n${lines}\n}`))
    t.strictSame([rules.trackingMs, rules.sessionsMax, rules.keepsTlvs], want, lines)
  }
})

t.test('several blocks of one address', async (t) => {
  const blocks = [
    'allow 10.0.0.0/8\nudp_session_tracking 28s 7\ntlv_metadata',
    'allow 192.0.2.0/24\ndefault reject',
  ]
  const configs = blocks.map((lines) => new SetUp(proxyproto, `proxyproto {\n${lines}\n}`).block)
  const rules = proxyRulesOf({ configs })!
  const actionFor = (text: string) => rules.actionFor(scanAddress(text)!.bytes, 1)
  t.strictSame([actionFor('10.0.0.1'), actionFor('192.0.2.1')], [Reject, Use], 'the last rules')
  t.strictSame([rules.trackingMs, rules.sessionsMax, rules.keepsTlvs], [28_000, 7, true])
  t.equal(proxyRulesOf({ configs: [] }), undefined)
})

t.test('warnings', async (t) => {
  const forged = /^1: .*accepts PROXY headers from any client, .* "allow"$/
  const unused = /^1: .*no PROXY header is used: list the networks of the proxies with "allow"$/
  for (const [lines, hosts, want] of [
    ['', [], forged],
    ['', ['0.0.0.0'], forged],
    ['', ['::'], forged],
    ['', ['127.0.0.1', '192.0.2.1'], forged],
    ['', ['127.0.0.1', '::1', '127.9.9.9'], undefined],
    ['allow 10.0.0.0/8', [], undefined],
    ['allow 10.0.0.0/8\ndefault use', [], forged],
    ['default reject', [], unused],
    ['default ignore', ['127.0.0.1'], unused],
  ] as const) {
    const c = new SetUp(proxyproto, `proxyproto {\n${lines}\n}`)
    c.block.listenHosts = [...hosts]
    await c.start()
    if (want === undefined) t.strictSame(c.warnings, [], lines)
    else t.match(c.warnings, [want], `${lines} ${hosts}`)
  }
})

t.test('what is dropped is counted, and some of it is logged', async (t) => {
  const c = new SetUp(proxyproto, 'proxyproto')
  await c.start()
  const rules = rulesOf(c)
  const peer = Uint8Array.of(192, 0, 2, 66)
  for (let i = 0; i < 9; i++) rules.noteFault('dns://:53', 0, peer, 1)
  rules.noteFault('dns://:53', 1, peer, 1)
  t.equal(c.lines.length, 5)
  t.match(
    c.lines[0],
    /\[WARNING\] plugin\/proxyproto: dns:\/\/:53: dropped a PROXY header of 192.0.2.66: malformed/,
  )
  const count = (reason: string) =>
    c.metric(`sextant_proxyproto_refused_total{server="dns://:53",reason="${reason}"}`)
  t.strictSame([await count('malformed'), await count('rejected')], [9, 1])
})

t.test('TLVs as metadata', async (t) => {
  const c = new SetUp(proxyproto, 'proxyproto {\ntlv_metadata\n}')
  const provider = c.block.metadata.providers.get('proxyproto/tlv')!
  for (const [what, tlvs, want] of [
    ['none', '', ''],
    ['two', 'ea0002616202000141', 'ea0002616202000141'],
    ['padding', '040003aaaaaaea000162', '040000ea000162'],
    ['a cut length', 'ea00', ''],
    ['a cut value', 'ea000361', ''],
  ] as const) {
    const tx = transaction({ name: 'example.org.' })
    const { query } = tx
    query.proxyTlvs = Buffer.from(`ff${tlvs}`, 'hex')
    query.proxyTlvsAt = 1
    query.proxyTlvsOctets = tlvs.length / 2
    t.equal(provider(tx), want, what)
  }
  t.equal(new SetUp(proxyproto, 'proxyproto').block.metadata.providers.size, 0)
})

t.test('sextant check', async (t) => {
  for (const [what, lines, code, want] of [
    ['on every address', 'proxyproto', 0, /Corefile:2: .*accepts PROXY headers from any client/],
    ['on loopback', 'bind 127.0.0.1\nproxyproto', 0, undefined],
    [
      'with xdp',
      'xdp lo\nproxyproto {\nallow 10.0.0.0/8\n}',
      1,
      /^plugin\/xdp: .*Corefile:2 - .*the block has proxyproto, which needs the UDP sockets/,
    ],
  ] as const) {
    const file = join(t.testdir({ Corefile: `example.org {\n${lines}\nwhoami\n}\n` }), 'Corefile')
    const { output, errors } = recordOutput()
    t.equal(await check(['-conf', file, '-p', '1053'], output), code, what)
    if (want === undefined) t.notMatch(errors.join('\n'), /PROXY/, what)
    else t.match(errors.join('\n'), want, what)
  }
})
