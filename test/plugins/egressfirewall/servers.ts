import type { Test } from 'tap'
import { Random } from '../../../src/base/random.ts'
import { createLogger } from '../../../src/base/telemetry/log.ts'
import { MetricsRegistry } from '../../../src/base/telemetry/metrics.ts'
import { Rcode } from '../../../src/dns/iana/rcodes.ts'
import { NameBuffer } from '../../../src/dns/name/hashed-name.ts'
import { scanName } from '../../../src/dns/name/name.ts'
import {
  DEFAULT_LIMITS,
  type Lookup,
} from '../../../src/egress/policies/openshift/resolved-names.ts'
import { NameFollower } from '../../../src/plugins/egressfirewall/name-follower.ts'
import { turns } from '../../support/api-double.ts'
import { ObjectApi } from '../../support/object-api.ts'
import { FakeClock, FakeTimers } from '../../support/setup.ts'

export const RESOLVERS = 'dnsnameresolvers'
export const WWW = 'www.example.com.'
export const GATE_MS = 50

export const spec = (name: string) => ({ spec: { name } })

/** Servers over one API, with one clock. */
export async function place(
  t: Test,
  { gateMs = 0, servers = 1, undefinedKinds = [] as readonly string[] } = {},
) {
  const api = new ObjectApi()
  for (const plural of undefinedKinds) api.undefinedKinds.add(plural)
  const clock = new FakeClock()
  const timers = new FakeTimers()
  const lines: string[] = []
  const followers = Array.from({ length: servers }, (_, i) => {
    const follower = new NameFollower({
      api: api.client(),
      namespaces: [],
      limits: DEFAULT_LIMITS,
      gateMs,
      clock,
      timers,
      random: new Random(i + 1),
      log: createLogger(
        'test',
        (line) => lines.push(line),
        () => false,
      ),
      metrics: new MetricsRegistry(),
    })
    t.teardown(() => follower.close())
    follower.start()
    return follower
  })
  /** Runs everything that waits for no more than a batch of events. */
  const settle = async (): Promise<void> => {
    await turns()
    await timers.advance(4)
    await turns()
  }
  await settle()
  const find = (server: number, lookup: Partial<Lookup>) => {
    const { dnsName = WWW } = lookup
    const name = new NameBuffer()
    const wire = scanName(dnsName)!
    name.set(wire, 0, wire.length)
    const whole = { dnsName, rcode: Rcode.NOERROR, addresses: [], nowMs: clock.now(), ...lookup }
    return followers[server]!.submit(name, whole)
  }
  const answer = (ips: readonly string[], { server = 0, ttl = 30, dnsName = WWW } = {}) => {
    return find(server, { dnsName, addresses: ips.map((ip) => ({ ip, ttlSeconds: ttl })) })
  }
  const fail = (server = 0, rcode: number = Rcode.NXDOMAIN) => find(server, { rcode })
  /** `name failures reason: ip/ttl …` */
  const shown = (name = 'www', namespace = 'a'): readonly string[] => {
    const names = api.read(RESOLVERS, namespace, name)?.status?.resolvedNames ?? []
    // biome-ignore lint/suspicious/noExplicitAny: as the API has it
    return names.map((entry: any) => {
      // biome-ignore lint/suspicious/noExplicitAny: as the API has it
      const ips = entry.resolvedAddresses.map(({ ip, ttlSeconds }: any) => `${ip}/${ttlSeconds}`)
      const reason = entry.conditions[0]?.reason
      return `${entry.dnsName} ${entry.resolutionFailures ?? 0} ${reason}: ${ips.sort().join(' ')}`
    })
  }
  return { api, clock, timers, lines, followers, settle, answer, fail, shown }
}
