import t from 'tap'
import { Response } from '../../../src/dns/message/response.ts'
import { ZoneAnswerer } from '../../../src/zone/lookup/answer.ts'
import { imageOf } from '../../support/zone-lines.ts'
import { question } from '../../support/zone-names.ts'
import { type Case, run, SOA_ORG, steerer, ZONES } from './answer-stage.ts'

const APEX_NS = ['example.org. 300 NS ns1.example.org.', 'example.org. 300 NS ns.example.net.']

const APEX_NS_CASES: readonly Case[] = [
  {
    name: 'positive answers carry the apex NS where that is asked for',
    given: 'www.example.org. A',
    want: [
      ['www.example.org. 300 CNAME host.example.org.', 'host.example.org. 300 A 192.0.2.10'],
      APEX_NS,
      [],
    ],
  },
  {
    name: 'they do not repeat the NS that is the answer',
    given: 'example.org. NS',
    want: [APEX_NS, [], ['ns1.example.org. 300 A 192.0.2.53']],
  },
  {
    name: 'negative answers carry the SOA alone',
    given: 'www.example.org. AAAA',
    want: [['www.example.org. 300 CNAME host.example.org.'], [SOA_ORG], []],
  },
]

t.test('apex NS in the authority section', async (t) => {
  const image = imageOf(ZONES)
  for (const c of APEX_NS_CASES) {
    t.test(c.name, async (t) => run(t, image, { apexNsInAuthority: true }, c))
  }
})

const many = Array.from({ length: 20 }, (_, i) => `big.k.example.com. 60 A 192.0.2.${i} | 2 17 3`)

const STEERED = [
  'k.example.com. 60 SOA 60',
  'k.example.com. 60 A 192.0.2.1 | 1 1',
  'k.example.com. 60 A 192.0.2.2 | 1 1',
  'two.k.example.com. 60 A 192.0.2.1 | 2 2 0',
  'two.k.example.com. 60 A 192.0.2.2 | 2 2 0',
  'two.k.example.com. 60 A 192.0.2.3 | 2 2 0',
  ...many,
  'none.k.example.com. 60 A 192.0.2.1 | 0',
  'none.k.example.com. 60 TXT 1 2',
  'cnone.k.example.com. 60 CNAME two.k.example.com. | 0',
  'chain.k.example.com. 60 CNAME none.k.example.com. | 2 1 0',
  'chain.k.example.com. 60 CNAME two.k.example.com. | 2 1 0',
  '*.w.k.example.com. 60 A 192.0.2.1 | 1 1',
  '*.w.k.example.com. 60 A 192.0.2.2 | 1 1',
  'mx.k.example.com. 60 MX 1 two.k.example.com.',
]

const STEERED_CASES: readonly Case[] = [
  {
    name: 'the apex is steered',
    given: 'k.example.com. A',
    want: [['k.example.com. 7 A 192.0.2.2'], [], []],
  },
  {
    name: 'records come in the order chosen, with the TTL chosen',
    given: 'two.k.example.com. A',
    want: [['two.k.example.com. 7 A 192.0.2.3', 'two.k.example.com. 7 A 192.0.2.1'], [], []],
  },
  {
    name: 'records of a large set are found by its offset table',
    given: 'big.k.example.com. A',
    want: [['big.k.example.com. 7 A 192.0.2.17', 'big.k.example.com. 7 A 192.0.2.3'], [], []],
  },
  {
    name: 'nothing chosen is NODATA',
    given: 'none.k.example.com. A',
    want: [[], ['k.example.com. 60 SOA 60'], []],
  },
  {
    name: 'ANY gets another type then',
    given: 'none.k.example.com. ANY',
    want: [['none.k.example.com. 60 TXT 1 2'], [], []],
  },
  {
    name: 'no CNAME chosen is NODATA',
    given: 'cnone.k.example.com. A',
    want: [[], ['k.example.com. 60 SOA 60'], []],
  },
  {
    name: 'every step of a chain is steered, and a CNAME is one record',
    given: 'chain.k.example.com. A',
    want: [
      [
        'chain.k.example.com. 7 CNAME two.k.example.com.',
        'two.k.example.com. 7 A 192.0.2.3',
        'two.k.example.com. 7 A 192.0.2.1',
      ],
      [],
      [],
    ],
  },
  {
    name: 'a wildcard is steered',
    given: 'q.w.k.example.com. A',
    want: [['q.w.k.example.com. 7 A 192.0.2.2'], [], []],
  },
  {
    name: 'additional addresses are steered',
    given: 'mx.k.example.com. MX',
    want: [
      ['mx.k.example.com. 60 MX 1 two.k.example.com.'],
      [],
      ['two.k.example.com. 7 A 192.0.2.3', 'two.k.example.com. 7 A 192.0.2.1'],
    ],
  },
]

t.test('steered RRsets', async (t) => {
  const image = imageOf(STEERED)
  for (const c of STEERED_CASES) t.test(c.name, async (t) => run(t, image, {}, c))

  t.test('without a steerer they are served whole', async (t) => {
    const answerer = new ZoneAnswerer(image.reader())
    const query = question('two.k.example.com.', 1)
    const response = new Response()
    answerer.answer(query, response)
    t.equal(response.count, 3)
    t.equal(response.scopeBits, 0)
  })

  t.test('the scope that the steerer sets stays', async (t) => {
    const query = question('two.k.example.com.', 1)
    const response = new Response()
    new ZoneAnswerer(image.reader(), steerer).answer(query, response)
    t.equal(response.scopeBits, 24)
  })
})
