import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { cityEntry, composeMmdb } from '../support/mmdb.ts'
import { A, CHAOS, subnet, TXT } from '../support/query-cases.ts'
import { type RunningServer, startServer } from '../support/server.ts'
import { SpreadClient } from '../support/transcript.ts'
import { until } from '../support/until.ts'
import { type QuerySpec, readMessage, wireQuery } from '../support/wire.ts'

// Long: it starts many servers.

/*
 * What changes while the server runs reaches every data thread, and the one thread of node:dgram, soon:
 * sixteen clients ask all the time, and each answer is the old one or the new one, never the old one
 * after the new one from the same thread.
 */

const zone = (serial: number, last: number): string =>
  `$TTL 60\n@ IN SOA a b ${serial} 2 3 4 5\n@ IN NS a\na IN A 192.0.2.${last}\n`

/** `code`: of clients that get 198.51.100.`other`. */
const manifest = (last: number, code = '', other = 1): string =>
  JSON.stringify({
    apiVersion: 'kuadrant.io/v1alpha1',
    kind: 'DNSRecord',
    metadata: { name: 'a' },
    spec: {
      rootHost: 'a.k.example',
      endpoints: [
        {
          dnsName: 'a.k.example',
          recordType: 'A',
          setIdentifier: 'one',
          targets: [`192.0.2.${last}`],
          providerSpecific: [
            { name: 'geo-code', value: 'GB' },
            { name: 'default', value: 'true' },
          ],
        },
        ...(code === ''
          ? []
          : [
              {
                dnsName: 'a.k.example',
                recordType: 'A',
                setIdentifier: 'two',
                targets: [`198.51.100.${other}`],
                providerSpecific: [{ name: 'geo-code', value: code }],
              },
            ]),
      ],
    },
  })

const database = (country: string): Uint8Array =>
  composeMmdb({
    networks: {
      '81.2.69.0/24': cityEntry(country, 'EU'),
      '8.8.0.0/16': cityEntry('US', 'NA'),
    },
  })

const corefile = (options: { threads?: number; version?: string; extra?: string } = {}): string => {
  const { threads = 2, version = 'one', extra = '' } = options
  const common = `bind 127.0.0.1\n multisocket ${threads}\n errors`
  return `.:{PORT} {
    ${common}
    chaos ${version}
}
f.example:{PORT} {
    ${common}
    file db.f {
        reload 100ms
    }
}
late.example:{PORT} {
    ${common}
    file db.late {
        reload 100ms
    }
}
auto.example:{PORT} {
    ${common}
    auto {
        directory zones
        reload 100ms
    }
}
h.example:{PORT} {
    ${common}
    hosts hosts {
        reload 100ms
    }
}
w.example:{PORT} {
    ${common}
    loadbalance weighted weights {
        reload 100ms
    }
    file db.w
}
k.example:{PORT} {
    ${common}
    metadata
    geoip geo.mmdb {
        edns-subnet
    }
    kuadrant {
        manifests records
    }
}
v.example:{PORT} {
    ${common}
    metadata
    geoip geo.mmdb {
        edns-subnet
    }
    view gb {
        expr metadata('geoip/country/code') == 'GB'
    }
    hosts hosts.v
}
${extra}
`
}

const MANY_WEIGHTS = 255
/** Of 16 draws; that there are fewer happens by chance less than once in 10^12 times. */
const LEADS_MIN = 10
const weights = (last: number): string => `a.w.example\n192.0.2.${last} ${MANY_WEIGHTS}\n`

const FILES = {
  'db.f': zone(1, 1),
  'zones/db.auto.example': zone(1, 1),
  hosts: '192.0.2.1 a.h.example\n',
  'hosts.v': '192.0.2.1 a.v.example\n',
  weights: weights(1),
  'db.w': `${zone(1, 1)}a IN A 192.0.2.2\n`,
  'records/a.json': manifest(1),
  'geo.mmdb': database('GB'),
}

const GB = subnet(1, 24, [81, 2, 69])
const US = subnet(1, 24, [8, 8, 4])

/** Rcode and what is in the answer section, in order: `0 192.0.2.1`. */
function show(reply: string): string {
  if (reply === '') return 'silence'
  const { rcode, answer } = readMessage(Buffer.from(reply, 'hex'))
  const texts = answer.map(({ type, rdata }) => {
    return type === TXT ? Buffer.from(rdata.subarray(1)).toString() : rdata.join('.')
  })
  return [rcode, ...texts].join(' ')
}

/** What is edited, and what is answered to `question` before and after. */
interface Change {
  readonly what: string
  readonly question: QuerySpec
  readonly before: string
  readonly after: string
  readonly edit: (server: RunningServer) => void
  /** Until every thread must answer so. */
  readonly boundMs?: number
}

/** Written beside and renamed, so that no half of it is ever read. */
function lay(server: RunningServer, path: string, content: string | Uint8Array): void {
  const to = join(server.directory, path)
  mkdirSync(dirname(to), { recursive: true })
  writeFileSync(join(server.directory, '.new'), content)
  renameSync(join(server.directory, '.new'), to)
}

function reload(server: RunningServer, text: string): void {
  lay(server, 'Corefile', text.replaceAll('{PORT}', String(server.port)))
  server.process.kill('SIGUSR1')
}

const a = (zoneName: string, edns?: QuerySpec['edns']): QuerySpec => {
  return { name: `a.${zoneName}.example`, type: A, ...(edns && { edns }) }
}

/** Databases are looked at every five seconds, and a changed one is read whole in another thread. */
const DATABASE_MS = 120_000

const CHANGES: readonly Change[] = [
  {
    what: 'a zone file with a new serial',
    question: a('f'),
    before: '0 192.0.2.1',
    after: '0 192.0.2.2',
    edit: (server) => lay(server, 'db.f', zone(2, 2)),
  },
  {
    what: 'a zone file that was missing',
    question: a('late'),
    before: '2',
    after: '0 192.0.2.7',
    edit: (server) => lay(server, 'db.late', zone(1, 7)),
  },
  {
    what: 'a zone file that changes again',
    question: a('late'),
    before: '0 192.0.2.7',
    after: '0 192.0.2.8',
    edit: (server) => lay(server, 'db.late', zone(2, 8)),
  },
  {
    what: 'a changed file of auto',
    question: a('auto'),
    before: '0 192.0.2.1',
    after: '0 192.0.2.2',
    edit: (server) => lay(server, 'zones/db.auto.example', zone(2, 2)),
  },
  {
    what: 'an added file of auto',
    question: { name: 'a.b.auto.example', type: A },
    before: '3',
    after: '0 192.0.2.3',
    edit: (server) => lay(server, 'zones/db.b.auto.example', zone(1, 3)),
  },
  {
    what: 'a removed file of auto',
    question: { name: 'a.b.auto.example', type: A },
    before: '0 192.0.2.3',
    after: '3',
    edit: (server) => rmSync(join(server.directory, 'zones/db.b.auto.example')),
  },
  {
    what: 'a hosts file',
    question: a('h'),
    before: '0 192.0.2.1',
    after: '0 192.0.2.2',
    edit: (server) => lay(server, 'hosts', '192.0.2.2 a.h.example\n'),
  },
  {
    what: 'a manifest',
    question: a('k'),
    before: '0 192.0.2.1',
    after: '0 192.0.2.2',
    edit: (server) => lay(server, 'records/a.json', manifest(2)),
  },
  {
    what: 'a manifest with a geo code that no other has',
    question: a('k', US),
    before: '0 192.0.2.2',
    after: '0 198.51.100.1',
    edit: (server) => lay(server, 'records/a.json', manifest(2, 'GEO-NA')),
  },
  {
    // Clients of that code must not get the default until the classes know it.
    what: 'a manifest with a new geo code instead of a wider one',
    question: a('k', US),
    before: '0 198.51.100.1',
    after: '0 198.51.100.2',
    edit: (server) => lay(server, 'records/a.json', manifest(2, 'US', 2)),
  },
  {
    what: 'a database, for the GEO classes',
    question: a('k', GB),
    before: '0 192.0.2.2',
    after: '0 198.51.100.2',
    edit: (server) => lay(server, 'geo.mmdb', database('US')),
    boundMs: DATABASE_MS,
  },
  {
    what: 'a database, for a view',
    question: a('v', GB),
    before: '2',
    after: '0 192.0.2.1',
    edit: (server) => lay(server, 'geo.mmdb', database('GB')),
    boundMs: DATABASE_MS,
  },
  {
    what: 'a manifest that goes',
    question: a('k'),
    before: '0 192.0.2.2',
    after: '3',
    edit: (server) => rmSync(join(server.directory, 'records/a.json')),
  },
  {
    what: 'SIGUSR1 with another Corefile and more threads',
    question: { name: 'version.bind', type: TXT, rrclass: CHAOS },
    before: '0 one',
    after: '0 two',
    edit: (server) => reload(server, corefile({ threads: 3, version: 'two' })),
  },
  {
    what: 'SIGUSR1 with a new zone and fewer threads',
    question: a('new'),
    before: '2',
    after: '0 192.0.2.2',
    edit: (server) => {
      const extra = 'new.example:{PORT} {\n bind 127.0.0.1\n file db.f\n}'
      reload(server, corefile({ threads: 1, version: 'two', extra }))
    },
  },
  {
    what: 'a zone file after the reload',
    question: a('f'),
    before: '0 192.0.2.2',
    after: '0 192.0.2.3',
    edit: (server) => lay(server, 'db.f', zone(3, 3)),
  },
]

/** Mostly it takes milliseconds; a reload starts threads, on a machine that may be busy. */
const BOUND_MS = 120_000

async function follow(
  t: Test,
  asker: SpreadClient,
  server: RunningServer,
  change: Change,
): Promise<void> {
  const { what, question, before, after, edit, boundMs = BOUND_MS } = change
  const packet = wireQuery(question)
  const ask = async (): Promise<string[]> => {
    return (await asker.askFromEach(packet, server.port)).map(show)
  }
  t.strictSame(new Set(await ask()), new Set([before]), `${what}: before`)
  edit(server)
  let last = await ask()
  const strange: string[] = []
  const allNew = async (): Promise<boolean> => {
    const next = await ask()
    strange.push(...next.filter((shown) => shown !== before && shown !== after))
    strange.push(...next.filter((shown, i) => shown === before && last[i] === after))
    last = next
    return next.every((shown) => shown === after)
  }
  await until(allNew, what, boundMs).catch((error) => t.fail(String(error)))
  t.strictSame(strange.slice(0, 5), [], `${what}: nothing but the old answer, then the new one`)
  t.strictSame(new Set(await ask()), new Set([after]), `${what}: after`)
}

for (const udp of ['batch', 'dgram']) {
  t.test(`${udp}: every thread follows`, async (t) => {
    const asker = await SpreadClient.open(t)
    const env = { SEXTANT_UDP: udp }
    const server = await startServer(t, { corefile: corefile(), files: FILES, env })
    for (const change of CHANGES) await follow(t, asker, server, change)
  })

  t.test(`${udp}: weights`, async (t) => {
    const asker = await SpreadClient.open(t)
    const env = { SEXTANT_UDP: udp }
    const server = await startServer(t, { corefile: corefile(), files: FILES, env })
    const packet = wireQuery(a('w'))
    const leads = async (last: number): Promise<number> => {
      const replies = await asker.askFromEach(packet, server.port)
      return replies.filter((reply) => show(reply).startsWith(`0 192.0.2.${last} `)).length
    }
    t.ok((await leads(1)) >= LEADS_MIN)
    lay(server, 'weights', weights(2))
    await until(async () => (await leads(2)) === 16, 'the other address first', BOUND_MS)
    lay(server, 'weights', 'this is bad\n')
    await server.prints(/weight file/)
    t.ok((await leads(2)) >= LEADS_MIN, 'a bad file changes nothing')
  })

  t.test(`${udp}: the directive reload`, async (t) => {
    const asker = await SpreadClient.open(t)
    const text = (version: string): string => `.:{PORT} {
    bind 127.0.0.1
    multisocket 2
    reload 2s 1s
    chaos ${version}
}
`
    const env = { SEXTANT_UDP: udp }
    const server = await startServer(t, { corefile: text('one'), env })
    await follow(t, asker, server, {
      what: 'another Corefile',
      question: { name: 'version.bind', type: TXT, rrclass: CHAOS },
      before: '0 one',
      after: '0 two',
      edit: () => lay(server, 'Corefile', text('two').replaceAll('{PORT}', String(server.port))),
      boundMs: DATABASE_MS,
    })
  })

  t.test(`${udp}: what is bad changes nothing`, async (t) => {
    const asker = await SpreadClient.open(t)
    const env = { SEXTANT_UDP: udp }
    const server = await startServer(t, { corefile: corefile(), files: FILES, env })
    const stays = async (question: QuerySpec, want: string, fault: RegExp): Promise<void> => {
      await server.prints(fault)
      const replies = await asker.askFromEach(wireQuery(question), server.port)
      t.strictSame(new Set(replies.map(show)), new Set([want]), String(fault))
    }
    lay(server, 'geo.mmdb', Buffer.from('no database'))
    lay(server, 'db.f', 'no zone\n')
    lay(server, 'zones/db.auto.example', 'no zone\n')
    await stays(a('f'), '0 192.0.2.1', /Parsing zone "f\.example\."/)
    await stays(a('auto'), '0 192.0.2.1', /Parsing zone "auto\.example\."/)
    await stays(a('k', GB), '0 192.0.2.1', /Keeping the old version of .*geo\.mmdb/)
    lay(server, 'geo.mmdb', database('GB'))
    reload(server, corefile({ version: 'two' }).replace('bind 127', 'bnid 127'))
    const version = { name: 'version.bind', type: TXT, rrclass: CHAOS }
    await stays(version, '0 one', /Restart failed/)
  })
}
