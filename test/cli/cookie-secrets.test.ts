import { chmodSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { InputError } from '../../src/base/errors.ts'
import {
  followCookieSecrets,
  rotateCookieSecrets,
  scanCookieSecrets,
} from '../../src/cli/cookie-secrets.ts'
import { CookieSecrets } from '../../src/dns/edns/cookie-secrets.ts'
import { recordLog } from '../support/recorded-log.ts'
import { FakeTimers } from '../support/setup.ts'

const HOUR_MS = 3600_000
const [A, B] = ['0123456789abcdef0123456789ABCDEF', 'f'.repeat(32)]

/** All valid secrets, the one that makes cookies first. */
function validOf(secrets: CookieSecrets): string[] {
  const { first } = secrets
  return Array.from({ length: secrets.endOf(first) - first }, (_, i) => {
    const key = secrets.keyAt(first + i)
    const octets = Buffer.alloc(16)
    for (let word = 0; word < 4; word++) octets.writeInt32LE(key[word]!, word * 4)
    return octets.toString('hex')
  })
}

t.test(
  'a random secret is replaced after 26 hours, and stays valid for as long again',
  async (t) => {
    const timers = new FakeTimers()
    const secrets = new CookieSecrets()
    rotateCookieSecrets(secrets, timers)
    const [first, ...others] = validOf(secrets)
    t.strictSame(others, [])
    await timers.advance(26 * HOUR_MS - 1)
    t.strictSame(validOf(secrets), [first])
    await timers.advance(1)
    const [second, ...previous] = validOf(secrets)
    t.strictSame(previous, [first])
    t.not(second, first)
    await timers.advance(26 * HOUR_MS)
    const [third, ...last] = validOf(secrets)
    t.strictSame(last, [second])
    t.equal(new Set([first, second, third]).size, 3)
  },
)

t.test('a file of secrets', async (t) => {
  const hex = 'a cookie secret has 32 hexadecimal digits'
  const table = [
    { given: `${A}\n`, want: [A.toLowerCase()] },
    { given: `# new\n${A}\n\n  ${B} # old\r\n`, want: [A.toLowerCase(), B] },
    { given: '', want: 'f:1: 1 to 4 cookie secrets are expected, not 0' },
    { given: `${A}\n`.repeat(5), want: 'f:1: 1 to 4 cookie secrets are expected, not 5' },
    { given: `${A}\n${B}0\n`, want: `f:2: ${hex}` },
    { given: `\n\n${A} ${B}\n`, want: `f:3: ${hex}` },
    { given: `${A.slice(1)}g\n`, want: `f:1: ${hex}` },
  ]
  for (const { given, want } of table) {
    try {
      const scanned = scanCookieSecrets(given, 'f').map((one) => Buffer.from(one).toString('hex'))
      t.strictSame(scanned, want, JSON.stringify(given))
    } catch (error) {
      t.type(error, InputError)
      const text = (error as InputError).print()
      t.match(text, want, JSON.stringify(given))
      t.notMatch(text, /[0-9a-f]{16}/i, 'no secret')
    }
  }
})

t.test('a changed file is loaded; a bad one is reported once', async (t) => {
  const path = join(t.testdir({ secrets: A }), 'secrets')
  chmodSync(path, 0o600)
  const timers = new FakeTimers()
  const { lines, log } = recordLog()
  const secrets = new CookieSecrets()
  followCookieSecrets(secrets, path, { timers, log })
  const loaded = (count: number) => `[INFO] cookie secrets: ${count} loaded from ${path}`
  t.strictSame(validOf(secrets), [A.toLowerCase()])
  await timers.advance(60_000)
  t.strictSame(lines.splice(0), [loaded(1)])
  writeFileSync(path, `${B}\n${A}`)
  await timers.advance(10_000)
  t.strictSame(validOf(secrets), [B, A.toLowerCase()])
  t.strictSame(lines.splice(0), [loaded(2)])
  writeFileSync(path, 'x')
  await timers.advance(60_000)
  rmSync(path)
  await timers.advance(60_000)
  t.match(lines.splice(0), [
    /secrets:1: a cookie secret .*; the former cookie secrets stay in use$/,
    /ENOENT.*; the former cookie secrets stay in use$/,
  ])
  t.strictSame(validOf(secrets), [B, A.toLowerCase()])
  writeFileSync(path, A)
  chmodSync(path, 0o644)
  await timers.advance(10_000)
  t.strictSame(validOf(secrets), [A.toLowerCase()])
  t.match(lines, [loaded(1), /any user of this machine can read the secrets/])
})

t.test('a start without the file fails', async (t) => {
  const options = { timers: new FakeTimers(), log: recordLog().log }
  const follow = () => followCookieSecrets(new CookieSecrets(), '/no/file', options)
  t.throws(follow, { name: 'InputError', message: /-cookie-secrets: ENOENT.*\/no\/file/ })
})
