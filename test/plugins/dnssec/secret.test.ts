import t, { type Test } from 'tap'
import { isObject, textOf } from '../../../src/kube/api.ts'
import { dnssec } from '../../../src/plugins/dnssec/setup.ts'
import { ZONE_SIGNING } from '../../../src/signing/registry.ts'
import type { ZoneKeys } from '../../../src/signing/zone-keys.ts'
import { type ServedApi, serveApi } from '../../support/served-api.ts'
import { FakeTimers, SetUp } from '../../support/setup.ts'
import { until } from '../../support/until.ts'
import { wire } from '../../support/zone-names.ts'

const SECRETS = { group: '', version: 'v1', plural: 'secrets' }
const LEASES = { group: 'coordination.k8s.io', version: 'v1', plural: 'leases' }
const ZONE = wire('example.org.')

/** Servers with one Secret. */
class Site {
  readonly served: ServedApi
  readonly timers = new FakeTimers()
  readonly #t: Test

  private constructor(t: Test, served: ServedApi) {
    this.#t = t
    this.served = served
  }

  static async open(t: Test): Promise<Site> {
    const site = new Site(t, await serveApi(t))
    site.putSecret()
    return site
  }

  putSecret(): void {
    const metadata = { namespace: 'dns', name: 'keys' }
    this.served.api.put(SECRETS, { kind: 'Secret', apiVersion: 'v1', metadata })
  }

  server(name: string): SetUp {
    const { timers } = this
    const lines = `dnssec {\nkeys secret dns/keys\nkubeconfig ${this.served.kubeconfig(name)}\n}`
    const server = new SetUp(dnssec, lines, undefined, { timers })
    this.#t.teardown(() => server.stop())
    return server
  }

  /** Lets time pass until that is so. */
  async until(isSo: () => boolean, what: string): Promise<void> {
    await until(async () => {
      await this.timers.advance(2000)
      return isSo()
    }, what)
  }

  get keyNames(): string[] {
    const { data = {} } = this.served.api.all(SECRETS).get('dns/keys') ?? {}
    return isObject(data) ? Object.keys(data).filter((name) => name.endsWith('.key')) : []
  }

  get holder(): string {
    return textOf(this.served.api.all(LEASES).get('dns/keys')?.spec, 'holderIdentity')
  }

  /** Another process holds the lease, and renews it each time that this is called. */
  holdLease(): void {
    this.served.api.put(LEASES, {
      kind: 'Lease',
      apiVersion: 'coordination.k8s.io/v1',
      metadata: { namespace: 'dns', name: 'keys' },
      spec: { holderIdentity: 'another', leaseDurationSeconds: 3600 },
    })
  }
}

function keysOf({ block }: SetUp): ZoneKeys | undefined {
  return block.shared.find(ZONE_SIGNING)!.of(ZONE)!.keys.find(ZONE)
}

const unreadiness = ({ readiness }: SetUp): string => readiness.map(({ check }) => check()).join()

t.test('of several servers, the holder of the lease makes the keys', async (t) => {
  const site = await Site.open(t)
  const [one, other] = [site.server('one'), site.server('other')]
  await Promise.all([one.start(), other.start()])
  await site.until(() => [one, other].every((server) => keysOf(server)), 'keys')
  t.equal(site.keyNames.length, 1)
  t.strictSame(keysOf(one)?.dnskeys, keysOf(other)?.dnskeys)
  t.strictSame([one, other].map(unreadiness), ['', ''])
  t.strictSame([one.problemText(), other.problemText()], ['', ''])
  const { holder } = site
  t.not(holder, '')

  const reloaded = site.server('one')
  await reloaded.start()
  t.strictSame(keysOf(reloaded)?.dnskeys, keysOf(one)?.dnskeys)
  await Promise.all([one.stop(), reloaded.stop()])
  await other.stop()
  t.equal(site.holder, '', 'the lease is released')
  const { api } = site.served
  t.equal(api.writes.filter((write) => write.startsWith('POST leases')).length, 1)
  t.equal(site.keyNames.length, 1)
})

t.test('without the lease, a server waits and says for what', async (t) => {
  const site = await Site.open(t)
  site.holdLease()
  const server = site.server('one')
  await server.start()
  t.equal(keysOf(server), undefined)
  await site.until(() => /another holds/.test(unreadiness(server)), 'the holder')
  t.equal(
    unreadiness(server),
    'no usable keys for example.org.: another holds Lease dns/keys',
    'no fault',
  )
  t.equal(server.problemText(), '')
  t.strictSame(site.keyNames, [])
  const leader = site.server('two')
  site.served.api.drop(LEASES, 'dns/keys')
  await leader.start()
  await site.until(() => keysOf(server) !== undefined, 'keys')
  t.equal(unreadiness(server), '')
  t.equal(site.keyNames.length, 1)
})

t.test('faults at the start', async (t) => {
  const site = await Site.open(t)
  const { api } = site.served
  const isOf = (plural: string, path: string): boolean => path.includes(`/${plural}`)
  api.drop(SECRETS, 'dns/keys')
  const missing = site.server('missing')
  const create = /kubectl create secret generic -n dns keys/
  await t.rejects(missing.start(), { name: 'InputError', message: create })
  const checked = await missing.check()
  t.match(checked.faults, [create])
  t.match(checked.faults[0], /^Corefile:2: /)
  await missing.stop()
  site.putSecret()

  api.refuse = ({ path }) => (isOf('secrets', path) ? 403 : undefined)
  const forbidden = site.server('forbidden')
  await t.rejects(forbidden.start(), {
    message: /add the rule {apiGroups: \[""\], resources: \[secrets\], resourceNames: \[keys\]/,
  })
  await forbidden.stop()

  const reading = site.server('reading')
  api.refuse = ({ path, method }) => (isOf('secrets', path) && method === 'PUT' ? 403 : undefined)
  await reading.start()
  await site.until(() => /can't change Secret dns\/keys/.test(reading.problemText()), 'fault')
  t.match(unreadiness(reading), /can't change Secret dns\/keys.*; add the rule/)
  await reading.stop()

  const leaseless = site.server('leaseless')
  api.refuse = ({ path }) => (isOf('leases', path) ? 403 : undefined)
  await leaseless.start()
  await site.until(() => leaseless.problemText() !== '', 'fault')
  t.match(leaseless.problemText(), /^Lease dns\/keys: .*needs get, create and update of leases$/)
  t.match(unreadiness(leaseless), /Lease dns\/keys/)
  await leaseless.stop()

  const early = site.server('early')
  api.refuse = () => 503
  await early.start()
  t.match(unreadiness(early), /can't read Secret dns\/keys: .*503/)
  api.refuse = () => undefined
  await site.until(() => keysOf(early) !== undefined, 'keys')
  t.equal(unreadiness(early), '')
  await site.until(() => early.problemText() === '', 'no faults')
  await early.stop()
})

t.test('a Secret that disappears: the zone stays signed', async (t) => {
  const site = await Site.open(t)
  const server = site.server('one')
  await server.start()
  await site.until(() => keysOf(server) !== undefined, 'keys')
  const keys = keysOf(server)
  const backup = site.served.api.all(SECRETS).get('dns/keys')!
  site.served.api.drop(SECRETS, 'dns/keys')
  await site.until(() => /does not exist; create it/.test(server.problemText()), 'fault')
  t.equal(keysOf(server), keys)
  t.equal(unreadiness(server), '')
  site.putSecret()
  await site.until(() => /has lost the state of the rolls/.test(server.problemText()), 'fault')
  t.equal(keysOf(server), keys)
  t.strictSame(site.keyNames, [])
  site.served.api.put(SECRETS, backup)
  await site.until(() => server.problemText() === '', 'no faults')
  t.equal(keysOf(server), keys)
})

t.test('check reads the Secret, and makes nothing', async (t) => {
  const site = await Site.open(t)
  const server = site.server('one')
  const read: string[] = []
  t.strictSame((await server.check((line) => read.push(line))).faults, [])
  t.strictSame(read, ['keys of example.org.: 0'])
  t.strictSame(site.served.api.writes, [])
  const inPod = new SetUp(dnssec, 'dnssec {\nkeys secret dns/keys\n}')
  t.strictSame((await inPod.check((line) => read.push(line))).faults, [])
  t.equal(read.length, 1)
  await t.rejects(inPod.start(), { message: /not in a Kubernetes cluster/ })
})
