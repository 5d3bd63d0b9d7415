import type { Test } from 'tap'
import { Random } from '../../../../src/base/random.ts'
import { createLogger } from '../../../../src/base/telemetry/log.ts'
import { MetricsRegistry } from '../../../../src/base/telemetry/metrics.ts'
import type { Answered } from '../../../../src/client/ask.ts'
import type { AddressQuery } from '../../../../src/client/resolver/ask-addresses.ts'
import { Rcode, RRClass, RRType } from '../../../../src/dns/iana/index.ts'
import { HeaderFlag } from '../../../../src/dns/message/header.ts'
import type { ResourceRecord } from '../../../../src/dns/message/message.ts'
import { printName } from '../../../../src/dns/name/name.ts'
import { scanAddress } from '../../../../src/dns/text/address.ts'
import {
  type ResolvedName,
  updateResolvedNames,
} from '../../../../src/egress/policies/openshift/resolved-names.ts'
import { type ApiObject, type ApiResource, textOf } from '../../../../src/kube/api.ts'
import { keyOf } from '../../../../src/kube/object-key.ts'
import type { Controller } from '../../../../src/operator/controller.ts'
import { createDnsNameResolverController } from '../../../../src/operator/egress/dnsnameresolver/dns-name-resolver-controller.ts'
import {
  DNS_NAME_RESOLVERS,
  EGRESS_FIREWALL_DNS_NAMES,
} from '../../../../src/operator/egress/resources.ts'
import { itemsOf, mappingOf } from '../../../../src/operator/record/fields.ts'
import { turns } from '../../../support/api-double.ts'
import { eventRecorder } from '../../../support/event-recorder.ts'
import { MemoryApi } from '../../../support/memory-api.ts'
import { FakeClock, FakeTimers } from '../../../support/setup.ts'

export const NAMESPACE = 'ovn-kubernetes'
const SLICES = { group: 'discovery.k8s.io', version: 'v1', plural: 'endpointslices' }
const SERVICE = { namespace: 'kube-system', name: 'kube-dns' }
const SILENCE_MS = 4000

/** What an upstream answers for a name: addresses with a TTL, or an rcode. */
export type Zone = { readonly ips: readonly string[]; readonly ttl: number } | number

/** A cluster in memory: its API, DNS servers with a cache each that write statuses, and the controller. */
export class Site {
  readonly api = new MemoryApi()
  readonly clock = new FakeClock()
  readonly registry = new MetricsRegistry()
  readonly lines: string[] = []
  readonly zones = new Map<string, Zone>()
  readonly asked: { readonly name: string; readonly host: string; readonly atMs: number }[] = []
  /** Servers that do not reply. */
  readonly silent = new Set<string>()
  latencyMs = 20
  mayWrite = true
  /** False: the servers lack the directive. */
  writesStatus = true
  readonly #timers = new FakeTimers()
  readonly #caches = new Map<string, { readonly endMs: number; readonly zone: Zone }>()
  #controller: Controller | undefined

  constructor(t: Test, servers: readonly string[] = ['10.0.0.1', '10.0.0.2']) {
    this.setServers(servers)
    t.teardown(() => this.stop())
  }

  setServers(servers: readonly string[]): void {
    const labels = { 'kubernetes.io/service-name': SERVICE.name }
    this.api.put(SLICES, {
      metadata: { namespace: SERVICE.namespace, name: 'kube-dns-1', labels },
      addressType: 'IPv4',
      ports: [{ name: 'dns', protocol: 'UDP', port: 53 }],
      endpoints: servers.map((host) => ({ addresses: [host] })),
    })
  }

  start(): Controller {
    const log = createLogger(
      'operator',
      (line) => this.lines.push(line),
      () => true,
    )
    const { api, clock, registry } = this
    const env = { api, clock, log, namespaces: [], timers: this.#timers, random: new Random(7) }
    const mayWrite = (): boolean => this.mayWrite
    this.#controller = createDnsNameResolverController(
      { ...env, events: eventRecorder(env), registry, mayWrite },
      { namespace: NAMESPACE, service: SERVICE },
      (query) => this.#ask(query),
    )
    this.#controller.begin()
    return this.#controller
  }

  async stop(): Promise<void> {
    await this.#controller?.end()
  }

  /** Puts an object; `age`: seconds since the lookup of its addresses. */
  resolver(
    name: string,
    specName: string,
    stored: Readonly<Record<string, { ips: readonly string[]; ttl: number; age: number }>> = {},
  ): void {
    const resolvedNames = Object.entries(stored).map(([dnsName, { ips, ttl, age }]) => ({
      dnsName,
      resolvedAddresses: ips.map((ip) => ({
        ip,
        ttlSeconds: ttl,
        lastLookupTime: timeOf(this.clock.now() - age * 1000),
      })),
    }))
    const metadata = { namespace: NAMESPACE, name }
    this.api.put(DNS_NAME_RESOLVERS, {
      metadata,
      spec: { name: specName },
      status: { resolvedNames },
    })
  }

  draft(name: string, specName: string, ips: readonly string[], ttl: number): void {
    const lastLookupTime = timeOf(this.clock.now())
    const resolvedNames = [{ dnsName: specName, ips, ttl, lastLookupTime }]
    const metadata = { namespace: NAMESPACE, name }
    const spec = { name: specName }
    this.api.put(EGRESS_FIREWALL_DNS_NAMES, { metadata, spec, status: { resolvedNames } })
  }

  /** `name: address address` of the names in the status of an object. */
  status(name: string, resource: ApiResource = DNS_NAME_RESOLVERS): readonly string[] {
    const object = this.api.all(resource).get(`${NAMESPACE}/${name}`)
    return itemsOf(mappingOf(object ?? {}, 'status'), 'resolvedNames').map((item) => {
      const plain = Array.isArray(item.ips) ? item.ips : []
      const timed = itemsOf(item, 'resolvedAddresses').map((address) => textOf(address, 'ip'))
      return `${textOf(item, 'dnsName')}: ${[...plain, ...timed].join(' ')}`.trim()
    })
  }

  /** Lets time pass; `each` runs after each step. */
  async pass(ms: number, stepMs = 100, each: () => void = () => {}): Promise<void> {
    for (let passed = 0; passed < ms; passed += stepMs) {
      this.clock.pass(stepMs)
      await this.#timers.advance(stepMs)
      await turns(5)
      each()
    }
  }

  async metric(series: string): Promise<number> {
    const text = await this.registry.print()
    const line = text
      .split('\n')
      .find((one) => one.startsWith(`sextant_dnsnameresolver_${series} `))
    return Number(line?.split(' ').at(-1))
  }

  #ask(query: AddressQuery): Promise<Answered> {
    const { host } = query.server
    const name = printName(query.name)
    this.asked.push({ name, host, atMs: this.clock.monotonic() })
    const isSilent = this.silent.has(host)
    return new Promise((resolve) => {
      this.#timers.after(isSilent ? SILENCE_MS : this.latencyMs, () => {
        if (isSilent) resolve({ kind: 'failed', reason: 'timed out', overTcp: false })
        else resolve(this.#reply(query, name))
      })
    })
  }

  #reply(query: AddressQuery, name: string): Answered {
    const { zone, ttlSeconds } = this.#lookUp(`${query.server.host} ${name}`, name)
    const rcode = typeof zone === 'number' ? zone : Rcode.NOERROR
    const ips =
      typeof zone === 'number' ? [] : zone.ips.filter((ip) => familyOf(ip) === query.family)
    if (this.writesStatus) this.#writeStatus(name, rcode, ips, ttlSeconds)
    const type = query.family === 1 ? RRType.A : RRType.AAAA
    const answer = ips.map((ip): ResourceRecord => {
      const rdata = scanAddress(ip)!.bytes
      return { owner: query.name, type, rrclass: RRClass.IN, ttlSeconds, rdata }
    })
    const message = {
      id: 1,
      opcode: 0,
      flags: HeaderFlag.QR,
      rcode,
      question: { name: query.name, type, rrclass: RRClass.IN },
      answer,
      authority: [],
      additional: [],
      edns: undefined,
    }
    return { kind: 'reply', message, octets: new Uint8Array(), overTcp: false }
  }

  /** The answer of a server with a cache, and what is left of its TTL. */
  #lookUp(key: string, name: string): { readonly zone: Zone; readonly ttlSeconds: number } {
    const nowMs = this.clock.now()
    const cached = this.#caches.get(key)
    if (cached !== undefined && cached.endMs > nowMs) {
      return { zone: cached.zone, ttlSeconds: Math.floor((cached.endMs - nowMs) / 1000) }
    }
    const zone = this.zones.get(name) ?? Rcode.NXDOMAIN
    if (typeof zone === 'number') return { zone, ttlSeconds: 0 }
    this.#caches.set(key, { endMs: nowMs + zone.ttl * 1000, zone })
    return { zone, ttlSeconds: zone.ttl }
  }

  /** What the directive of a server does with a reply. */
  #writeStatus(dnsName: string, rcode: number, ips: readonly string[], ttlSeconds: number): void {
    const wildcard = `*${dnsName.slice(dnsName.indexOf('.'))}`
    const lookup = {
      dnsName,
      rcode,
      addresses: ips.map((ip) => ({ ip, ttlSeconds })),
      nowMs: this.clock.now(),
    }
    for (const object of this.api.all(DNS_NAME_RESOLVERS).values()) {
      const specName = textOf(object.spec, 'name')
      if (specName !== dnsName && specName !== wildcard) continue
      const names = itemsOf(mappingOf(object, 'status'), 'resolvedNames').map(scan)
      const next = updateResolvedNames(names, specName, lookup)
      if (next === names) continue
      const { namespace, name } = { namespace: NAMESPACE, name: keyOf(object).split('/')[1]! }
      const status = { resolvedNames: next.map(print) }
      this.api.put(DNS_NAME_RESOLVERS, {
        metadata: { namespace, name },
        spec: object.spec!,
        status,
      })
    }
  }
}

function familyOf(ip: string): number {
  return ip.includes(':') ? 2 : 1
}

/** As the API has it: in seconds. */
function timeOf(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`
}

function scan(item: ApiObject): ResolvedName {
  const failures = typeof item.resolutionFailures === 'number' ? item.resolutionFailures : 0
  const addresses = itemsOf(item, 'resolvedAddresses').map((address) => ({
    ip: textOf(address, 'ip'),
    ttlSeconds: Number(address.ttlSeconds),
    lookupMs: Date.parse(textOf(address, 'lastLookupTime')),
  }))
  const degraded = { isDegraded: failures > 0, reason: textOf(item, 'reason'), sinceMs: 0 }
  return { dnsName: textOf(item, 'dnsName'), failures, addresses, degraded }
}

function print({ dnsName, failures, addresses, degraded }: ResolvedName): ApiObject {
  return {
    dnsName,
    resolutionFailures: failures,
    reason: degraded?.reason ?? '',
    resolvedAddresses: addresses.map(({ ip, ttlSeconds, lookupMs }) => ({
      ip,
      ttlSeconds,
      lastLookupTime: timeOf(lookupMs),
    })),
  }
}
