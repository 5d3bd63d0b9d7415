import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { Random } from '../../src/base/random.ts'
import { composeDs } from '../../src/dns/dnssec/ds.ts'
import { keyTag } from '../../src/dns/dnssec/key-tag.ts'
import { RRType } from '../../src/dns/iana/types.ts'
import { printRdata } from '../../src/dns/rdata/index.ts'
import { ask } from '../support/dig.ts'
import { startPeer } from '../support/nameservers.ts'
import { needs, run } from '../support/peer.ts'
import { runSextant, startServer } from '../support/server.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'
import { until } from '../support/until.ts'
import { wire } from '../support/zone-names.ts'
import { startNamedResolver, startUnboundResolver } from './resolvers.ts'
import { makeSettledKeys } from './settled-keys.ts'
import { dnskeysOf, SignedClients } from './signed-clients.ts'
import { SignedParent } from './signed-parent.ts'

// Long: it waits for the steps of a roll.

/*
 * Knot and we sign one zone, each with keys of its own, and both have the public keys of the other (RFC 8901 section 2.1.2).
 * Resolvers ask both, also while our ZSK rolls.
 */

const ZONE = 'm.example'
const ZONE_TEXT = `$TTL 1
@ SOA ns1 hostmaster 1 3600 600 86400 1
@ NS ns1
ns1 A 127.0.0.1
www A 192.0.2.1
*.wild TXT text
`
const QUESTIONS = ['www A', 'www TXT', 'r.wild TXT', 'nope A', '@ NS', '@ DNSKEY', 'ns1 AAAA']
t.setTimeout(300_000)

const tools = needs('knotd', 'unbound', 'named', 'dig', 'nsupdate')
t.test('two providers sign one zone, and a ZSK rolls', tools, async (t) => {
  const folder = temporaryDirectory(t)
  const keys = join(folder, 'keys')
  const made = await makeSettledKeys(keys, ZONE, true)
  const tag = (n: number): string => `K${ZONE}.+013+${String(n).padStart(5, '0')}.key`
  const own = made.tags.map((one) => readFileSync(join(keys, tag(one)), 'latin1'))
  const ownLines = own.map((text) => text.split('\n').find((line) => line.includes('DNSKEY'))!)
  const knot = await startPeer(t, 'knotd', {
    ...{ zone: ZONE, port: 1, signed: false, dnssec: 'shared' },
    zoneText: `${ZONE_TEXT}${ownLines.map((line) => line.replace(/^.*DNSKEY/, '@ 1 DNSKEY')).join('\n')}\n`,
  })
  const apex = wire(`${ZONE}.`)
  let theirs: Uint8Array | undefined
  await until(async () => {
    const all = await dnskeysOf(knot.port, ZONE)
    theirs = all.find((dnskey) => !made.tags.includes(keyTag(dnskey)))
    return theirs !== undefined && all.length === 3
  }, 'the keys of Knot and ours')
  const keyText = printRdata(RRType.DNSKEY, theirs!)
  const provider = join(folder, 'provider.key')
  writeFileSync(provider, `${ZONE}. 1 IN DNSKEY ${keyText}\n`)
  const sextant = async (...args: string[]): Promise<void> => {
    const { code, stdout, stderr } = await runSextant(folder, ['keys', ...args, '-keys', keys])
    t.equal(code, 0, `${args.join(' ')}: ${stdout}${stderr}`)
  }
  await sextant('import', ZONE, provider, '--public')
  const server = await startServer(t, {
    corefile: `${ZONE}:{PORT} {
 bind 127.0.0.1
 errors
 file db
 dnssec {
  keys ${keys}
  split
  policy fast {
   dnskey-ttl 1
   zone-propagation-delay 5
   parent-propagation-delay 1
   parent-ds-ttl 1
   publish-safety 1
   retire-safety 1
  }
 }
}
`,
    files: { db: ZONE_TEXT },
  })
  const ports = [server.port, knot.port]
  const tagsAt = async (port: number): Promise<string> => {
    const tags = (await dnskeysOf(port, ZONE)).map((dnskey) => keyTag(dnskey))
    return tags.sort().join()
  }
  t.equal(await tagsAt(server.port), await tagsAt(knot.port), 'both have all DNSKEY records')
  const cds = await ask('dig', server.port, ['+norec', ZONE, 'CDS'])
  const theirDs = printRdata(RRType.DS, composeDs(apex, theirs!, 2))
  t.equal(cds.answer.length, 2, 'our CDS have the key of Knot')

  const parent = await SignedParent.start(t, 'example', { [ZONE]: made.ds }, knot.port)
  await parent.put(parent.port, ZONE, [made.ds, theirDs])
  const delegated = { key: parent.key, zones: { example: [parent.port], [ZONE]: ports } }
  const resolvers = [
    await startUnboundResolver(t, delegated),
    await startNamedResolver(t, delegated),
  ]
  const random = new Random(5)
  const clients = new SignedClients(() => {
    const [name = '', type = ''] = QUESTIONS[random.below(QUESTIONS.length)]!.split(' ')
    return { name: name === '@' ? ZONE : `${name}.${ZONE}`, type }
  })
  for (const resolver of resolvers) await clients.askResolver(resolver)
  const firstKeys = await tagsAt(server.port)
  // The operator brings our keys to Knot.
  let known = firstKeys
  clients.repeat(async () => {
    const tags = await tagsAt(server.port)
    if (tags !== known) {
      const lines = (await dnskeysOf(server.port, ZONE))
        .map((dnskey) => `update add ${ZONE}. 1 DNSKEY ${printRdata(RRType.DNSKEY, dnskey)}\n`)
        .join('')
      const path = join(folder, 'update')
      const target = `server 127.0.0.1 ${knot.port}\nzone ${ZONE}.\n`
      writeFileSync(path, `${target}${lines}send\n`)
      const { code, stderr } = await run('nsupdate', [path])
      if (code !== 0) clients.faults.push(stderr)
      known = tags
    }
    await delay(200)
  })
  await until(() => clients.count > 500, 'answers')
  await sextant('roll', ZONE, '--zsk')
  const [, oldZsk] = made.tags
  await until(
    async () => !(await tagsAt(server.port)).split(',').includes(String(oldZsk)),
    'the roll',
  )
  const { count } = clients
  await until(() => clients.count > count + 500, 'answers after the roll')
  await clients.stop()
  t.equal(clients.faults.length, 0, clients.faults.slice(0, 20).join('\n'))
  for (const { name } of resolvers) t.ok(clients.countOf(name) > 200, `${name}`)
  t.notMatch(server.output(), /\[ERROR\]/)
})
