import t from 'tap'
import { scanName } from '../../src/dns/name/name.ts'
import { scanAddress } from '../../src/dns/text/address.ts'
import { Explainer } from '../../src/explain/explainer.ts'
import { printExplanation } from '../../src/explain/print.ts'
import { probeManifest } from '../support/manifest.ts'
import { loadText } from './worlds.ts'

const COREFILE = `k.example.com:5300 {
  root {DIR}
  geoip {
    net 10.1.0.0/16 52.52,13.40
    net 10.2.0.0/16 DE 52.52,13.40
    net 10.3.0.0/16 GEO-EU
  }
  kuadrant {
    manifests records
    drain drains
  }
}
`
/** A client in Berlin without a geo code, one with a geo code, and one without coordinates. */
const [BERLIN, GERMANY, EUROPE] = ['10.1.0.1', '10.2.0.1', '10.3.0.1'] as const

/** Locations, the nearest to Berlin first. */
const PLACES: Readonly<Record<string, string>> = {
  berlin: '52.52,13.40',
  prague: '50.08,14.44',
  vienna: '48.21,16.37',
  paris: '48.86,2.35',
  rome: '41.90,12.50',
  madrid: '40.42,-3.70',
  tokyo: '35.68,139.69',
}

/** `CODE weight=W default down drained`. Endpoints have the location of their name, if it is a place. */
type Endpoints = Readonly<Record<string, string>>

interface Case {
  readonly endpoints: Endpoints
  readonly failover?: string
  readonly allDown?: string
  readonly client?: string
  readonly served: string
  /** Lines of the text. */
  readonly nearer: readonly string[]
}

const DOWN = 'all its targets are down'
const DRAINED = 'drained: id:drained-* by ops: move'
const STANDBY = 'weight 0, standby'

const CASES: Readonly<Record<string, Case>> = {
  'none is nearer': {
    endpoints: { berlin: '', paris: 'down' },
    ...{ served: 'berlin', nearer: [] },
  },
  'one is down': {
    endpoints: { berlin: 'down', prague: '', tokyo: '' },
    ...{ served: 'prague', nearer: [`berlin at 52.52,13.40 (0 km): ${DOWN}`] },
  },
  'one location is left': {
    endpoints: { berlin: 'down', tokyo: '' },
    ...{ served: 'tokyo', nearer: [`berlin at 52.52,13.40 (0 km): ${DOWN}`] },
  },
  'one of each kind, the nearest first': {
    endpoints: {
      paris: 'down',
      vienna: 'weight=0',
      rome: 'weight=5',
      prague: 'drained',
      madrid: '',
    },
    served: 'rome',
    nearer: [
      `drained-prague at 50.08,14.44 (281 km): ${DRAINED}`,
      `vienna at 48.21,16.37 (523 km): ${STANDBY}`,
      `paris at 48.86,2.35 (877 km): ${DOWN}`,
    ],
  },
  'standbys alone: the nearest serves': {
    endpoints: { berlin: 'weight=0', prague: 'weight=0' },
    ...{ served: 'berlin', nearer: [] },
  },
  'a standby beside an endpoint that is down, at one location': {
    endpoints: { berlin: 'down', 'berlin-2': 'weight=0', prague: '', tokyo: '' },
    served: 'prague',
    nearer: [`berlin at 52.52,13.40 (0 km): ${DOWN}`, `berlin-2 at 52.52,13.40 (0 km): ${STANDBY}`],
  },
  'an endpoint of the location that serves is down': {
    endpoints: { berlin: 'down', 'berlin-2': '', tokyo: '' },
    ...{ served: 'berlin-2', nearer: [] },
  },
  'a default without a location serves': {
    endpoints: { berlin: 'down', prague: 'weight=0', far: 'default' },
    served: 'far',
    nearer: [`berlin at 52.52,13.40 (0 km): ${DOWN}`, `prague at 50.08,14.44 (281 km): ${STANDBY}`],
  },
  'a default with a location serves': {
    endpoints: { berlin: 'US down', prague: 'default down', vienna: 'down', rome: 'default' },
    served: 'rome',
    nearer: [`prague at 50.08,14.44 (281 km): ${DOWN}`, `vienna at 48.21,16.37 (523 km): ${DOWN}`],
  },
  'no code matches: all compete': {
    endpoints: { berlin: 'US down', prague: 'FR', vienna: 'JP' },
    ...{ served: 'prague', nearer: [`berlin at 52.52,13.40 (0 km): ${DOWN}`] },
  },
  'no code matches: an endpoint without a location serves': {
    endpoints: { berlin: 'US down', far: 'weight=1', 'far-2': 'weight=0' },
    ...{ served: 'far', nearer: [`berlin at 52.52,13.40 (0 km): ${DOWN}`] },
  },
  'another code does not compete': {
    endpoints: { berlin: 'US down', prague: 'GEO-EU down', paris: 'GEO-EU', rome: 'GEO-EU' },
    ...{ client: GERMANY, served: 'paris' },
    nearer: [`prague at 50.08,14.44 (281 km): ${DOWN}`],
  },
  'endpoints without a code do not compete inside a code': {
    endpoints: {
      ...{ berlin: 'down', 'berlin-2': 'weight=0', vienna: '' },
      ...{ paris: 'GEO-EU', rome: 'GEO-EU', prague: 'GEO-EU weight=0' },
    },
    ...{ client: GERMANY, served: 'paris' },
    nearer: [`prague at 50.08,14.44 (281 km): ${STANDBY}`],
  },
  'the client has no coordinates': {
    endpoints: { berlin: 'down', paris: '' },
    ...{ client: EUROPE, served: 'paris', nearer: [] },
  },
  'the entry of a failover list that serves': {
    endpoints: { berlin: 'GEO-EU down', prague: 'US down', paris: 'US', rome: 'US' },
    failover: 'GEO-EU: US',
    ...{ client: GERMANY, served: 'paris' },
    nearer: [`prague at 50.08,14.44 (281 km): ${DOWN}`],
  },
  'an entry of a failover list that is a set identifier': {
    endpoints: { berlin: 'GEO-EU down', prague: 'US down', paris: 'US' },
    ...{ failover: 'GEO-EU: paris', client: GERMANY, served: 'paris', nearer: [] },
  },
  'a fallback endpoint serves all clients': {
    endpoints: { berlin: 'down', tokyo: 'down' },
    ...{ allDown: 'tokyo', served: 'tokyo', nearer: [] },
  },
  'health is ignored': {
    endpoints: { berlin: 'weight=0 down', tokyo: 'weight=1 down' },
    ...{ allDown: 'open', served: 'tokyo' },
    nearer: [`berlin at 52.52,13.40 (0 km): ${STANDBY}`],
  },
}

/** The text of each case, and its answer. */
function recordOf([title, one]: [string, Case], number: number): string[] {
  const endpoints = Object.entries(one.endpoints).map(([id, words], i) => {
    const place = PLACES[id.replace(/-\d$/, '')]
    const facts = words.split(' ')
    const properties = facts.flatMap((fact) => {
      if (fact === 'default') return { name: 'geo-code', value: '*' }
      if (fact.startsWith('weight=')) return { name: 'weight', value: fact.slice(7) }
      return /^[A-Z]/.test(fact) ? { name: 'geo-code', value: fact } : []
    })
    if (place !== undefined) properties.push({ name: 'location', value: place })
    return {
      ...{ dnsName: `c${number}.k.example.com`, recordType: 'A' },
      setIdentifier: facts.includes('drained') ? `drained-${id}` : id,
      targets: [`192.0.2.${i + 1}`],
      providerSpecific: properties,
    }
  })
  const annotations = {
    ...(one.failover !== undefined && { 'sextant.io/failover': one.failover }),
    ...(one.allDown !== undefined && { 'sextant.io/all-down': one.allDown }),
  }
  const name = `c${number}`
  const record = {
    ...{ apiVersion: 'kuadrant.io/v1alpha1', kind: 'DNSRecord' },
    metadata: { name, namespace: 'n', annotations, labels: { title } },
    spec: { rootHost: 'k.example.com', endpoints },
  }
  const probes = Object.values(one.endpoints).flatMap((words, i) => {
    return words.split(' ').includes('down')
      ? [probeManifest(name, `192.0.2.${i + 1}`, false, 'n')]
      : []
  })
  return [JSON.stringify(record), ...probes]
}

t.test('the rung that decided lists what is nearer, and why it does not serve', async (t) => {
  const files = Object.entries(CASES).flatMap((entry, number) => {
    return recordOf(entry, number).map((text, i) => [`${number}-${i}.yaml`, text] as const)
  })
  const directory = t.testdir({
    records: Object.fromEntries(files),
    drains: 'id:drained-* by=ops reason=move\n',
  })
  const { instance } = await loadText(t, COREFILE.replace('{DIR}', directory))
  const explainer = await Explainer.open(instance)
  t.teardown(() => explainer.close())
  for (const [number, [name, one]] of Object.entries(CASES).entries()) {
    const explanation = explainer.explain({
      ...{ name: scanName(`c${number}.k.example.com.`)!, type: 1, seed: 1, subnet: undefined },
      source: scanAddress(one.client ?? BERLIN)!,
    })
    const lines = printExplanation(explanation)
    const text = `${name}\n${lines.join('\n')}`
    const nearer = lines.flatMap((line) => /^ {6}nearer: (.*)$/.exec(line)?.[1] ?? [])
    t.strictSame(nearer, one.nearer, text)
    const { endpoints, choice } = explanation.steps[0]!
    const chosen = endpoints!.filter(({ isChosen }) => isChosen)
    t.strictSame(
      chosen.map(({ setIdentifier }) => setIdentifier),
      [one.served],
      text,
    )
    const rung = choice?.rungs[choice.decided]
    const printed = (rung?.nearer ?? []).map(({ endpoint, reason }) => {
      const { setIdentifier, location, distanceKm } = endpoints![endpoint]!
      return `${setIdentifier} at ${location} (${distanceKm} km): ${reason}`
    })
    t.strictSame(printed, one.nearer, 'the JSON has the same')
    t.equal(rung?.nearer === undefined, one.nearer.length === 0)
    const others = (choice?.rungs ?? []).filter((other) => other !== rung)
    t.ok(others.every((other) => other.nearer === undefined))
  }
})

t.test('the order of many locations is approximate, and the text says so', async (t) => {
  // For both clients, the first three locations are the same, and they are down. The fourth is east or west.
  const down = ['0,0', '1,0', '2,0']
  const up = { east: '0,20', west: '0,-20', north: '60,0', south: '-60,0' }
  const places = [...down.map((place) => [place, place] as const), ...Object.entries(up)]
  const endpoints = places.map(([setIdentifier, location], i) => ({
    ...{ dnsName: 'many.k.example.com', recordType: 'A', setIdentifier },
    targets: [`192.0.2.${i + 1}`],
    providerSpecific: [{ name: 'location', value: location }],
  }))
  const record = {
    ...{ apiVersion: 'kuadrant.io/v1alpha1', kind: 'DNSRecord' },
    metadata: { name: 'many', namespace: 'n' },
    spec: { rootHost: 'k.example.com', endpoints },
  }
  const probes = down.map((_, i) => probeManifest('many', `192.0.2.${i + 1}`, false, 'n'))
  const directory = t.testdir({
    records: { 'r.json': JSON.stringify(record), 'probes.yaml': probes.join('') },
    drains: '',
  })
  const nets = 'net 10.1.0.0/16 -0.1,0.1\n    net 10.2.0.0/16 -0.1,-0.1\n'
  const text = COREFILE.replace('{DIR}', directory).replace(/net 10[^}]*\n/, nets)
  const { instance } = await loadText(t, text)
  const explainer = await Explainer.open(instance)
  t.teardown(() => explainer.close())
  const explanations = [BERLIN, GERMANY].map((client) => {
    const name = scanName('many.k.example.com.')!
    const question = { name, type: 1, seed: 1, subnet: undefined, source: scanAddress(client)! }
    return printExplanation(explainer.explain(question)).join('\n')
  })
  const [exact, ...approximate] = explanations.sort((a, b) => a.length - b.length)
  t.match(exact, /nearer: 2,0 at 2\.00,0\.00 \(\d+ km\): all its targets are down\n {4}whole set/)
  t.match(approximate, [
    /nearer: (east|west) .*: in service, but the order of more than 6 locations is approximate\n/,
  ])
  t.equal(approximate.length, 1)
})
