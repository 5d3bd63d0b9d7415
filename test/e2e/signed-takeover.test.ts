import { join } from 'node:path'
import t from 'tap'
import { Random } from '../../src/base/random.ts'
import { needs } from '../support/peer.ts'
import { type RunningServer, runSextant, startServer } from '../support/server.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'
import { until } from '../support/until.ts'
import { CachedKeys } from './cached-keys.ts'
import { startUnboundResolver } from './resolvers.ts'
import { makeSettledKeys } from './settled-keys.ts'
import { SignedClients } from './signed-clients.ts'
import { SignedParent } from './signed-parent.ts'

// Long: it waits for the steps of rolls.

/*
 * Two servers with one directory of keys. Whichever took the last step of a roll is killed; the other one goes on, and no step
 * is taken twice.
 */

const ZONE = 't.example'
const ZONE_TEXT = `$TTL 1
@ SOA ns1 hostmaster 1 3600 600 86400 1
@ NS ns1
ns1 A 127.0.0.1
www A 192.0.2.1
`
const QUESTIONS = ['www A', 'www TXT', 'nope A', '@ NS', '@ DNSKEY']
t.setTimeout(300_000)

function corefile(keys: string): string {
  return `${ZONE}:{PORT} {
 bind 127.0.0.1
 errors
 file db
 dnssec {
  keys ${keys}
  split
  policy fast {
   dnskey-ttl 1
   zone-propagation-delay 5
   publish-safety 1
   retire-safety 1
  }
 }
}
`
}

/** The steps that are in the output of servers, in the order of each. */
function stepsIn(output: string): readonly string[] {
  return output
    .split('\n')
    .filter((line) => line.includes(`[INFO] plugin/dnssec: keys of ${ZONE}.: `))
    .flatMap((line) => line.replace(/^.*keys of \S+ /, '').split('; '))
    .filter((text) => !text.startsWith('next: '))
    .flatMap((text) => text.split(', '))
}

t.test(
  'a server goes on with the rolls of one that dies',
  needs('unbound', 'knotd', 'dig'),
  async (t) => {
    const keys = join(temporaryDirectory(t), 'keys')
    const made = await makeSettledKeys(keys, ZONE, true)
    const [, zsk] = made.tags
    const options = { corefile: corefile(keys), files: { db: ZONE_TEXT } }
    const servers: RunningServer[] = [await startServer(t, options), await startServer(t, options)]
    const ports = servers.map(({ port }) => port)
    const parent = await SignedParent.start(t, 'example', { [ZONE]: made.ds }, ports[0]!)
    const check = new CachedKeys({ zone: ZONE, ports, parentPort: parent.port })
    void check.watch()
    await until(() => check.dsTags.length * check.tags.length > 0, 'keys')
    const resolver = await startUnboundResolver(t, {
      key: parent.key,
      zones: { example: [parent.port], [ZONE]: ports },
    })
    const random = new Random(5)
    const clients = new SignedClients(() => {
      const [name = '', type = ''] = QUESTIONS[random.below(QUESTIONS.length)]!.split(' ')
      return { name: name === '@' ? ZONE : `${name}.${ZONE}`, type }
    })
    await clients.askResolver(resolver)
    for (const port of ports)
      await clients.askServer('servers', port, (reply) => check.check(reply))
    const { directory } = servers[0]!
    const args = ['keys', 'roll', ZONE, '--zsk', '-keys', keys]
    t.equal((await runSextant(directory, args)).code, 0)

    const dead: string[] = []
    const steps = (): readonly string[] => {
      return stepsIn([...dead, ...servers.map((server) => server.output())].join('\n'))
    }
    for (const step of ['publish the DNSKEY of', 'sign with', 'remove the DNSKEY of']) {
      await until(() => steps().some((one) => one.startsWith(step)), step)
      const leader = servers.findIndex((server) =>
        stepsIn(server.output()).some((one) => one.startsWith(step)),
      )
      const server = servers[leader]!
      server.process.kill('SIGKILL')
      await server.exited()
      dead.push(server.output())
      servers[leader] = await startServer(t, { ...options, beside: server })
    }
    await until(() => check.tags.length > 0 && !check.tags.includes(zsk!), 'the end of the roll')
    await until(() => steps().some((one) => one.endsWith('is out of use')), 'the last step')
    check.stop()
    await clients.stop()
    const faults = [...clients.faults, ...check.faults]
    t.equal(faults.length, 0, faults.slice(0, 20).join('\n'))
    t.ok(clients.count > 1000, `${clients.count} answers`)
    const all = steps()
    t.equal(new Set(all).size, all.length, all.join(', '))
    for (const server of servers) t.notMatch(server.output(), /\[ERROR\]/)
  },
)
