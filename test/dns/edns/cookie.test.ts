import t from 'tap'
import { CookieJar } from '../../../src/dns/edns/cookie.ts'
import { CookieSecrets } from '../../../src/dns/edns/cookie-secrets.ts'
import { sipHash24 } from '../../../src/dns/edns/siphash.ts'
import { parseQuery } from '../../../src/dns/message/parse-query.ts'
import { Query } from '../../../src/dns/message/query.ts'
import { Response } from '../../../src/dns/message/response.ts'
import { wireQuery } from '../../support/wire.ts'

function hex(text: string): Uint8Array {
  return Buffer.from(text, 'hex')
}

function queryWith(cookie: string, address: readonly number[]): Query {
  const packet = wireQuery({ name: 'example.com', edns: { options: [[10, hex(cookie)]] } })
  const query = new Query()
  parseQuery(query, packet, packet.length)
  query.peerAddress.set(address)
  query.peerFamily = address.length === 4 ? 1 : 2
  return query
}

function serverCookie(response: Response): string {
  return Buffer.from(response.serverCookie).toString('hex')
}

t.test('SipHash-2-4 gives the vectors of its authors', async (t) => {
  const key = new Int32Array(Uint8Array.from({ length: 16 }, (_, i) => i).buffer)
  const table = [
    { octets: 0, want: '310e0edd47db6f72' },
    { octets: 1, want: 'fd67dc93c539f874' },
    { octets: 7, want: '37d1018bf50002ab' },
    { octets: 8, want: '6224939a79f5f593' },
    { octets: 15, want: 'e545be4961ca29a1' },
    { octets: 63, want: '724506eb4c328a95' },
  ]
  for (const { octets, want } of table) {
    const input = Uint8Array.from({ length: 72 }, (_, i) => (i < octets ? i : 0))
    const out = new Int32Array(2)
    sipHash24(key, new Int32Array(input.buffer), octets, out)
    t.equal(Buffer.from(out.buffer).toString('hex'), want, `${octets} octets`)
  }
})

const SECRET = 'e5e973e5a6b2a43f48e7dc849e37bfcf'

function jarOf(...secrets: readonly string[]): CookieJar {
  return new CookieJar(CookieSecrets.of(...secrets.map(hex)))
}

t.test('the examples of RFC 9018 appendix A', async (t) => {
  const ipv6 = [0x20, 1, 0x0d, 0xb8, 2, 0x20, 0, 1, 0x59, 0xde, 0xd0, 0xf4, 0x87, 0x69, 0x82, 0xb8]
  const table = [
    {
      name: 'A.1 learning a new server cookie',
      secrets: [SECRET],
      address: [198, 51, 100, 100],
      cookie: '2464c4abcf10c957',
      now: 1559731985,
      want: '010000005cf79f111f8130c3eee29480',
      good: false,
    },
    {
      name: 'A.2 the same client renews it',
      secrets: [SECRET],
      address: [198, 51, 100, 100],
      cookie: '2464c4abcf10c957010000005cf79f111f8130c3eee29480',
      now: 1559734385,
      want: '010000005cf7a871d4a564a1442aca77',
      good: true,
    },
    {
      name: 'A.3 another client, reserved octets set',
      secrets: [SECRET],
      address: [203, 0, 113, 203],
      cookie: 'fc93fc62807ddb8601abcdef5cf78f71a314227b6679ebf5',
      now: 1559734700,
      want: '010000005cf7a9acf73a7810aca2381e',
      // Its cookie is an hour and 52 minutes old.
      good: false,
    },
    {
      name: 'A.3 within the hour: the reserved octets do no harm',
      secrets: [SECRET],
      address: [203, 0, 113, 203],
      cookie: 'fc93fc62807ddb8601abcdef5cf78f71a314227b6679ebf5',
      now: 1559727985 + 3600,
      want: undefined,
      good: true,
    },
    {
      name: 'A.4 IPv6, with a secret that was rotated',
      secrets: ['445536bcd2513298075a5d379663c962', 'dd3bdf9344b678b185a6f5cb60fca715'],
      address: ipv6,
      cookie: '22681ab97d52c298010000005cf7c57926556bd0934c72f8',
      now: 1559741961,
      want: '010000005cf7c609a6bb79d16625507a',
      good: true,
    },
  ]
  for (const { name, secrets, address, cookie, now, want, good } of table) {
    const jar = jarOf(...secrets)
    const response = new Response()
    t.equal(jar.serve(queryWith(cookie, address), response, now), good, `${name}: is it good`)
    t.equal(response.serverCookieOctets, 16)
    if (want !== undefined) t.equal(serverCookie(response), want, name)
  }
})

t.test('changes that make a server cookie invalid', async (t) => {
  const made = 1559731985
  const whole = '2464c4abcf10c957010000005cf79f111f8130c3eee29480'
  const home = [198, 51, 100, 100]
  const table = [
    { name: 'fresh', cookie: whole, address: home, now: made + 60, good: true },
    { name: 'an hour old', cookie: whole, address: home, now: made + 3600, good: true },
    { name: 'older', cookie: whole, address: home, now: made + 3601, good: false },
    { name: 'five minutes ahead', cookie: whole, address: home, now: made - 300, good: true },
    { name: 'further ahead', cookie: whole, address: home, now: made - 301, good: false },
    { name: 'from elsewhere', cookie: whole, address: [198, 51, 100, 101], now: made, good: false },
    {
      name: 'another hash',
      cookie: `${whole.slice(0, -2)}81`,
      address: home,
      now: made,
      good: false,
    },
    {
      name: 'version 2',
      cookie: whole.replace('5701', '5702'),
      address: home,
      now: made,
      good: false,
    },
    { name: 'a longer one', cookie: `${whole}00`, address: home, now: made, good: false },
    { name: 'eight octets', cookie: whole.slice(0, 32), address: home, now: made, good: false },
  ]
  for (const { name, cookie, address, now, good } of table) {
    const jar = jarOf(SECRET)
    t.equal(jar.serve(queryWith(cookie, address), new Response(), now), good, name)
  }
})

t.test('a fresh cookie comes back as it is, an old one is renewed', async (t) => {
  const jar = jarOf(SECRET)
  const query = queryWith('2464c4abcf10c957010000005cf79f111f8130c3eee29480', [198, 51, 100, 100])
  const response = new Response()
  jar.serve(query, response, 1559731985 + 1799)
  t.equal(serverCookie(response), '010000005cf79f111f8130c3eee29480')
  jar.serve(query, response, 1559731985 + 1800)
  t.not(serverCookie(response), '010000005cf79f111f8130c3eee29480')
})

t.test('a rollover of a fleet: each server accepts the cookies of all others', async (t) => {
  const [old, fresh] = ['00'.repeat(16), '11'.repeat(16)]
  const now = 1559731985
  const home = [198, 51, 100, 100]
  /** The cookie that a server with these secrets gives. */
  const cookieOf = (...secrets: readonly string[]): string => {
    const response = new Response()
    jarOf(...secrets).serve(queryWith('2464c4abcf10c957', home), response, now)
    return `2464c4abcf10c957${serverCookie(response)}`
  }
  const stages = [[old], [old, fresh], [fresh, old], [fresh]]
  for (const [i, secrets] of stages.entries()) {
    for (const other of stages.slice(Math.max(i - 1, 0), i + 2)) {
      const query = queryWith(cookieOf(...other), home)
      t.equal(jarOf(...secrets).serve(query, new Response(), now), true, `${secrets} <- ${other}`)
    }
  }
  t.equal(jarOf(fresh).serve(queryWith(cookieOf(old), home), new Response(), now), false)
  // A cookie of another secret is replaced by one of ours.
  const response = new Response()
  jarOf(fresh, old).serve(queryWith(cookieOf(old), home), response, now)
  t.equal(`2464c4abcf10c957${serverCookie(response)}`, cookieOf(fresh))
})

t.test('secrets that change are those of all threads', async (t) => {
  const secrets = CookieSecrets.of(hex('00'.repeat(16)))
  const ofThread = new CookieJar(new CookieSecrets(secrets.memory))
  const query = queryWith('2464c4abcf10c957010000005cf79f111f8130c3eee29480', [198, 51, 100, 100])
  const serve = () => ofThread.serve(query, new Response(), 1559731985)
  t.equal(serve(), false)
  secrets.set([hex('11'.repeat(16)), hex('22'.repeat(16)), hex(SECRET), hex('33'.repeat(16))])
  t.equal(serve(), true)
  secrets.set([hex('11'.repeat(16)), hex('22'.repeat(16))])
  t.equal(serve(), false, 'not those of the other bank')
  secrets.set([hex(SECRET)])
  t.equal(serve(), true)
  t.throws(() => secrets.set([]))
  t.throws(() => secrets.set(Array(5).fill(hex(SECRET))))
  t.throws(() => secrets.set([hex('00')]))
})
