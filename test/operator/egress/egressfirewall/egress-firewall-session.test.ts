import fc from 'fast-check'
import t, { type Test } from 'tap'
import { Random } from '../../../../src/base/random.ts'
import { createLogger } from '../../../../src/base/telemetry/log.ts'
import { MetricsRegistry } from '../../../../src/base/telemetry/metrics.ts'
import { resolverObjectName } from '../../../../src/egress/policies/openshift/object-name.ts'
import { type ApiObject, textOf } from '../../../../src/kube/api.ts'
import type { Controller } from '../../../../src/operator/controller.ts'
import { createEgressFirewallController } from '../../../../src/operator/egress/egressfirewall/egress-firewall-controller.ts'
import {
  DNS_NAME_RESOLVERS,
  EGRESS_FIREWALLS,
  NAME_KINDS,
  type NameKind,
} from '../../../../src/operator/egress/resources.ts'
import { turns } from '../../../support/api-double.ts'
import { eventRecorder } from '../../../support/event-recorder.ts'
import { MemoryApi } from '../../../support/memory-api.ts'
import { FakeClock, FakeTimers } from '../../../support/setup.ts'

const NAMESPACE = 'ovn-kubernetes'
const WWW = 'www.example.com.'
const EVENTS = { group: 'events.k8s.io', version: 'v1', plural: 'events' }

class Bench {
  readonly api = new MemoryApi()
  readonly registry = new MetricsRegistry()
  readonly lines: string[] = []
  mayWrite = true
  readonly #clock = new FakeClock()
  readonly #timers = new FakeTimers()
  readonly #log = createLogger(
    'operator',
    (line) => this.lines.push(line),
    () => true,
  )
  readonly #controllers: Controller[] = []

  readonly nameKind: NameKind

  constructor(t: Test, nameKind: NameKind = NAME_KINDS[0]) {
    this.nameKind = nameKind
    t.teardown(async () => {
      for (const controller of this.#controllers) await controller.end()
    })
  }

  start(): Controller {
    const env = {
      api: this.api,
      namespaces: ['elsewhere'],
      log: this.#log,
      clock: this.#clock,
      timers: this.#timers,
      random: new Random(7),
    }
    const controller = createEgressFirewallController(
      {
        ...env,
        events: eventRecorder(env),
        registry: this.registry,
        mayWrite: () => this.mayWrite,
      },
      { namespace: NAMESPACE, nameKind: this.nameKind },
    )
    this.#controllers.push(controller)
    controller.begin()
    return controller
  }

  firewall(namespace: string, ...dnsNames: readonly string[]): void {
    const egress = dnsNames.map((dnsName) => ({ type: 'Allow', to: { dnsName } }))
    this.api.put(EGRESS_FIREWALLS, { metadata: { namespace, name: 'default' }, spec: { egress } })
  }

  resolver(name: string, dnsName: string): void {
    this.api.put(this.nameKind.resource, {
      metadata: { namespace: NAMESPACE, name },
      spec: { name: dnsName },
    })
  }

  /** Lets watches, timers and writes settle. */
  async settle(): Promise<void> {
    for (let i = 0; i < 6; i++) {
      await turns(30)
      this.#clock.pass(2000)
      await this.#timers.advance(2000)
    }
    await turns(30)
  }

  /** `object dnsName` of the objects that there are. */
  get resolvers(): readonly string[] {
    return [...this.api.all(this.nameKind.resource).values()].map(textOfResolver).sort()
  }
}

function textOfResolver({ metadata, spec }: ApiObject): string {
  return `${textOf(metadata, 'name')} ${textOf(spec, 'name')}`
}

const made = (dnsName: string): string => `${resolverObjectName(dnsName)} ${dnsName}`

/** The cases of OVN-Kubernetes' own test of its cluster manager. */
const LIFECYCLE: {
  name: string
  before: (bench: Bench) => void
  change?: (bench: Bench) => void
  want: readonly string[]
}[] = [
  {
    name: 'an object with any name is adopted at the start',
    before: (bench) => {
      bench.firewall('a', 'www.example.com')
      bench.resolver('dns-example', WWW)
    },
    want: [`dns-example ${WWW}`],
  },
  {
    name: 'an object that is not used is deleted at the start',
    before: (bench) => bench.resolver('dns-example', WWW),
    want: [],
  },
  {
    name: 'an object for an existing firewall is created at the start',
    before: (bench) => bench.firewall('a', 'www.example.com'),
    want: [made(WWW)],
  },
  {
    name: 'an object for a new firewall is created',
    before: () => {},
    change: (bench) => bench.firewall('a', 'www.example.com'),
    want: [made(WWW)],
  },
  {
    name: 'it is deleted with the firewall',
    before: (bench) => bench.firewall('a', 'www.example.com'),
    change: (bench) => bench.api.drop(EGRESS_FIREWALLS, 'a/default'),
    want: [],
  },
  {
    name: 'another name in the firewall is another object',
    before: (bench) => bench.firewall('a', 'www.example.com'),
    change: (bench) => bench.firewall('a', 'www.test.com'),
    want: [made('www.test.com.')],
  },
  {
    name: 'an object that a user deletes is created again',
    before: (bench) => bench.firewall('a', 'www.example.com'),
    change: (bench) => {
      bench.api.drop(bench.nameKind.resource, `${NAMESPACE}/${resolverObjectName(WWW)}`)
    },
    want: [made(WWW)],
  },
  {
    name: 'a second object for a name is deleted',
    before: (bench) => bench.firewall('a', 'www.example.com'),
    change: (bench) => bench.resolver('additional', WWW),
    want: [made(WWW)],
  },
  {
    name: 'a name that another namespace uses keeps its object',
    before: (bench) => {
      bench.firewall('a', 'www.example.com', '*.example.com')
      bench.firewall('b', 'WWW.example.com.')
    },
    change: (bench) => bench.api.drop(EGRESS_FIREWALLS, 'a/default'),
    want: [made(WWW)],
  },
  {
    name: 'an object for a name that no firewall uses is deleted',
    before: (bench) => bench.firewall('a', 'www.example.com'),
    change: (bench) => bench.resolver('additional', 'other.example.com.'),
    want: [made(WWW)],
  },
]

for (const nameKind of NAME_KINDS) {
  t.test(`the lifecycle of objects: ${nameKind.kind}`, async (t) => {
    for (const { name, before, change, want } of LIFECYCLE) {
      await t.test(name, async (t) => {
        const bench = new Bench(t, nameKind)
        before(bench)
        bench.start()
        await bench.settle()
        change?.(bench)
        await bench.settle()
        t.strictSame(bench.resolvers, [...want].sort())
        const { group, version } = nameKind.resource
        for (const { kind, apiVersion } of bench.api.all(nameKind.resource).values()) {
          t.match([kind, apiVersion], [kind && nameKind.kind, apiVersion && `${group}/${version}`])
        }
        for (const other of NAME_KINDS) {
          if (other !== nameKind) t.equal(bench.api.all(other.resource).size, 0)
        }
      })
    }
  })
}

t.test('an adopted object stays although an older-looking one comes', async (t) => {
  const bench = new Bench(t)
  bench.firewall('a', 'www.example.com')
  bench.resolver('mine', WWW)
  bench.start()
  await bench.settle()
  const metadata = { creationTimestamp: '1970-01-01T00:00:00Z', namespace: NAMESPACE, name: 'aaa' }
  bench.api.put(DNS_NAME_RESOLVERS, { metadata, spec: { name: WWW } })
  await bench.settle()
  t.strictSame(bench.resolvers, [`mine ${WWW}`])
})

t.test('an object that is being deleted is replaced when it is gone', async (t) => {
  const bench = new Bench(t)
  bench.firewall('a', 'www.example.com')
  const name = resolverObjectName(WWW)
  const metadata = { namespace: NAMESPACE, name, deletionTimestamp: '2026-01-01T00:00:00Z' }
  bench.api.put(DNS_NAME_RESOLVERS, { metadata, spec: { name: WWW } })
  bench.start()
  await bench.settle()
  t.strictSame(bench.api.writes, [])
  bench.api.drop(DNS_NAME_RESOLVERS, `${NAMESPACE}/${name}`)
  await bench.settle()
  t.strictSame(bench.api.writes, [`POST dnsnameresolvers ${name}`])
})

t.test('an object whose name another DNS name has gets the next name', async (t) => {
  const bench = new Bench(t)
  const other = 'other.example.com.'
  bench.firewall('a', 'www.example.com', 'other.example.com')
  bench.resolver(resolverObjectName(WWW), other)
  bench.start()
  await bench.settle()
  t.strictSame(
    bench.resolvers,
    [`${resolverObjectName(WWW, 1)} ${WWW}`, `${resolverObjectName(WWW)} ${other}`].sort(),
  )
})

t.test('nothing is deleted before all firewalls are listed', async (t) => {
  const bench = new Bench(t)
  bench.firewall('a', 'www.example.com')
  bench.resolver('dns-example', WWW)
  bench.resolver('unused', 'other.example.com.')
  bench.api.refuse = ({ path }) => (path.includes('egressfirewalls') ? 403 : undefined)
  const controller = bench.start()
  await bench.settle()
  t.match(controller.reason, /egressfirewalls.*needs get, list and watch/)
  t.strictSame(bench.api.writes, [])
  bench.api.refuse = () => undefined
  await bench.settle()
  t.strictSame(bench.resolvers, [`dns-example ${WWW}`])
  t.equal(controller.reason, '')
})

t.test('an invalid name leaves the object without names, and is reported', async (t) => {
  const bench = new Bench(t)
  bench.firewall('a', 'www.example.com')
  bench.start()
  await bench.settle()
  bench.firewall('a', 'www.example.com', 'com')
  await bench.settle()
  t.strictSame(bench.resolvers, [])
  const note = 'spec.egress[1].to.dnsName: invalid name "com"; no name of this object is resolved'
  t.equal(
    bench.lines.filter((line) => line.includes(`egressfirewall a/default: ${note}`)).length,
    1,
  )
  const [event] = [...bench.api.all(EVENTS).values()]
  t.match(event, {
    type: 'Warning',
    reason: 'InvalidDNSName',
    note,
    regarding: { kind: 'EgressFirewall', namespace: 'a', name: 'default' },
  })
  t.match(await bench.registry.print(), /sextant_egressfirewall_faulty_objects 1\n/)
  bench.firewall('a', 'www.example.com', 'example.com')
  await bench.settle()
  t.strictSame(bench.resolvers, [made(WWW), made('example.com.')].sort())
  t.match(await bench.registry.print(), /sextant_egressfirewall_faulty_objects 0\n/)
  t.match(await bench.registry.print(), /sextant_egressfirewall_names 2\n/)
})

t.test('a failed write is done again', async (t) => {
  const bench = new Bench(t)
  bench.start()
  await bench.settle()
  bench.api.refuse = ({ method }) => (method === 'POST' ? 500 : undefined)
  bench.firewall('a', 'www.example.com')
  await bench.settle()
  t.strictSame(bench.resolvers, [])
  bench.api.refuse = () => undefined
  await bench.settle()
  t.strictSame(bench.resolvers, [made(WWW)])
  bench.api.refuse = ({ method }) => (method === 'DELETE' ? 503 : undefined)
  bench.api.drop(EGRESS_FIREWALLS, 'a/default')
  await bench.settle()
  t.strictSame(bench.resolvers, [made(WWW)])
  bench.api.refuse = () => undefined
  await bench.settle()
  t.strictSame(bench.resolvers, [])
})

t.test('a process that is not the leader writes nothing', async (t) => {
  const bench = new Bench(t)
  bench.firewall('a', 'www.example.com')
  bench.resolver('unused', 'other.example.com.')
  bench.mayWrite = false
  const controller = bench.start()
  await bench.settle()
  t.strictSame(bench.api.writes, [])
  await controller.end()
  bench.mayWrite = true
  controller.begin()
  await bench.settle()
  t.strictSame(bench.resolvers, [made(WWW)])
  await controller.end()
  bench.firewall('a')
  await bench.settle()
  t.strictSame(bench.resolvers, [made(WWW)])
})

const DNS_NAMES = ['a.example.com', 'b.example.com', '*.example.com', 'com']
type Step =
  | { readonly kind: 'firewall'; readonly namespace: string; readonly names: readonly string[] }
  | { readonly kind: 'no firewall'; readonly namespace: string }
  | { readonly kind: 'resolver'; readonly name: string; readonly dnsName: string }
  | { readonly kind: 'no resolver'; readonly index: number }
  | { readonly kind: 'cut' | 'settle' | 'turn' | 'restart' }

const namespaces = fc.constantFrom('a', 'b', 'c')
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    kind: fc.constant('firewall' as const),
    namespace: namespaces,
    names: fc.array(fc.constantFrom(...DNS_NAMES), { maxLength: 3 }),
  }),
  fc.record({ kind: fc.constant('no firewall' as const), namespace: namespaces }),
  fc.record({
    kind: fc.constant('resolver' as const),
    name: fc.constantFrom('x', 'y', ...DNS_NAMES.map((name) => resolverObjectName(`${name}.`))),
    dnsName: fc.constantFrom(...DNS_NAMES.map((name) => `${name}.`)),
  }),
  fc.record({ kind: fc.constant('no resolver' as const), index: fc.nat(4) }),
  fc.record({ kind: fc.constantFrom('cut', 'settle', 'turn', 'restart') }),
)

t.test('any order of changes leads to one object for each name in use', async (t) => {
  const run = async (steps: readonly Step[]): Promise<void> => {
    const bench = new Bench(t)
    let controller = bench.start()
    const wanted = new Map<string, readonly string[]>()
    for (const one of steps) {
      if (one.kind === 'firewall') {
        wanted.set(one.namespace, one.names.includes('com') ? [] : one.names)
        bench.firewall(one.namespace, ...one.names)
      } else if (one.kind === 'no firewall') {
        wanted.delete(one.namespace)
        bench.api.drop(EGRESS_FIREWALLS, `${one.namespace}/default`)
      } else if (one.kind === 'resolver') {
        // An object's DNS name never changes.
        bench.api.drop(DNS_NAME_RESOLVERS, `${NAMESPACE}/${one.name}`)
        bench.resolver(one.name, one.dnsName)
      } else if (one.kind === 'no resolver') {
        const key = [...bench.api.all(DNS_NAME_RESOLVERS).keys()][one.index]
        if (key !== undefined) bench.api.drop(DNS_NAME_RESOLVERS, key)
      } else if (one.kind === 'restart') {
        await controller.end()
        controller = bench.start()
      } else if (one.kind === 'cut') bench.api.cut()
      else if (one.kind === 'settle') await bench.settle()
      else await turns(3)
    }
    await bench.settle()
    const names = new Set([...wanted.values()].flat().map((name) => `${name}.`))
    const found = bench.resolvers.map((text) => text.split(' ')[1])
    await controller.end()
    if (found.sort().join() !== [...names].sort().join()) {
      throw new Error(`want ${[...names]}, found ${found}\n${bench.lines.join('\n')}`)
    }
  }
  await fc.assert(fc.asyncProperty(fc.array(step, { maxLength: 25 }), run), { numRuns: 60 })
  t.pass()
})
