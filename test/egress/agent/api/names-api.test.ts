import { existsSync, lstatSync, statSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { connect } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { nameKey, printKey, scanName } from '../../../../src/dns/name/name.ts'
import {
  type ListedName,
  NamesApi,
  type NamesReply,
  type PolicyNames,
} from '../../../../src/egress/agent/api/names-api.ts'
import { openSocket } from '../../../../src/egress/agent/api/socket-server.ts'
import type { Client } from '../../../../src/egress/agent/client.ts'
import { LearnedTable, ttlRule } from '../../../../src/egress/learned/learned-table.ts'
import type { EgressRule } from '../../../../src/egress/rules/rule.ts'
import { type Dialect, scanSelector } from '../../../../src/egress/selectors/scan-selector.ts'
import { answerTo, clientOf } from '../../../support/egress-client.ts'
import { EgressStage } from '../../../support/egress-stage.ts'
import { FakeClock } from '../../../support/setup.ts'

function selector(text: string, dialect: Dialect) {
  const scanned = scanSelector(text, dialect)
  if (typeof scanned === 'string') throw new Error(scanned)
  return scanned
}

function client(id: string, selectors: readonly (readonly [string, Dialect])[]): Client {
  const rule: EgressRule = {
    action: 'accept',
    networks: [],
    names: selectors.map(([text, dialect]) => selector(text, dialect)),
    ports: undefined,
    lasts: 'ttl',
    origin: 'test',
  }
  return {
    id,
    addresses: [],
    rules: { lists: [[{ rules: [rule], otherwise: 'deny' }]], dns: undefined },
  }
}

function keyOf(name: string): string {
  return nameKey(scanName(name)!)
}

/** Two clients, and what they learned. */
function place() {
  const clock = new FakeClock()
  clock.nowMs = Date.parse('2026-01-01T00:00:10Z')
  clock.monotonicMs = 10_000
  const learned = [
    client('a/web/1', [
      ['*.example.com', 'cilium-1.16'],
      ['www.example.com', 'name'],
    ]),
    client('b/db/2', [
      ['**.example.net', 'cilium-1.19'],
      ['*.npep.example', 'npep'],
      ['*.one.example', 'openshift'],
      ['*', 'cilium-1.19'],
    ]),
  ].map((one) => {
    const zombies = { most: 10, perName: 10, idleGraceMs: 0, keepMs: 60_000 }
    const cache = new LearnedTable({ endOf: ttlRule(0), addressesPerName: 100, zombies })
    return {
      client: one,
      cache,
      learned: function* () {
        yield* cache.answers()
        yield* cache.zombies()
      },
    }
  })
  const [web, db] = [learned[0]!, learned[1]!]
  const add = (to: typeof web, name: string, ttlSeconds: number, ...addresses: string[]) =>
    to.cache.add({ name: keyOf(name), addresses, ttlSeconds, lookupMs: 10_000 })
  add(web, 'www.example.com.', 60, '192.0.2.1', '2001:db8::1')
  add(web, 'a.b.example.com.', 30, '192.0.2.2')
  add(db, 'db.example.net.', 5, '198.51.100.1')
  const ended = { address: '198.51.100.9', endMs: 4000, ttlEndMs: 4000 }
  db.cache.retire({ name: keyOf('old.example.net.'), ...ended })
  const forgotten: string[] = []
  const names = {
    states: () => learned,
    clients: () => learned.map((one) => one.client),
    forget: (isSelected: (name: string) => boolean) => {
      for (const { cache } of learned) {
        const before = [...cache.names()].map(printKey)
        cache.forget(isSelected)
        const after = new Set([...cache.names()].map(printKey))
        forgotten.push(...before.filter((name) => !after.has(name)))
      }
    },
  }
  const api = new NamesApi({ names, dialect: 'cilium-1.19', clock })
  return { api, forgotten, db, add }
}

const rowsOf = (reply: NamesReply): readonly ListedName[] => [...(reply.rows ?? [])]

t.test('the list', async (t) => {
  const { api } = place()
  const { status, ...reply } = api.answer('GET', '/fqdn/cache')
  t.equal(status, 200)
  t.strictSame(rowsOf({ status, ...reply }), [
    {
      fqdn: 'www.example.com.',
      ips: ['192.0.2.1', '2001:db8::1'],
      'lookup-time': '2026-01-01T00:00:10.000Z',
      ttl: 60,
      'expiration-time': '2026-01-01T00:01:10.000Z',
      'endpoint-id': 'a/web/1',
      source: 'lookup',
    },
    {
      fqdn: 'a.b.example.com.',
      ips: ['192.0.2.2'],
      'lookup-time': '2026-01-01T00:00:10.000Z',
      ttl: 30,
      'expiration-time': '2026-01-01T00:00:40.000Z',
      'endpoint-id': 'a/web/1',
      source: 'lookup',
    },
    {
      fqdn: 'db.example.net.',
      ips: ['198.51.100.1'],
      'lookup-time': '2026-01-01T00:00:10.000Z',
      ttl: 5,
      'expiration-time': '2026-01-01T00:00:15.000Z',
      'endpoint-id': 'b/db/2',
      source: 'lookup',
    },
    {
      fqdn: 'old.example.net.',
      ips: ['198.51.100.9'],
      'lookup-time': '2026-01-01T00:00:04.000Z',
      ttl: 0,
      'expiration-time': '2026-01-01T00:01:04.000Z',
      'endpoint-id': 'b/db/2',
      source: 'connection',
    },
  ])
})

t.test('filters and statuses', async (t) => {
  const { api } = place()
  const table: [string, number, readonly string[]][] = [
    ['/fqdn/cache?matchpattern=*.example.com', 200, ['www.example.com.']],
    ['/fqdn/cache?matchpattern=**.Example.com.', 200, ['www.example.com.', 'a.b.example.com.']],
    ['/fqdn/cache?matchpattern=www.example.com', 200, ['www.example.com.']],
    ['/fqdn/cache?matchpattern=*.other', 404, []],
    ['/fqdn/cache?matchpattern=a..b', 400, []],
    ['/fqdn/cache?cidr=192.0.2.0/31', 200, ['www.example.com.']],
    ['/fqdn/cache?cidr=2001:db8::/32', 200, ['www.example.com.']],
    ['/fqdn/cache?cidr=198.51.100.9', 200, ['old.example.net.']],
    ['/fqdn/cache?cidr=203.0.113.0/24', 404, []],
    ['/fqdn/cache?cidr=300.0.0.0/8', 400, []],
    ['/fqdn/cache?source=connection', 200, ['old.example.net.']],
    ['/fqdn/cache?source=lookup&matchpattern=old.example.net', 404, []],
    ['/fqdn/cache?source=proxy', 400, []],
    ['/fqdn/cache/b/db', 200, ['db.example.net.', 'old.example.net.']],
    ['/fqdn/cache/b%2Fdb%2F2', 200, ['db.example.net.', 'old.example.net.']],
    ['/fqdn/cache/b/d', 404, []],
    ['/fqdn/cache/..%2f..%2fetc/passwd', 404, []],
    ['/fqdn/cache/%', 404, []],
    ['/fqdn/cache/../../etc/passwd', 404, []],
    ['/fqdn', 404, []],
    ['/', 404, []],
  ]
  for (const [target, status, want] of table) {
    const reply = api.answer('GET', target)
    t.equal(reply.status, status, target)
    t.strictSame(
      rowsOf(reply).map(({ fqdn }) => fqdn),
      want,
      target,
    )
  }
  t.match(api.answer('POST', '/fqdn/cache'), { status: 405, allow: 'GET, DELETE' })
  t.match(api.answer('DELETE', '/fqdn/cache/a/web'), { status: 405, allow: 'GET' })
  t.match(api.answer('DELETE', '/fqdn/names'), { status: 405, allow: 'GET' })
})

t.test('DELETE reads its pattern as GET does', async (t) => {
  for (const pattern of ['*.example.com', '*.EXAMPLE.com.']) {
    const { api, forgotten } = place()
    t.strictSame(api.answer('DELETE', `/fqdn/cache?matchpattern=${pattern}`), { status: 200 })
    t.strictSame(forgotten, ['www.example.com.'])
  }
  const { api, forgotten } = place()
  t.match(api.answer('DELETE', '/fqdn/cache?matchpattern=a b'), {
    status: 400,
    fault: /invalid name/,
  })
  t.strictSame(forgotten, [])
  api.answer('DELETE', '/fqdn/cache')
  t.equal(forgotten.length, 3)
})

t.test('selectors', async (t) => {
  const c = '[-a-zA-Z0-9_]'
  t.strictSame(place().api.answer('GET', '/fqdn/names').json, {
    DNSPollNames: [],
    FQDNPolicySelectors: [
      { selectorString: '*', regexString: `(^(${c}+[.])+$)|(^[.]$)` },
      { selectorString: '**.example.net', regexString: `^(${c}+[.])+example[.]net[.]$` },
      { selectorString: '*.example.com', regexString: `^${c}*[.]example[.]com[.]$` },
      { selectorString: '*.npep.example', regexString: '^([^.]+[.])+npep[.]example[.]$' },
      { selectorString: '*.one.example', regexString: '^[^.]+[.]one[.]example[.]$' },
      { selectorString: 'www.example.com', regexString: '^www[.]example[.]com[.]$' },
    ],
  })
})

t.test('what an agent learned', async (t) => {
  const stage = new EgressStage()
  const { agent, clock, connections } = stage
  const rules = [{ names: '*.example.com', lasts: 'connections' }, { names: 'x.example' }] as const
  const [a, b] = [clientOf('a', '10.1.0.1', rules), clientOf('b', '10.1.0.2', [rules[0]])]
  await agent.setClients([a, b])
  agent.learn(a, answerTo('old.example.com.', '192.0.2.1', 10))
  agent.learn(a, answerTo('www.example.com.', '192.0.2.2 192.0.2.3', 600))
  agent.learn(a, answerTo('www.example.org.', '192.0.2.2', 600))
  agent.learn(b, answerTo('www.example.com.', '192.0.2.4', 600))
  connections.open.add('10.1.0.1 192.0.2.1')
  await stage.pass(125_000)
  const api = new NamesApi({ names: agent, dialect: 'cilium-1.19', clock })
  const list = () =>
    rowsOf(api.answer('GET', '/fqdn/cache')).map((row) => {
      return `${row['endpoint-id']} ${row.fqdn} ${row.ips.join()} ${row.source}`
    })
  t.strictSame(list(), [
    'a www.example.com. 192.0.2.2,192.0.2.3 lookup',
    'a www.example.org. 192.0.2.2 lookup',
    'a old.example.com. 192.0.2.1 connection',
    'b www.example.com. 192.0.2.4 lookup',
  ])
  const { FQDNPolicySelectors: selectors } = api.answer('GET', '/fqdn/names').json as PolicyNames
  t.match(selectors, [{ selectorString: '*.example.com' }, { selectorString: 'x.example' }])

  t.equal(stage.enforcer.inForce().length, 4)
  t.equal(api.answer('DELETE', '/fqdn/cache?matchpattern=www.example.com').status, 200)
  t.strictSame(stage.enforcer.inForce(), ['10.1.0.1 192.0.2.1 any'], 'the kernel forgets it too')
  t.equal(api.answer('DELETE', '/fqdn/cache').status, 200)
  t.strictSame([stage.enforcer.size, list()], [0, []])
})

interface Reply {
  readonly status: number
  readonly body: string
}

function ask(socketPath: string, path: string, method = 'GET'): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const sent = request({ socketPath, path, method, agent: false }, (response) => {
      let body = ''
      response.setEncoding('utf8')
      response.on('data', (text) => {
        body += text
      })
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body }))
    })
    sent.on('error', reject)
    sent.end()
  })
}

t.test('over a socket', async (t) => {
  const path = join(t.testdir(), 'deep', 'node.sock')
  const { api, db, add } = place()
  const answer = api.answer.bind(api)
  const umask = process.umask()
  const socket = await openSocket(path, answer)
  t.equal(process.umask(), umask)
  t.equal(statSync(path).mode & 0o777, 0o600)
  t.equal(JSON.parse((await ask(path, '/fqdn/cache')).body).length, 4)
  t.match(await ask(path, '/fqdn/cache?matchpattern=x.y'), { status: 404, body: '' })
  t.match(await ask(path, '/fqdn/cache?cidr=x'), { status: 400, body: /cidr must be a network/ })
  t.equal((await ask(path, 'http://[', 'GET')).status, 400, 'not a URL')
  t.equal((await ask(path, '/fqdn/cache?matchpattern=*.example.com', 'DELETE')).status, 200)
  t.equal(JSON.parse((await ask(path, '/fqdn/cache')).body).length, 3)
  for (let i = 0; i < 5000; i++) add(db, `n${i}.example.net.`, 60, `10.${i >> 8}.${i & 255}.1`)
  t.equal(JSON.parse((await ask(path, '/fqdn/cache')).body).length, 5003, 'in pieces')

  const second = await openSocket(path, () => ({ status: 200, json: 'second' }))
  t.equal((await ask(path, '/')).body, '"second"\n', 'a later one gets new requests')
  socket.close()
  t.ok(lstatSync(path).isSocket(), 'the first one leaves the file of the second alone')
  t.equal((await ask(path, '/')).body, '"second"\n')
  second.close()
  t.notOk(existsSync(path))
})

t.test('faults of a socket', async (t) => {
  const directory = t.testdir({ file: 'precious' })
  const path = join(directory, 'file')
  await t.rejects(
    openSocket(path, () => ({ status: 200 })),
    /exists and is not a socket; remove it/,
  )
  writeFileSync(join(directory, 'file2'), '')
  await t.rejects(
    openSocket(join(directory, 'file2', 'x'), () => ({ status: 200 })),
    /ENOTDIR|EEXIST/,
  )
  const open = join(directory, 'node.sock')
  const socket = await openSocket(open, () => ({ status: 200 }))
  t.teardown(() => socket.close())
  const idle = connect(open).resume()
  await new Promise((resolve) => idle.once('close', resolve))
  t.pass('a client that asks nothing is cut')
})
