import { cpSync, existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { ask } from '../support/dig.ts'
import { freePort } from '../support/free-port.ts'
import { needs } from '../support/peer.ts'
import { type RunningServer, runSextant, startServer } from '../support/server.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'
import { until } from '../support/until.ts'
import { Delv } from './delv.ts'
import { makeSettledKeys } from './settled-keys.ts'

const ZONE = 'example'
const SECRET = 'NoTCJU+DMqFWywaPyxSijrDEA/eC3nK0xi3AMEZuPVk='
const OTHER_SECRET = 'AoTCJU+DMqFWywaPyxSijrDEA/eC3nK0xi3AMEZuPVk='
/** A question for keys: `DIGEST.NONCE._sextant-keys.ZONE`. */
const QUESTION = `${'0'.repeat(32)}.${'1'.repeat(32)}._sextant-keys.${ZONE}`
const FILES = {
  db: `$ORIGIN ${ZONE}.
$TTL 1
@ SOA ns1 hostmaster 1 3600 600 86400 1
@ NS ns1
ns1 A 127.0.0.1
www A 192.0.2.1
`,
}

function corefile(keys: string, lines: string): string {
  return `${ZONE}:{PORT} {
 bind 127.0.0.1
 errors
 cache
 tsig {
  secret keys.${ZONE} ${SECRET}
  secret other.${ZONE} ${OTHER_SECRET}
 }
 dnssec {
  keys ${keys}
  ${lines}
  policy quick {
   dnskey-ttl 1
   zone-propagation-delay 10
   publish-safety 1
   retire-safety 1
  }
 }
 file db
}
`
}

/** Passes TCP on to a port, and keeps the octets of both directions. */
async function startRelay(t: Test, to: number): Promise<{ port: number; seen: () => Buffer }> {
  const chunks: Buffer[] = []
  const server = createServer((client) => {
    const upstream = connect(to, '127.0.0.1')
    for (const [from, into] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      from.on('data', (chunk: Buffer) => {
        chunks.push(chunk)
        into.write(chunk)
      })
      from.on('error', () => into.destroy())
      from.on('close', () => into.destroy())
    }
  })
  const port = await freePort()
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  return { port, seen: () => Buffer.concat(chunks) }
}

async function dnskeysOf({ port }: RunningServer): Promise<string> {
  return (await ask('dig', port, [ZONE, 'DNSKEY'])).answer.join('\n')
}

/** Each private key as its octets, and as the text of its file. */
function secretsOf(keys: string): Buffer[] {
  const names = readdirSync(keys).filter((name) => name.endsWith('.private'))
  return names.flatMap((name) => {
    const text = /PrivateKey: (\S+)/.exec(readFileSync(join(keys, name), 'utf8'))![1]!
    return [Buffer.from(text, 'base64'), Buffer.from(text.slice(0, 20))]
  })
}

t.test('a server follows the keys of another one', needs('dig', 'delv'), async (t) => {
  const directory = temporaryDirectory(t)
  const [keys, copies] = [join(directory, 'keys'), join(directory, 'copies')]
  await makeSettledKeys(keys, ZONE, true)
  const leader = await startServer(t, {
    corefile: corefile(keys, `split\n share keys.${ZONE}`),
    files: FILES,
  })
  const relay = await startRelay(t, leader.port)
  const follows = corefile(copies, `from 127.0.0.1:${relay.port} keys.${ZONE}`)
  let follower = await startServer(t, { corefile: follows, files: FILES })
  const areEqual = async (): Promise<boolean> => {
    const [one, other] = await Promise.all([leader, follower].map(dnskeysOf))
    return one !== '' && one === other
  }
  await until(areEqual, 'the same DNSKEY')
  const first = await dnskeysOf(leader)
  const ksk = first.split('\n').find((line) => / 257 /.test(line))!
  const validate = async (...servers: readonly RunningServer[]): Promise<void> => {
    for (const { port } of servers) {
      const delv = new Delv(port, temporaryDirectory(t), ksk.replace(/ \d+ IN /, ' IN '))
      await delv.expect(t, `www.${ZONE} A`, 'NOERROR', true)
      await delv.expect(t, `nope.${ZONE} A`, 'NXDOMAIN', true)
    }
  }
  await validate(leader, follower)

  const roll = ['keys', 'roll', ZONE, '--zsk', '-keys']
  const refused = await runSextant(directory, [...roll, copies])
  t.equal(refused.code, 1)
  t.match(refused.stderr, /follows the keys of 127\.0\.0\.1:\d+; change the keys on that server/)
  t.equal((await runSextant(directory, [...roll, keys])).code, 0)
  const isRolled = async (): Promise<boolean> => {
    return (
      (await areEqual()) && first.split('\n').length < (await dnskeysOf(leader)).split('\n').length
    )
  }
  await until(isRolled, 'the new DNSKEY on both')
  await validate(leader, follower)

  await t.test('without the key, nothing is sent', async (t) => {
    const key = (name: string, secret: string): string[] => {
      return ['-y', `hmac-sha256:${name}.${ZONE}:${secret}`]
    }
    const question = [QUESTION, 'TXT']
    for (const [what, args, status] of [
      ['unsigned', ['+tcp'], 'REFUSED'],
      ['a key without the right', ['+tcp', ...key('other', OTHER_SECRET)], 'REFUSED'],
      ['a wrong secret', ['+tcp', ...key('keys', OTHER_SECRET)], 'NOTAUTH'],
      ['an unknown key', ['+tcp', ...key('none', SECRET)], 'NOTAUTH'],
      ['over UDP', ['+notcp', ...key('keys', SECRET)], 'NXDOMAIN'],
      ['the right key', ['+tcp', ...key('keys', SECRET)], 'NOERROR'],
      ['unsigned after it', ['+tcp', '+rec'], 'REFUSED'],
    ] as const) {
      const reply = await ask('dig', leader.port, [...args, ...question])
      t.equal(reply.status, status, what)
      t.equal(reply.answer.length, status === 'NOERROR' ? 1 : 0, what)
    }
  })

  await t.test('no private key is readable on the way', async (t) => {
    const seen = relay.seen()
    const secrets = [...secretsOf(keys), ...secretsOf(copies)]
    t.ok(secrets.length >= 8 && seen.length > 1000)
    for (const secret of secrets) t.notOk(seen.includes(secret))
    for (const word of ['PrivateKey', 'Private-key-format', 'DNSKEY']) t.notOk(seen.includes(word))
  })

  await t.test('a copy of the directory follows, other keys are refused', async (t) => {
    const [copy, other] = [join(directory, 'copy'), join(directory, 'other')]
    cpSync(keys, copy, { recursive: true })
    await makeSettledKeys(other, ZONE, true)
    const fromLeader = `from 127.0.0.1:${leader.port} keys.${ZONE}`
    const same = await startServer(t, { corefile: corefile(copy, fromLeader), files: FILES })
    t.ok(existsSync(join(copy, 'follows')))
    t.equal(await dnskeysOf(same), await dnskeysOf(leader))
    const before = readdirSync(other).sort()
    const options = { corefile: corefile(other, fromLeader), files: FILES, mustStart: false }
    const different = await startServer(t, options)
    t.equal(await different.exited(), 1)
    t.match(
      different.output(),
      /Corefile:\d+: .*other has K\S+, but not 127\.0\.0\.1:\d+, or not the same/,
    )
    t.strictSame(
      readdirSync(other)
        .filter((name) => name !== 'keys.lock')
        .sort(),
      before.filter((name) => name !== 'keys.lock'),
    )
  })

  leader.process.kill('SIGKILL')
  await leader.exited()
  await follower.prints(/keys of example\.: 127\.0\.0\.1:\d+: /)
  await validate(follower)
  follower.process.kill('SIGKILL')
  await follower.exited()
  const before = readdirSync(copies).sort()
  follower = await startServer(t, { corefile: follows, beside: follower })
  await validate(follower)
  t.strictSame(readdirSync(copies).sort(), before)
  for (const name of before.filter((name) => name.endsWith('.private')))
    t.equal(statSync(join(copies, name)).mode & 0o777, 0o600)

  await t.test('a former leader, with keys of its own', async (t) => {
    const own = join(directory, 'own')
    cpSync(copies, own, { recursive: true })
    const text = corefile(own, '')
    const marked = await startServer(t, { corefile: text, files: FILES, mustStart: false })
    t.equal(await marked.exited(), 1)
    t.match(marked.output(), /to change them here instead, remove \S+own\/follows/)
  })
})
