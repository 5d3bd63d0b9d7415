import t from 'tap'
import { DNS_NAME_RESOLVER } from '../../../src/egress/policies/openshift/dns-name-resolver.ts'
import { turns } from '../../support/api-double.ts'
import { GATE_MS, place, RESOLVERS, spec, WWW } from './servers.ts'

t.test('an answer is written to all objects that select its name', async (t) => {
  const { api, settle, answer, shown } = await place(t)
  api.put(RESOLVERS, 'a', 'www', spec(WWW))
  api.put(RESOLVERS, 'b', 'other', spec('WWW.Example.com.'))
  api.put(RESOLVERS, 'a', 'wild', spec('*.example.com.'))
  api.put(RESOLVERS, 'a', 'far', spec('*.com.'))
  await settle()
  t.equal(answer(['192.0.2.1', '2001:db8::1']), undefined, 'no reply waits')
  await settle()
  const want = [`${WWW} 0 NOERROR: 192.0.2.1/30 2001:db8::1/30`]
  t.strictSame(shown(), want)
  t.strictSame(shown('other', 'b'), want)
  t.strictSame(shown('wild'), want)
  t.strictSame(shown('far'), [])
  const { status } = api.read(RESOLVERS, 'a', 'www')
  t.strictSame(status.resolvedNames[0].conditions, [
    {
      type: 'Degraded',
      status: 'False',
      reason: 'NOERROR',
      message: 'No Error',
      lastTransitionTime: '2023-11-14T22:13:20Z',
    },
  ])
})

t.test('lookups that change nothing are not written', async (t) => {
  const { api, settle, clock, answer, shown } = await place(t)
  api.put(RESOLVERS, 'a', 'www', spec(WWW))
  await settle()
  answer(['192.0.2.1'])
  await settle()
  clock.pass(10_000)
  answer(['192.0.2.1'], { ttl: 20 })
  answer(['192.0.2.1'], { ttl: 16 })
  await settle()
  t.equal(api.writes, 1)
  answer(['192.0.2.1'], { ttl: 30 })
  await settle()
  t.equal(api.writes, 2)
  t.strictSame(shown(), [`${WWW} 0 NOERROR: 192.0.2.1/30`])
})

t.test('lookups during a write are written together', async (t) => {
  const { api, settle, answer, shown } = await place(t)
  api.put(RESOLVERS, 'a', 'www', spec(WWW))
  await settle()
  let open = () => {}
  api.gate = new Promise((resolve) => (open = resolve))
  for (let i = 1; i <= 50; i++) answer([`192.0.2.${i}`])
  await settle()
  open()
  await settle()
  t.equal(api.writes, 2)
  t.equal(shown()[0]?.split(' ').length, 53)
})

t.test('two servers write one object', async (t) => {
  const { api, settle, answer, fail, shown, followers } = await place(t, { servers: 2 })
  api.put(RESOLVERS, 'a', 'www', spec(WWW))
  await settle()
  answer(['192.0.2.1'])
  answer(['192.0.2.2'], { server: 1 })
  fail(1)
  await settle()
  t.strictSame(shown(), [`${WWW} 1 NXDOMAIN: 192.0.2.1/30 192.0.2.2/30`])
  t.equal(followers.length, 2)
})

t.test('entries and conditions of others are preserved', async (t) => {
  const { api, settle, answer } = await place(t)
  api.put(RESOLVERS, 'a', 'wild', spec('*.example.com.'))
  await settle()
  const foreign = {
    dnsName: 'sub.example.com.',
    resolvedAddresses: [{ ip: '192.0.2.9', ttlSeconds: 7, lastLookupTime: '2023-11-14T22:13:00Z' }],
    resolutionFailures: 3,
    conditions: [{ type: 'Other', status: 'True', reason: 'X', message: '' }],
  }
  let writes = 0
  api.beforeWrite = () => {
    if (writes++ > 0) return
    api.put(RESOLVERS, 'a', 'wild', {
      ...spec('*.example.com.'),
      status: { resolvedNames: [foreign] },
    })
  }
  answer(['192.0.2.1'])
  await settle()
  const { resolvedNames } = api.read(RESOLVERS, 'a', 'wild').status
  t.equal(writes, 2, 'the first write was a conflict')
  t.strictSame(resolvedNames[0], foreign)
  t.match(resolvedNames[1], { dnsName: WWW, resolvedAddresses: [{ ip: '192.0.2.1' }] })
})

t.test('the API is away: the newest state is written when it returns', async (t) => {
  const { api, settle, clock, timers, answer, fail, shown } = await place(t)
  api.put(RESOLVERS, 'a', 'www', spec(WWW))
  await settle()
  api.isAway = true
  api.cut()
  for (let i = 1; i <= 3; i++) fail()
  for (let second = 0; second < 60; second++) {
    answer([`192.0.2.${second}`], { ttl: 20 })
    clock.pass(1000)
    await timers.advance(1000)
  }
  t.equal(answer(['192.0.2.200'], { ttl: 20 }), undefined)
  api.isAway = false
  for (let i = 0; i < 20; i++) {
    await timers.advance(1000)
    await settle()
  }
  const [line = ''] = shown()
  t.match(line, /^www\.example\.com\. 0 NOERROR: /)
  t.match(line, '192.0.2.200/20')
  t.match(line, '192.0.2.59/')
  t.notMatch(line, '192.0.2.30/', 'what expired is not written')
})

t.test('an object that is recreated, and one of another name, start again', async (t) => {
  const { api, settle, answer, shown, followers } = await place(t)
  api.put(RESOLVERS, 'a', 'www', spec(WWW))
  await settle()
  answer(['192.0.2.1'])
  await settle()
  api.delete(RESOLVERS, 'a', 'www')
  await settle()
  t.equal(followers[0]!.selectors.size, 0)
  answer(['192.0.2.1'])
  api.put(RESOLVERS, 'a', 'www', spec('other.example.com.'))
  await settle()
  t.strictSame(followers[0]!.texts(), ['other.example.com.'])
  answer(['192.0.2.1'])
  answer(['192.0.2.2'], { dnsName: 'other.example.com.' })
  await settle()
  t.strictSame(shown(), ['other.example.com. 0 NOERROR: 192.0.2.2/30'])
})

t.test('an object that is recreated while it is written and the watch is cut', async (t) => {
  const { api, settle, timers, answer, shown } = await place(t)
  api.put(RESOLVERS, 'a', 'www', spec(WWW))
  await settle()
  api.beforeWrite = () => {
    api.beforeWrite = () => {}
    api.cut()
    api.delete(RESOLVERS, 'a', 'www')
    api.put(RESOLVERS, 'a', 'www', spec(WWW))
  }
  answer(['192.0.2.1'])
  for (let second = 0; second < 20; second++) await timers.advance(1000)
  await settle()
  t.strictSame(shown(), [`${WWW} 0 NOERROR: 192.0.2.1/30`])
})

t.test('names that the definition refuses are not written', async (t) => {
  const { api, settle, answer, shown } = await place(t)
  api.put(RESOLVERS, 'a', 'wild', spec('*.example.com.'))
  await settle()
  answer(['192.0.2.1'], { dnsName: 'a_b.example.com.' })
  answer(['192.0.2.1'], { dnsName: '-a.example.com.' })
  answer(['192.0.2.1'], { dnsName: '*.example.com.' })
  await settle()
  t.strictSame(shown('wild'), ['*.example.com. 0 NOERROR: 192.0.2.1/30'])
})

t.test('a write that the API refuses is logged, and does not block others', async (t) => {
  const { api, settle, answer, shown, lines } = await place(t)
  api.put(RESOLVERS, 'a', 'www', spec(WWW))
  await settle()
  api.refuse = ({ method }) => (method === 'PATCH' ? [422, 'no'] : undefined)
  answer(['192.0.2.1'])
  await settle()
  t.match(lines.at(-1), /dnsnameresolvers a\/www: cannot write the status: 422 no/)
  api.refuse = () => undefined
  answer(['192.0.2.2'])
  await settle()
  t.strictSame(shown(), [`${WWW} 0 NOERROR: 192.0.2.2/30`])
})

t.test('a lookup that arrives during a refused write is written later', async (t) => {
  const { api, settle, answer, shown } = await place(t)
  api.put(RESOLVERS, 'a', 'www', spec(WWW))
  await settle()
  let count = 0
  api.refuse = ({ method }) => {
    if (method !== 'PATCH' || count++ > 0) return undefined
    answer(['192.0.2.2'])
    return [422, 'no']
  }
  answer(['192.0.2.1'])
  await settle()
  t.strictSame(shown(), [`${WWW} 0 NOERROR: 192.0.2.1/30 192.0.2.2/30`])
})

t.test('mode gate', async (t) => {
  const { api, settle, clock, timers, answer, fail, shown } = await place(t, { gateMs: GATE_MS })
  api.put(RESOLVERS, 'a', 'www', spec(WWW))
  await settle()
  let result = ''
  const watch = (wait: Promise<string> | undefined): void => {
    result = wait === undefined ? 'sent' : 'waits'
    void wait?.then((text) => {
      result = text
    })
  }
  watch(answer(['192.0.2.1']))
  t.equal(result, 'waits')
  await settle()
  t.equal(result, 'acknowledged')
  t.strictSame(shown(), [`${WWW} 0 NOERROR: 192.0.2.1/30`])
  watch(answer(['192.0.2.1']))
  t.equal(result, 'sent', 'the status shows it already')
  watch(fail())
  t.equal(result, 'sent', 'a failure grants nothing')
  await settle()

  let open = () => {}
  api.gate = new Promise((resolve) => (open = resolve))
  watch(answer(['192.0.2.2']))
  await timers.advance(49)
  await turns()
  t.equal(result, 'waits')
  await timers.advance(1)
  await turns()
  t.equal(result, 'timed out')
  watch(answer(['192.0.2.2']))
  t.equal(result, 'waits', 'a second client waits for the same write')
  open()
  await settle()
  t.equal(result, 'acknowledged')

  api.refuse = ({ method }) => (method === 'PATCH' ? [503, 'busy'] : undefined)
  watch(answer(['192.0.2.3']))
  await settle()
  t.equal(result, 'failed')
  api.refuse = () => undefined
  watch(answer(['192.0.2.4']))
  await settle()
  t.equal(result, 'acknowledged')
  t.match(shown()[0], '192.0.2.3')

  clock.pass(31_000)
  watch(answer(['192.0.2.1']))
  t.equal(result, 'waits', 'an expired address may be gone at any time')
  await settle()
  t.equal(result, 'acknowledged')

  api.gate = new Promise(() => {})
  watch(answer(['192.0.2.5']))
  api.delete(RESOLVERS, 'a', 'www')
  await settle()
  t.equal(result, 'acknowledged', 'no policy has the name any more')
})

t.test('a definition that is installed later, removed, and installed again', async (t) => {
  const { api, settle, timers, lines, answer, shown, followers } = await place(t, {
    undefinedKinds: [RESOLVERS],
  })
  t.match(lines, [/is the CustomResourceDefinition dnsnameresolvers\.network\.openshift\.io/])
  t.ok(followers[0]!.isSettled, 'a start does not wait for it')
  const wait = async (): Promise<void> => {
    for (let second = 0; second < 20; second++) await timers.advance(1000)
    await settle()
  }
  for (let round = 1; round <= 2; round++) {
    api.undefinedKinds.clear()
    api.put(RESOLVERS, 'a', 'www', spec(WWW))
    await wait()
    answer(['192.0.2.1'])
    await settle()
    t.strictSame(shown(), [`${WWW} 0 NOERROR: 192.0.2.1/30`])
    api.delete(RESOLVERS, 'a', 'www')
    api.undefinedKinds.add(RESOLVERS)
    api.cut()
    await wait()
    t.equal(answer(['192.0.2.2']), undefined)
    t.equal(followers[0]!.selectors.size, 0)
  }
  t.equal(lines.filter((line) => /CustomResourceDefinition/.test(line)).length, 3)
})

t.test('a status that is full', async (t) => {
  const { api, settle, clock, lines, answer, shown } = await place(t)
  api.put(RESOLVERS, 'a', 'wild', spec('*.example.com.'))
  await settle()
  const list = Array.from({ length: 900 }, (_, i) => `10.0.${i >> 8}.${i & 255}`)
  for (let i = 0; i < 10; i++) {
    answer(list, { dnsName: `n${i}.example.com.` })
    await settle()
  }
  const full = shown('wild').length
  t.ok(full > 3 && full < 10, `${full} names`)
  const isLine = (line: string) => /wild: the status is full: new addresses/.test(line)
  t.equal(lines.filter(isLine).length, 1)
  clock.pass(36_000)
  answer(list, { dnsName: 'new.example.com.' })
  await settle()
  t.strictSame(
    shown('wild').map((line) => line.split(' ')[0]),
    ['new.example.com.'],
    'what is expired makes room',
  )
})

// Each query for a new name below a wildcard searched all entries: a thousand of them a second took
// all the time of the control thread.
t.test('a full status is searched for expired entries once a second', async (t) => {
  const { api, settle, clock, answer, shown } = await place(t)
  api.put(RESOLVERS, 'a', 'wild', spec('*.example.com.'))
  await settle()
  const list = Array.from({ length: 900 }, (_, i) => `10.0.${i >> 8}.${i & 255}`)
  for (let i = 0; i < 10; i++) answer(list, { dnsName: `n${i}.example.com.` })
  await settle()
  const searched = t.capture(DNS_NAME_RESOLVER, 'withoutExpired', DNS_NAME_RESOLVER.withoutExpired)
  for (let i = 0; i < 100; i++) answer(list, { dnsName: `m${i}.example.com.` })
  clock.pass(500)
  for (let i = 0; i < 100; i++) answer(list, { dnsName: `m${i}.example.com.` })
  t.ok(searched().length <= 1)
  clock.pass(500)
  for (let i = 0; i < 100; i++) answer(list, { dnsName: `m${i}.example.com.` })
  t.equal(searched().length, 1)
  clock.pass(35_000)
  answer(list, { dnsName: 'new.example.com.' })
  await settle()
  t.strictSame(
    shown('wild').map((line) => line.split(' ')[0]),
    ['new.example.com.'],
  )
})

t.test('mode gate: only so many replies wait', async (t) => {
  const { api, settle, timers, answer } = await place(t, { gateMs: GATE_MS })
  api.put(RESOLVERS, 'a', 'www', spec(WWW))
  await settle()
  api.gate = new Promise(() => {})
  const waits = Array.from({ length: 300 }, (_, i) => answer([`10.0.${i >> 8}.${i & 255}`]))
  t.equal(waits.filter((wait) => wait !== undefined).length, 256)
  await timers.advance(50)
  t.equal(await waits[0], 'timed out')
  t.not(answer(['10.1.0.1']), undefined, 'there is room again')
})

t.test('the log has few lines if many writes fail', async (t) => {
  const { api, settle, lines, answer } = await place(t)
  for (let i = 0; i < 100; i++) api.put(RESOLVERS, 'a', `n${i}`, spec(`n${i}.example.com.`))
  await settle()
  api.refuse = ({ method }) => (method === 'PATCH' ? [503, 'busy'] : undefined)
  for (let i = 0; i < 100; i++) answer(['192.0.2.1'], { dnsName: `n${i}.example.com.` })
  await settle()
  await settle()
  t.equal(lines.filter((line) => /503 busy; retrying/.test(line)).length, 10)
})

t.test('invalid names are logged once each, and in a bounded number', async (t) => {
  const { api, settle, lines, clock, followers } = await place(t)
  const ignored = () => lines.filter((line) => line.includes(': ignored: ')).length
  api.put(RESOLVERS, 'a', 'bad', spec('a..b.'))
  await settle()
  t.match(lines, [/ dnsnameresolvers a\/bad: ignored: invalid name "a\.\.b\."/])
  for (let i = 0; i < 9; i++) api.put(RESOLVERS, 'a', 'bad', spec('a..b.'))
  await settle()
  t.equal(ignored(), 1, 'the same fault again')
  api.put(RESOLVERS, 'a', 'bad', spec('a.b.'))
  await settle()
  api.put(RESOLVERS, 'a', 'bad', spec('a..b.'))
  await settle()
  t.equal(ignored(), 2, 'it was valid meanwhile')
  for (let i = 0; i < 500; i++) api.put(RESOLVERS, 'a', `n${i}`, spec(`${i}..b.`))
  await settle()
  t.equal(ignored(), 100)
  clock.pass(3_600_000)
  api.put(RESOLVERS, 'a', 'late', spec('c..b.'))
  await settle()
  t.match(lines.at(-2), /and 402 more faults before/)
  t.equal(ignored(), 101)
  t.equal(followers[0]!.selectors.size, 0)
})
