import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { fetchHttp } from '../../../src/plugins/health/self-poll.ts'
import { healthWith } from '../../../src/plugins/health/setup.ts'
import { FakeTimers, SetUp, setupError } from '../../support/setup.ts'

/** A health directive whose requests to itself end as `outcome` says. */
function harness(corefile: string, outcome: () => Promise<void> = () => Promise.resolve()) {
  const timers = new FakeTimers()
  const urls: string[] = []
  const setUp = new SetUp(
    healthWith((url) => {
      urls.push(url)
      return outcome()
    }),
    corefile,
    undefined,
    { timers },
  )
  return { timers, urls, setUp }
}

t.test('is always healthy', async (t) => {
  const table = [
    { given: 'health', endpoint: ':8080/health' },
    { given: 'health localhost:9090', endpoint: 'localhost:9090/health' },
  ]
  for (const { given, endpoint } of table) {
    const reply = await harness(given).setUp.get(endpoint)
    t.match(reply, { status: 200, body: 'OK' }, given)
  }
})

t.test('asks itself every second and counts', async (t) => {
  let fails = false
  const { timers, urls, setUp } = harness('health :8080', async () => {
    setUp.clock.monotonicMs += 1500
    if (fails) throw new Error('refused')
  })
  await setUp.start()
  await timers.advance(2000)
  t.strictSame(urls, ['http://127.0.0.1:8080/health', 'http://127.0.0.1:8080/health'])
  t.equal(await setUp.metric('coredns_health_request_duration_seconds_count'), 2)
  t.equal(await setUp.metric('coredns_health_request_duration_seconds_bucket{le="2.5"}'), 2)
  t.match(setUp.lines.at(-1), '" took more than 1s: 1.5s')
  fails = true
  await timers.advance(1000)
  t.equal(await setUp.metric('coredns_health_request_failures_total'), 1)
  t.match(
    setUp.lines.at(-1),
    '[WARNING] plugin/health: Local health request to "http://127.0.0.1:8080/health" failed: refused',
  )
  await setUp.stop()
  await timers.advance(5000)
  t.equal(urls.length, 3)
})

t.test('asks itself only once it listens', async (t) => {
  const { timers, urls, setUp } = harness('health :8080')
  await setUp.startUp()
  await timers.advance(10_000)
  t.strictSame(urls, [], 'other directives are still starting')
  await setUp.start()
  await timers.advance(1000)
  t.equal(urls.length, 1)
})

t.test('polls end at shutdown, because the endpoint closes before other sockets', async (t) => {
  const { timers, urls, setUp } = harness('health {\n lameduck 3s\n}')
  await setUp.start()
  const end = setUp.exit()
  await timers.advance(3000)
  await end
  t.equal(urls.length, 3)
  await timers.advance(5000)
  t.equal(urls.length, 3)
})

t.test('a slow answer does not pile up requests', async (t) => {
  const { timers, urls, setUp } = harness('health', () => new Promise(() => {}))
  await setUp.start()
  await timers.advance(10_000)
  t.equal(urls.length, 1)
})

t.test('lameduck waits at the end only', async (t) => {
  const { timers, setUp } = harness('health {\n lameduck 5s\n}')
  let ended = false
  const end = setUp.exit().then(() => {
    ended = true
  })
  await timers.advance(4999)
  t.equal(ended, false)
  t.strictSame(setUp.lines, ['[INFO] plugin/health: Going into lameduck mode for 5s'])
  await timers.advance(1)
  await end
})

t.test('the request itself', async (t) => {
  const server = createServer((request, response) => {
    if (request.url === '/health') response.end('OK')
  }).listen(0, '127.0.0.1')
  t.teardown(() => server.close())
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  await fetchHttp(`http://127.0.0.1:${port}/health`, 5000)
  await t.rejects(fetchHttp(`http://127.0.0.1:${port}/mute`, 50), /no reply within 50 ms/)
})

t.test('bad lines', async (t) => {
  const health = healthWith(() => Promise.resolve())
  const table = [
    { given: 'health a b', want: 'Wrong argument count' },
    { given: 'health localhost', want: 'address localhost: missing port in address' },
    { given: 'health [::1]', want: 'address [::1]: missing port in address' },
    { given: 'health ::1:80', want: 'address ::1:80: too many colons in address' },
    { given: 'health :http', want: 'address :http: invalid port "http"' },
    { given: 'health :65536', want: 'invalid port "65536"' },
    { given: 'health {\n lameduck\n}', want: 'Wrong argument count' },
    { given: 'health {\n lameduck x\n}', want: 'unable to parse lameduck duration value: "x"' },
    { given: 'health {\n duck 1s\n}', want: 'Wrong argument count' },
  ]
  for (const { given, want } of table) t.match(setupError(health, given), want, given)
})
