import t from 'tap'
import { cache } from '../../../src/plugins/cache/setup.ts'
import { SetUp, setupError } from '../../support/setup.ts'

t.test('valid configurations', async (t) => {
  const good = [
    'cache',
    'cache 30',
    'cache 30 example.org example.com',
    'cache example.org {\n success 5000 3600 10\n denial 2500\n}',
    'cache {\n prefetch 10\n}',
    'cache {\n prefetch 10 1m 20%\n serve_stale\n}',
    'cache {\n serve_stale 1h verify\n servfail 10s\n keepttl\n}',
    'cache {\n disable success\n disable denial example.org\n}',
  ]
  for (const text of good) t.equal(new SetUp(cache, text).factories.length, 1, text)
  const bad: [string, RegExp][] = [
    ['cache 0', /Corefile:1 .*TTL can not be zero/],
    ['cache -1', /TTL can not be zero or negative: -1/],
    ['cache {\n success\n}', /Corefile:2 .*Wrong argument count/],
    ['cache {\n success many\n}', /Corefile:2 .*not a number: "many"/],
    ['cache {\n success 99999999\n}', /Corefile:2 .*more than 4194304 entries/],
    ['cache {\n denial 1000 0\n}', /Corefile:2 .*TTL can not be zero/],
    ['cache {\n denial 1000 10 20\n}', /minimum TTL is above the maximum: 20 > 10/],
    ['cache {\n prefetch\n}', /Wrong argument count/],
    ['cache {\n prefetch 5 x\n}', /not a duration: "x"/],
    ['cache {\n prefetch 5 1m 5%\n}', /not in the range 10%..90%: "5%"/],
    ['cache {\n serve_stale 1h later\n}', /expects 'immediate' or 'verify', got "later"/],
    ['cache {\n servfail 6m\n}', /longer than 5 minutes/],
    ['cache {\n disable all\n}', /expects 'success' or 'denial', got "all"/],
    ['cache {\n keepttl yes\n}', /Wrong argument count/],
    ['cache {\n size 5\n}', /unknown property 'size'/],
    ['cache\ncache', /can only be used once per Server Block/],
  ]
  for (const [text, message] of bad) t.match(setupError(cache, text), message, text)
})
