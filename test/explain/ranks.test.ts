import t, { type Test } from 'tap'
import { Random } from '../../src/base/random.ts'
import { Protocol } from '../../src/dns/message/query.ts'
import { scanName } from '../../src/dns/name/name.ts'
import { scanAddress } from '../../src/dns/text/address.ts'
import type { ExplainRequest } from '../../src/explain/explain-request.ts'
import { Explainer } from '../../src/explain/explainer.ts'
import type { ExplainedEndpoint, ExplainedStep } from '../../src/explain/explanation.ts'
import { printExplanation } from '../../src/explain/print.ts'
import { ASKED, loadText, loadWorld } from './worlds.ts'

// Long: thousands of random zones.

/** Worlds whose zone is sticky: see `ZONES`. */
const WORLDS = [1, 5, 9, 13, 17]
const QUERIES = 400
const TYPES = [1, 28, 15]

function randomRequest(random: Random): ExplainRequest {
  const network = `${1 + random.below(7)}.${random.below(256)}`
  const client = random.below(5) === 0 ? `2001:db8:0:${random.below(9)}00::1` : `10.${network}.1`
  return {
    name: scanName(ASKED[random.below(ASKED.length)]!)!,
    type: TYPES[random.below(TYPES.length)]!,
    source: scanAddress(client)!,
    subnet: undefined,
    seed: 1,
    protocol: Protocol.Udp,
  }
}

/** Identifies an endpoint in two worlds of the same records. */
function keyOf({ record, setIdentifier, targets }: ExplainedEndpoint): string {
  return JSON.stringify([record, setIdentifier, targets])
}

/** The endpoints of a rank, sorted. */
function endpointsOf({ choice, endpoints }: ExplainedStep, rank: number): ExplainedEndpoint[] {
  const { candidates } = choice!.rungs[choice!.decided]!
  return candidates
    .filter((candidate) => candidate.rank === rank)
    .map(({ endpoint }) => endpoints![endpoint]!)
}

const keysOf = (endpoints: readonly ExplainedEndpoint[]): string =>
  endpoints.map(keyOf).sort().join(' ')

/** A sticky choice, and the endpoint whose drain moves the client. */
interface Sample {
  readonly request: ExplainRequest
  readonly owner: string
  readonly winner: ExplainedEndpoint
  readonly next: string
}

async function explainerOf(t: Test, world: number, drains = ''): Promise<Explainer> {
  const { instance } = await loadWorld(t, world, { drains })
  const explainer = await Explainer.open(instance)
  t.teardown(() => explainer.close())
  return explainer
}

function sample(explainer: Explainer, request: ExplainRequest): Sample | undefined {
  const [step] = explainer.explain(request).steps
  if (step?.choice?.isSticky !== true) return undefined
  const [winner, ...others] = endpointsOf(step, 1)
  const next = endpointsOf(step, 2)
  if (winner?.isChosen !== true || others.length > 0 || next.length === 0) {
    throw new Error(`the ranks are incomplete: ${JSON.stringify(step)}`)
  }
  const namesakes = step.endpoints!.filter((e) => e.setIdentifier === winner.setIdentifier)
  // A drain by its identifier would take others out too.
  if (namesakes.length > 1) return undefined
  return {
    ...{ request, winner, next: keysOf(next) },
    owner: step.owner.slice(0, -1),
  }
}

t.test('a drain of its endpoint moves a client to rank 2', async (t) => {
  let moved = 0
  for (const world of WORLDS) {
    await t.test(`world ${world}`, async (t) => {
      const explainer = await explainerOf(t, world)
      const random = new Random(world)
      const requests = Array.from({ length: QUERIES }, () => randomRequest(random))
      const samples = requests.flatMap((request) => sample(explainer, request) ?? [])
      // One endpoint of each owner: two drains could change the same set.
      const drained = new Map(samples.map(({ owner, winner }) => [owner, winner]))
      const lines = [...drained].map(([host, { setIdentifier: id }]) => `id:${id} host:${host}\n`)
      const after = await explainerOf(t, world, lines.join(''))
      for (const { request, owner, winner, next } of samples) {
        if (drained.get(owner)!.setIdentifier !== winner.setIdentifier) continue
        const explanation = after.explain(request)
        const chosen = explanation.steps[0]!.endpoints!.filter(({ isChosen }) => isChosen)
        if (keysOf(chosen) !== next) t.fail(printExplanation(explanation).join('\n'), { next })
        moved++
      }
    })
  }
  t.ok(moved > 100, `${moved} clients moved`)
})

const COREFILE = `k.example.com:5300 {
  root {DIR}
  kuadrant {
    manifests records
    sticky
  }
}
`

/** Each endpoint with its weight; '' = none. */
const NAMES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  standby: { a: '100', b: '100', c: '0' },
  // Without `a`, no endpoint has a weight, and all are served.
  lone: { a: '100', b: '', c: '' },
}

t.test('the text has the prefix that is hashed, and the ranks', async (t) => {
  const endpoints = Object.entries(NAMES).flatMap(([name, weights]) =>
    Object.entries(weights).map(([setIdentifier, value], i) => ({
      ...{ dnsName: `${name}.k.example.com`, recordType: 'A', setIdentifier },
      targets: [`192.0.2.${i + 1}`],
      providerSpecific: value === '' ? [] : [{ name: 'weight', value }],
    })),
  )
  const record = {
    ...{ apiVersion: 'kuadrant.io/v1alpha1', kind: 'DNSRecord', metadata: { name: 'r' } },
    spec: { rootHost: 'k.example.com', endpoints },
  }
  const directory = t.testdir({ records: { 'r.json': JSON.stringify(record) } })
  const { instance } = await loadText(t, COREFILE.replace('{DIR}', directory))
  const explainer = await Explainer.open(instance)
  t.teardown(() => explainer.close())
  const table = [
    ['standby', '192.0.2.77', 'a 50% (weight 100, rank 1), b 50% (weight 100, rank 2)'],
    ['standby', '192.0.7.77', 'a 50% (weight 100, rank 2), b 50% (weight 100, rank 1)'],
    ['lone', '192.0.2.77', 'a 29.4% (weight 100, rank 3), b 35.3% (rank 1), c 35.3% (rank 2)'],
    ['lone', '192.0.4.77', 'a 29.4% (weight 100, rank 1), b 35.3% (rank 2), c 35.3% (rank 2)'],
  ] as const
  for (const [name, client, ranks] of table) {
    const request = { ...randomRequest(new Random(1)), name: scanName(`${name}.k.example.com.`)! }
    const asked = { ...request, type: 1, source: scanAddress(client)! }
    const text = printExplanation(explainer.explain(asked)).join('\n')
    t.match(text, `draw: none: sticky, by a hash of ${client.slice(0, -2)}0/24\n`)
    t.match(text, `decided: ${ranks}`)
  }
})
