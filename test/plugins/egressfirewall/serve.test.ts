import t, { type Test } from 'tap'
import { type Clock, systemClock } from '../../../src/base/clock.ts'
import { printType, Rcode, RRClass, RRType } from '../../../src/dns/iana/index.ts'
import { HeaderFlag } from '../../../src/dns/message/header.ts'
import type { ResourceRecord } from '../../../src/dns/message/message.ts'
import { lowerName, printName, scanName } from '../../../src/dns/name/name.ts'
import { scanAddress } from '../../../src/dns/text/address.ts'
import { serve } from '../../server/data/stage.ts'
import { UdpClient } from '../../support/client.ts'
import { ObjectApi, serveObjectApi } from '../../support/object-api.ts'
import { ScriptedServer } from '../../support/scripted-server.ts'
import { until } from '../../support/until.ts'

// Long: it starts many servers.

const RESOLVERS = 'dnsnameresolvers'
const { A, AAAA, CNAME, NS } = RRType
const RCODE_MASK = 15
/** Enough that each data thread gets some of their queries. */
const CLIENTS = 8

/** The time of day stands, so that ages are exact. */
const NOW = Date.parse('2026-01-01T00:00:00Z')
const CLOCK: Clock = { ...systemClock, now: () => NOW }

type Reply = readonly ResourceRecord[] | number

function record(owner: string, type: number, ttlSeconds: number, data: string): ResourceRecord {
  const rdata = type === A || type === AAAA ? scanAddress(data)!.bytes : scanName(data)!
  return { owner: scanName(owner)!, type, rrclass: RRClass.IN, ttlSeconds, rdata }
}

/** A server with data threads, an API, and an upstream that answers as the test says. */
async function place(t: Test, properties = '', below = '') {
  const api = new ObjectApi()
  const replies = new Map<string, Reply>()
  const upstream = await ScriptedServer.open(t, ({ question }) => {
    const name = printName(lowerName(question!.name))
    return replies.get(`${name} ${question!.type}`) ?? Rcode.NXDOMAIN
  })
  const corefile = `.:{PORT} {
    bind 127.0.0.1
    prometheus :1
    egressfirewall {
        endpoint ${await serveObjectApi(t, api)}
        ${properties}
    }
    ${below.replace('{UPSTREAM}', `127.0.0.1:${upstream.port}`)}
    forward . 127.0.0.1:${upstream.port}
}
`
  const start = async () => {
    const stage = await serve(t, 'batch', corefile, undefined, CLOCK)
    const connect = () => UdpClient.connect(stage.port)
    const clients = await Promise.all(Array.from({ length: CLIENTS }, connect))
    t.teardown(() => clients.forEach((client) => void client.close()))
    const asked = (name: string, type: number = A) => {
      return clients.map((c) => c.ask({ name, type: printType(type) }))
    }
    /** Asks from one client; returns the rcode and the number of answers. */
    const query = async (name: string, type: number = A, isRecursive = true): Promise<string> => {
      const reply = await clients[0]!.ask({ name, type: printType(type), isRecursive })
      return `${reply[3]! & RCODE_MASK}/${reply.readUInt16BE(6)}`
    }
    const queryAll = (name: string, type?: number) => Promise.all(asked(name, type))
    /** Sends a query that may get no reply. */
    const send = async (name: string): Promise<void> => {
      await clients[0]!.ask({ name, type: 'A' }, 1, 50).catch(() => {})
    }
    return { stage, query, queryAll, send }
  }
  const shown = (object: string, namespace = 'a'): readonly string[] => {
    const names = api.read(RESOLVERS, namespace, object)?.status?.resolvedNames ?? []
    // biome-ignore lint/suspicious/noExplicitAny: as the API has it
    return names.map((entry: any) => {
      // biome-ignore lint/suspicious/noExplicitAny: as the API has it
      const ips = entry.resolvedAddresses.map(({ ip, ttlSeconds }: any) => `${ip}/${ttlSeconds}`)
      const reason = entry.conditions[0].reason
      return `${entry.dnsName} ${entry.resolutionFailures ?? 0} ${reason}: ${ips.sort().join(' ')}`
    })
  }
  return { api, replies, upstream, start, shown }
}

/** What a name had before, `age` seconds ago. */
interface Prior {
  readonly label: string
  readonly ips?: readonly string[]
  readonly ttl: number
  readonly age: number
  readonly failures?: number
  readonly reason?: string
}

/** A query: its label, and the addresses or the rcode of the reply. */
interface Step {
  readonly label: string
  readonly type?: number
  readonly ips?: readonly string[]
  readonly ttl?: number
  readonly rcode?: number
}

interface Case {
  readonly what: string
  /** By default the regular name `www`. */
  readonly objects?: readonly string[]
  readonly prior?: readonly Prior[]
  readonly steps: readonly Step[]
  /** Of each object, in its order. */
  readonly want: readonly (readonly string[])[]
}

const TWO = ['1.1.1.1', '1.1.1.2']
const both = (ttl: number): string => `1.1.1.1/${ttl} 1.1.1.2/${ttl}`
const step = (ttl: number, label = 'www', ips: readonly string[] = TWO): Step => ({
  label,
  ttl,
  ips,
})
const failure = (label = 'www', rcode: number = Rcode.NXDOMAIN): Step => ({ label, rcode })

/** The cases of OpenShift's plugin. `{}` stands for the domain of the case. */
const CASES: readonly Case[] = [
  { what: 'the first answer', steps: [step(30)], want: [[`www.{} 0 NOERROR: ${both(30)}`]] },
  {
    what: 'the next lookup is 10 s later',
    prior: [{ label: 'www', ttl: 40, age: 20 }],
    steps: [step(30)],
    want: [[`www.{} 0 NOERROR: ${both(30)}`]],
  },
  {
    what: 'the next lookup is the same',
    prior: [{ label: 'www', ttl: 40, age: 10 }],
    steps: [step(30)],
    want: [[`www.{} 0 NOERROR: ${both(40)}`]],
  },
  {
    what: 'an answer after a failure, next lookup the same',
    prior: [{ label: 'www', ttl: 30, age: 10, failures: 1, reason: 'NXDOMAIN' }],
    steps: [step(20)],
    want: [[`www.{} 0 NOERROR: ${both(30)}`]],
  },
  {
    what: 'another address',
    prior: [{ label: 'www', ttl: 30, age: 10 }],
    steps: [step(30, 'www', ['1.1.1.3'])],
    want: [[`www.{} 0 NOERROR: ${both(30)} 1.1.1.3/30`]],
  },
  {
    what: 'an answer after failures, renewed',
    prior: [{ label: 'www', ttl: 30, age: 25, failures: 2, reason: 'SERVFAIL' }],
    steps: [step(30)],
    want: [[`www.{} 0 NOERROR: ${both(30)}`]],
  },
  { what: 'a failure of an unknown name', steps: [failure()], want: [[]] },
  {
    what: 'a failure',
    prior: [{ label: 'www', ttl: 30, age: 10, failures: 1, reason: 'NXDOMAIN' }],
    steps: [failure()],
    want: [[`www.{} 2 NXDOMAIN: ${both(30)}`]],
  },
  {
    what: 'a failure near the end',
    prior: [{ label: 'www', ttl: 12, age: 10, failures: 1, reason: 'NXDOMAIN' }],
    steps: [failure('www', Rcode.SERVFAIL)],
    want: [[`www.{} 2 SERVFAIL: ${both(5)}`]],
  },
  {
    what: 'one failure too many',
    prior: [{ label: 'www', ttl: 30, age: 30, failures: 5, reason: 'NXDOMAIN' }],
    steps: [failure()],
    want: [[]],
  },
  { what: 'a query for NS', steps: [{ label: 'www', type: NS, rcode: 0 }], want: [[]] },
  { what: 'a query for CNAME', steps: [{ label: 'www', type: CNAME, rcode: 0 }], want: [[]] },
  {
    what: 'a query for NS that fails',
    prior: [{ label: 'www', ttl: 30, age: 10 }],
    steps: [{ label: 'www', type: NS, rcode: Rcode.SERVFAIL }],
    want: [[`www.{} 0 NOERROR: ${both(30)}`]],
  },
  {
    what: 'both families',
    steps: [step(30), { label: 'www', type: AAAA, ttl: 60, ips: ['2001:db8::1'] }],
    want: [[`www.{} 0 NOERROR: ${both(30)} 2001:db8::1/60`]],
  },
  {
    what: 'a wildcard: a name below it',
    objects: ['*'],
    steps: [step(30)],
    want: [[`www.{} 0 NOERROR: ${both(30)}`]],
  },
  {
    what: 'a wildcard: itself',
    objects: ['*'],
    steps: [step(30, '*')],
    want: [[`*.{} 0 NOERROR: ${both(30)}`]],
  },
  {
    what: 'a wildcard, then a name that it covers',
    objects: ['*'],
    steps: [step(30, '*'), step(30)],
    want: [[`*.{} 0 NOERROR: ${both(30)}`]],
  },
  {
    what: 'a name, then the wildcard that covers it',
    objects: ['*'],
    steps: [step(30), step(30, '*')],
    want: [[`*.{} 0 NOERROR: ${both(30)}`]],
  },
  {
    what: 'two names, then the wildcard that covers them',
    objects: ['*'],
    prior: [
      { label: 'www', ttl: 35, age: 5 },
      { label: 'sub', ttl: 35, age: 5 },
    ],
    steps: [step(30, '*')],
    want: [[`*.{} 0 NOERROR: ${both(30)}`]],
  },
  {
    what: 'a wildcard that is there, and a name that it covers',
    objects: ['*'],
    prior: [
      { label: '*', ttl: 30, age: 25 },
      { label: 'www', ttl: 35, age: 5 },
    ],
    steps: [step(30, '*')],
    want: [[`*.{} 0 NOERROR: ${both(30)}`]],
  },
  {
    what: 'a wildcard and a name with other addresses',
    objects: ['*'],
    steps: [step(30, 'www', ['2.1.1.1']), step(30, '*')],
    want: [[`*.{} 0 NOERROR: ${both(30)}`, 'www.{} 0 NOERROR: 2.1.1.1/30']],
  },
  {
    what: 'the wildcard fails too often',
    objects: ['*'],
    prior: [
      { label: '*', ttl: 30, age: 30, failures: 5, reason: 'NXDOMAIN' },
      { label: 'www', ttl: 20, age: 10 },
    ],
    steps: [failure('*')],
    want: [[`www.{} 0 NOERROR: ${both(20)}`]],
  },
  {
    what: 'a name below a wildcard fails',
    objects: ['*'],
    prior: [
      { label: '*', ttl: 20, age: 5 },
      { label: 'www', ttl: 30, age: 5, failures: 1, reason: 'NXDOMAIN' },
    ],
    steps: [failure()],
    want: [[`*.{} 0 NOERROR: ${both(20)}`, `www.{} 2 NXDOMAIN: ${both(30)}`]],
  },
  {
    what: 'a name and a wildcard: the name',
    objects: ['www', '*'],
    steps: [step(30)],
    want: [[`www.{} 0 NOERROR: ${both(30)}`], [`www.{} 0 NOERROR: ${both(30)}`]],
  },
  {
    what: 'a name and a wildcard: the wildcard',
    objects: ['www', '*'],
    steps: [step(30, '*')],
    want: [[], [`*.{} 0 NOERROR: ${both(30)}`]],
  },
  {
    what: 'an object in each of two namespaces',
    objects: ['www', 'www'],
    steps: [step(30)],
    want: [[`www.{} 0 NOERROR: ${both(30)}`], [`www.{} 0 NOERROR: ${both(30)}`]],
  },
]

t.test('the cases of ocp_dnsnameresolver, through data threads', async (t) => {
  const { api, replies, start, shown } = await place(t)
  const timeOf = (age: number) => new Date(NOW - age * 1000).toISOString()
  for (const [i, { objects = ['www'], prior = [] }] of CASES.entries()) {
    const domain = `c${i}.example.`
    const resolvedNames = prior.map(({ label, ips = TWO, ttl, age, failures = 0, reason }) => ({
      dnsName: `${label}.${domain}`,
      resolvedAddresses: ips.map((ip) => ({ ip, ttlSeconds: ttl, lastLookupTime: timeOf(age) })),
      resolutionFailures: failures,
      conditions: [
        {
          type: 'Degraded',
          status: reason === undefined ? 'False' : 'True',
          reason: reason ?? 'NOERROR',
          message: '',
          lastTransitionTime: timeOf(age),
        },
      ],
    }))
    for (const [n, label] of objects.entries()) {
      const spec = { name: `${label}.${domain}` }
      api.put(RESOLVERS, `n${n}`, `c${i}`, { spec, status: { resolvedNames } })
    }
  }
  const { query, stage } = await start()
  const checks: (() => void)[] = []
  for (const [i, { what, steps, want }] of CASES.entries()) {
    const domain = `c${i}.example.`
    for (const { label, type = A, ips = [], ttl = 0, rcode = 0 } of steps) {
      const name = `${label}.${domain}`
      const records = ips.map((ip) => record(name, type, ttl, ip))
      replies.set(`${name} ${type}`, rcode === 0 ? records : rcode)
      t.equal(await query(name, type), `${rcode}/${ips.length}`, `${what}: the reply`)
    }
    const wanted = want.map((lines) => lines.map((line) => line.replace('{}', domain)))
    const seen = () => wanted.map((_, n) => shown(`c${i}`, `n${n}`))
    checks.push(() => t.strictSame(seen(), wanted, what))
    const isDone = () => JSON.stringify(seen()) === JSON.stringify(wanted)
    await until(isDone, what, 10_000).catch(() => {})
  }
  // What must not be written has had its time by now.
  for (const check of checks) check()
  t.equal(stage.totals.panics, 0)
})

t.test('replies of the cache are seen, in all threads', async (t) => {
  const { api, replies, upstream, start, shown } = await place(t, '', 'cache')
  const { queryAll, query, stage } = await start()
  replies.set('www.example.com. 1', [record('www.example.com.', A, 300, '192.0.2.1')])
  await queryAll('www.example.com.')
  await queryAll('www.example.com.')
  const count = upstream.asked.length
  t.equal(api.writes, 0, 'no object has the name')
  api.put(RESOLVERS, 'a', 'www', { spec: { name: 'www.example.com.' } })
  await until(async () => {
    await queryAll('www.example.com.')
    return shown('www').length > 0
  }, 'the name to be known in some thread')
  await queryAll('www.example.com.')
  t.match(shown('www'), [/^www\.example\.com\. 0 NOERROR: 192\.0\.2\.1\/\d+$/])
  t.equal(upstream.asked.length, count, 'all from the cache')
  t.equal(api.writes, 1)
  t.equal(await query('other.example.com.'), '3/0')
  api.delete(RESOLVERS, 'a', 'www')
  const matched = async (): Promise<number> => {
    const [line = ''] = (await stage.metrics()).match(/^sextant_egress_matched.* \d+$/m) ?? []
    return Number(line.split(' ').at(-1))
  }
  await until(async () => {
    const before = await matched()
    await queryAll('www.example.com.')
    return (await matched()) === before
  }, 'all threads to forget the name')
})

// Unbound refuses queries without RD. Each was counted as a failure of the name.
t.test('a client that does not ask for recursion removes no name', async (t) => {
  const { api, upstream, start, shown } = await place(t)
  api.put(RESOLVERS, 'a', 'www', { spec: { name: 'www.example.com.' } })
  const { query } = await start()
  upstream.script = ({ flags, question }) => {
    if ((flags & HeaderFlag.RD) === 0) return Rcode.REFUSED
    return [record(printName(question!.name), A, 60, '192.0.2.1')]
  }
  await until(async () => {
    await query('www.example.com.')
    return shown('www').length > 0
  }, 'the name to be known')
  const before = shown('www')
  for (let i = 0; i < 10; i++) t.equal(await query('www.example.com.', A, false), '5/0')
  api.put(RESOLVERS, 'a', 'last', { spec: { name: 'last.example.com.' } })
  await until(async () => {
    await query('last.example.com.')
    return shown('last').length > 0
  }, 'later lookups to be written')
  t.strictSame(shown('www'), before)
})

// The flood of one Pod makes `max_concurrent` refuse queries, each of which was a failure of its name.
t.test('queries that this server refuses remove no name', async (t) => {
  const limited = 'forward example.com {UPSTREAM} {\nmax_concurrent 1\n}'
  const { api, upstream, start, shown } = await place(t, '', limited)
  api.put(RESOLVERS, 'a', 'www', { spec: { name: 'www.example.com.' } })
  const { query, send } = await start()
  upstream.script = ({ question }) => {
    const name = printName(question!.name)
    return name.startsWith('slow') ? undefined : [record(name, A, 60, '192.0.2.1')]
  }
  await until(async () => {
    await query('www.example.com.')
    return shown('www').length > 0
  }, 'the name to be known')
  const before = shown('www')
  let refused = 0
  await until(async () => {
    await send('slow.example.com.')
    if ((await query('www.example.com.')) === '5/0') refused++
    return refused === 10
  }, 'ten refused queries')
  api.put(RESOLVERS, 'a', 'last', { spec: { name: 'last.example.org.' } })
  await until(async () => {
    await query('last.example.org.')
    return shown('last').length > 0
  }, 'later lookups to be written')
  t.strictSame(shown('www'), before)
})

t.test('only addresses that the reply explains and that are allowed are written', async (t) => {
  const properties = 'cluster 10.128.0.0/14\nallow 127.0.0.2/32\nnamespaces a'
  const { api, replies, start, shown } = await place(t, properties)
  api.put(RESOLVERS, 'a', 'www', { spec: { name: 'www.example.com.' } })
  api.put(RESOLVERS, 'b', 'www', { spec: { name: 'www.example.com.' } })
  api.put(RESOLVERS, 'a', 'deny', { spec: { name: 'deny.example.com.' } })
  const { query } = await start()
  replies.set('www.example.com. 1', [
    record('cdn.example.net.', A, 20, '192.0.2.1'),
    record('www.example.com.', CNAME, 60, 'cdn.example.net.'),
    record('other.example.net.', A, 20, '192.0.2.9'),
    record('cdn.example.net.', A, 20, '127.0.0.1'),
    record('cdn.example.net.', A, 20, '127.0.0.2'),
    record('cdn.example.net.', A, 20, '169.254.169.254'),
    record('cdn.example.net.', A, 20, '10.130.0.1'),
  ])
  replies.set('deny.example.com. 1', [record('deny.example.com.', A, 20, '0.0.0.0')])
  t.equal(await query('deny.example.com.'), '0/1', 'the reply is not changed')
  t.equal(await query('www.example.com.'), '0/7', 'the reply is not changed')
  await until(() => shown('www').length > 0, 'the write')
  t.strictSame(shown('www'), ['www.example.com. 0 NOERROR: 127.0.0.2/20 192.0.2.1/20'])
  t.strictSame(shown('www', 'b'), [], 'not one of the namespaces')
  t.strictSame(shown('deny'), [])
})

t.test('with dns64, the addresses that clients get are written', async (t) => {
  const below = 'dns64 2001:db8:64::/96 {\n allow_ipv4\n}\ncache'
  const { api, replies, start, shown } = await place(t, 'gate 5s', below)
  api.put(RESOLVERS, 'a', 'www', { spec: { name: 'www.example.com.' } })
  const { query } = await start()
  const ips = ['192.0.2.1', '127.0.0.1']
  replies.set(
    'www.example.com. 1',
    ips.map((ip) => record('www.example.com.', A, 20, ip)),
  )
  replies.set('www.example.com. 28', [])
  t.equal(await query('www.example.com.', AAAA), '0/2')
  t.strictSame(shown('www'), ['www.example.com. 0 NOERROR: 2001:db8:64::c000:201/20'])
  t.equal(await query('www.example.com.', A), '0/2')
  t.match(shown('www'), [/NOERROR: 192\.0\.2\.1\/\d+ 2001:db8:64::c000:201\/20$/])
})

t.test('the start without the API', async (t) => {
  const { api, replies, start, shown } = await place(t, 'startup_timeout 10ms')
  api.isAway = true
  api.put(RESOLVERS, 'a', 'www', { spec: { name: 'www.example.com.' } })
  replies.set('www.example.com. 1', [record('www.example.com.', A, 20, '192.0.2.1')])
  const { query, stage } = await start()
  t.equal(await query('www.example.com.'), '0/1')
  t.match(stage.lines.join('\n'), /starting without the names of the cluster/)
  api.isAway = false
  await until(async () => {
    await query('www.example.com.')
    return shown('www').length > 0
  }, 'the write')
})

t.test('addresses that clients have are written before the end', async (t) => {
  const { api, replies, start, shown } = await place(t)
  api.put(RESOLVERS, 'a', 'www', { spec: { name: 'www.example.com.' } })
  const { query, stage } = await start()
  let open = () => {}
  api.gate = new Promise((resolve) => (open = resolve))
  replies.set('www.example.com. 1', [record('www.example.com.', A, 20, '192.0.2.1')])
  await query('www.example.com.')
  replies.set('www.example.com. 1', [record('www.example.com.', A, 20, '192.0.2.2')])
  await query('www.example.com.')
  const stopped = stage.stop()
  open()
  await stopped
  t.match(shown('www')[0], '192.0.2.1/20 192.0.2.2/20')
  t.notMatch(stage.lines.join('\n'), /retrying/)
})

t.test('mode gate: the status is written before the reply leaves', async (t) => {
  const { api, replies, start, shown } = await place(t, 'gate 5s')
  api.put(RESOLVERS, 'a', 'www', { spec: { name: 'www.example.com.' } })
  const { query } = await start()
  for (let i = 1; i <= 20; i++) {
    replies.set('www.example.com. 1', [record('www.example.com.', A, 20, `192.0.2.${i}`)])
    t.equal(await query('www.example.com.'), '0/1')
    t.match(shown('www')[0], `192.0.2.${i}/20`)
  }
})
