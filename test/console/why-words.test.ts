import t from 'tap'
import type {
  WhyEndpoint,
  WhyExplanation,
} from '../../src/api/console/client/views/why/explanation.ts'
import { noteOf, questionOf, seedOf } from '../../src/api/console/client/views/why/question.ts'
import {
  printCandidates,
  printDraws,
  printFailover,
  printFate,
  printNearer,
  printOrigin,
  printOutcome,
  printPlace,
  printResult,
  printRung,
  printScope,
  printServer,
  printStep,
  printStored,
} from '../../src/api/console/client/views/why/words.ts'
import type { Explanation } from '../../src/explain/explanation.ts'
import { GEO_RUNGS } from '../../src/geo/code.ts'

/** The types of the page describe the explanations of the server. */
const asShown = (explanation: Explanation): WhyExplanation => explanation

const FIELDS = { name: 'a.example.', type: '', client: '', resolver: '', subnet: '', seed: '' }

t.test('a question of the fields', async (t) => {
  const table: readonly (readonly [Partial<typeof FIELDS>, object | undefined])[] = [
    [{}, undefined],
    [{ name: '', client: '192.0.2.1' }, undefined],
    [{ client: '192.0.2.1' }, { name: 'a.example.', type: 'A', client: '192.0.2.1', seed: 1 }],
    [
      { client: '192.0.2.1', resolver: '192.0.2.53', type: 'AAAA' },
      { name: 'a.example.', type: 'AAAA', client: '192.0.2.53', seed: 1 },
    ],
    [
      { resolver: '192.0.2.53', subnet: '198.51.100.0/24', seed: '7' },
      { name: 'a.example.', type: 'A', client: '192.0.2.53', subnet: '198.51.100.0/24', seed: 7 },
    ],
    [
      { subnet: '2001:db8::/56' },
      { name: 'a.example.', type: 'A', subnet: '2001:db8::/56', seed: 1 },
    ],
  ]
  for (const [fields, question] of table) {
    t.strictSame(questionOf({ ...FIELDS, ...fields }), question, JSON.stringify(fields))
  }
  for (const [seed, value] of [
    ['', 1],
    ['x', 1],
    ['-1', 1],
    ['4294967295', 4294967295],
    ['4294967296', 1],
  ] as const) {
    t.equal(seedOf({ ...FIELDS, seed }), value, seed)
  }
  t.match(noteOf({ ...FIELDS, client: '192.0.2.1', resolver: '192.0.2.53' }), /sees the resolver/)
  t.equal(noteOf({ ...FIELDS, client: '192.0.2.1', resolver: '192.0.2.53', subnet: '::/0' }), '')
})

const EXPLANATION: WhyExplanation = {
  name: 'a.example.',
  type: 'A',
  seed: 1,
  client: { address: '192.0.2.0/24', source: 'subnet', reason: 'it has one' },
  server: { address: 'dns://:53', zone: 'example.', view: '', directive: 'kuadrant' },
  steps: [],
  end: { kind: 'answer', text: 'the answer' },
  answer: [],
  rcode: 'NOERROR',
}

t.test('the words of an explanation', async (t) => {
  t.type(asShown, Function)
  const other = (changes: Partial<WhyExplanation>): WhyExplanation => ({
    ...EXPLANATION,
    ...changes,
  })
  t.equal(printResult(EXPLANATION), 'a.example. A for 192.0.2.0/24: NOERROR')
  t.match(printResult(other({ rcode: '' })), /no reply$/)
  t.match(
    printResult(other({ rcode: '', end: { kind: 'other directive', text: '' } })),
    /not known$/,
  )
  t.equal(printScope(EXPLANATION), '')
  t.match(
    printScope(other({ scope: { bits: 0, reason: 'no choice' } })),
    /all clients \(scope \/0\): no choice/,
  )
  t.match(printScope(other({ scope: { bits: 24, reason: 'x' } })), /same first 24 bits/)
  t.equal(printStored(EXPLANATION), '')
  t.match(
    printStored(other({ stored: { ageSeconds: 5, lifetimeSeconds: 65 } })),
    /5 s old, and valid for 1 min/,
  )
  t.match(printStored(other({ stored: { ageSeconds: 70, lifetimeSeconds: 65 } })), /has expired/)
  t.match(
    printServer(EXPLANATION),
    /example\. at dns:\/\/:53 receives the query; the directive kuadrant answers/,
  )
  const none = { address: '', zone: '', view: '', directive: '' }
  t.equal(printServer(other({ server: none })), 'No server block serves the name.')
  t.match(printPlace(undefined), /did not look up/)
  const place = {
    net: '',
    asn: '',
    subdivisions: ['DE-BE'],
    country: 'DE',
    continent: 'GEO-EU',
    coordinates: '',
  }
  t.equal(printPlace({ ...place, databases: [] }), 'The client is in DE-BE, DE, GEO-EU.')
  t.match(
    printPlace({ ...place, subdivisions: [], country: '', continent: '', databases: [] }),
    /unknown/,
  )
  const step = { rdata: [], ttlSeconds: 60, ttlReason: '', notes: [], type: 'A', zone: 'example.' }
  t.equal(
    printStep({ ...step, name: 'A.example.', owner: 'a.example.' }),
    'A.example. A (zone example.)',
  )
  t.equal(
    printStep({ ...step, name: 'b.example.', owner: '*.example.', serial: 5 }),
    'b.example. A, from *.example. (zone example., serial 5)',
  )
})

const ENDPOINT: WhyEndpoint = {
  record: 'ns/app',
  origin: { kind: 'manifest', file: 'records/app.yaml', line: 7 },
  setIdentifier: 'eu-1',
  codes: ['GEO-EU'],
  location: '',
  weight: 100,
  targets: ['192.0.2.1'],
  out: [],
  dropped: '',
  share: 0.25,
  isChosen: false,
}

t.test('the words of an endpoint', async (t) => {
  const at = (changes: Partial<WhyEndpoint>): WhyEndpoint => ({ ...ENDPOINT, ...changes })
  t.equal(printOrigin(ENDPOINT), 'ns/app records/app.yaml:7')
  t.equal(printOrigin(at({ record: '', origin: { kind: 'corefile' } })), 'Corefile')
  t.equal(printOrigin(at({ record: '', origin: { kind: 'default' } })), 'default of the server')
  t.equal(printOrigin(at({ origin: { kind: 'cluster' } })), 'ns/app cluster')
  const peers = [{ peer: '192.0.2.53:53', site: 'rome', ageSeconds: 2 }]
  t.equal(
    printOrigin(at({ origin: { kind: 'peers', site: 'rome', peers } })),
    'ns/app 192.0.2.53:53 of rome, 2 s ago',
  )
  t.equal(printOrigin(at({ origin: { kind: 'peers', site: 'rome', peers: [] } })), 'ns/app of rome')
  t.equal(printFate(at({ isChosen: true })), 'in this answer')
  t.equal(printFate(at({ dropped: 'down' })), 'dropped: down')
  t.equal(printFate(ENDPOINT), 'possible, not drawn')
  t.equal(printFate(at({ share: 0 })), 'not for this client')
})

t.test('the words of a choice', async (t) => {
  const endpoints = [ENDPOINT, { ...ENDPOINT, setIdentifier: '', location: '1,2', distanceKm: 12 }]
  const rung = { rung: 'country', code: 'DE', outcome: 'decided', candidates: [] }
  const candidates = [
    { endpoint: 0, weight: 50, share: 0.25, isStandby: false, rank: 2 },
    { endpoint: 1, weight: 0, share: 0, isStandby: true },
    { endpoint: 9, share: 0.75, isStandby: false },
  ]
  t.equal(
    printCandidates({ ...rung, candidates }, endpoints),
    'eu-1 25 % (weight 50 of 100, slow start, rank 2), endpoint 2 (weight 0, standby), endpoint 10 75 %',
  )
  const many = Array.from({ length: 30 }, () => candidates[1]!)
  t.match(printCandidates({ ...rung, candidates: many }, endpoints), /, 10 more$/)
  t.equal(printRung({ ...rung, nearest: '1,2' }), 'country DE nearest 1,2')
  t.equal(printRung({ ...rung, rung: 'nearest', code: '', nearest: '1,2' }), 'nearest 1,2')
  t.equal(printOutcome({ ...rung, outcome: 'of a later version' }), 'of a later version')
  t.strictSame(printNearer({ ...rung, nearer: [{ endpoint: 1, reason: 'down' }] }, endpoints), [
    'endpoint 2 at 1,2 (12 km) is nearer, but does not serve: down',
  ])
  const choice = { rungs: [], decided: 0, isSticky: false }
  t.match(printDraws(choice, endpoints), [/one outcome is possible/])
  t.match(printDraws({ ...choice, draw: { value: 3, below: 10 } }, endpoints), [
    /draw is 3 of 0 to 9/,
  ])
  t.match(printDraws({ ...choice, stickyPrefix: '192.0.2.0/24' }, endpoints), [
    /192.0.2.0\/24 get the same/,
  ])
  const picks = [{ endpoint: 0, draw: { value: 0, below: 2 } }, { endpoint: 1 }]
  t.match(printDraws({ ...choice, picks }, endpoints), [
    /^1 of 2, eu-1: the draw is 0/,
    /^2 of 2, endpoint 2/,
  ])
  t.equal(printFailover(choice), '')
  const failover = { order: ['eu', 'us'], serving: 'us', isClosed: false }
  t.equal(printFailover({ ...choice, failover }), 'Failover list eu, us: us serves.')
  t.match(
    printFailover({ ...choice, failover: { ...failover, serving: '', isClosed: true } }),
    /exhausted, and all-down is closed/,
  )
  t.ok(Object.values(GEO_RUNGS).every((name) => printRung({ ...rung, rung: name }) !== ''))
})
