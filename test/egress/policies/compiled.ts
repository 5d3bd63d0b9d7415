import { NameBuffer } from '../../../src/dns/name/hashed-name.ts'
import { lowerName, scanName } from '../../../src/dns/name/name.ts'
import { printAddress } from '../../../src/dns/text/address.ts'
import { DEFAULT_POLICY_OPTIONS, type PolicyOptions } from '../../../src/egress/policies/policy.ts'
import {
  type CompiledPolicies,
  PolicyCompiler,
  type SelectedPod,
} from '../../../src/egress/policies/policy-compiler.ts'
import { printFieldPath } from '../../../src/egress/policies/policy-field.ts'
import { findPolicyKind, type PolicyKind } from '../../../src/egress/policies/policy-kinds.ts'
import type { PortRange } from '../../../src/egress/rules/port-range.ts'
import type { ClientRules, EgressRule, NetworkPeer } from '../../../src/egress/rules/rule.ts'
import { SelectorIndex } from '../../../src/egress/selectors/selector-index.ts'
import type { ApiObject } from '../../../src/kube/api.ts'

// biome-ignore lint/suspicious/noExplicitAny: an object as a user writes it
type Written = any

export interface Parts {
  readonly namespace?: string
  readonly name?: string
  readonly labels?: Record<string, string>
}

/** An object of a kind, such as `cilium.io/v2 CiliumNetworkPolicy`. */
export function object(type: string, spec: Written, parts: Parts = {}): ApiObject {
  const [apiVersion = '', kind = ''] = type.split(' ')
  const { namespace = 'a', name = 'web', labels = {} } = parts
  const isWide = /Clusterwide|Admin|ClusterNetwork|^v1 Namespace/.test(type)
  const metadata = { ...(isWide ? {} : { namespace }), name, labels }
  return { apiVersion, kind, metadata, spec } as ApiObject
}

export interface PodParts extends Parts {
  readonly ip?: string
  readonly ips?: readonly string[]
  readonly uid?: string
  readonly phase?: string
  readonly hostNetwork?: boolean
  readonly account?: string
  readonly created?: string
}

export function pod(parts: PodParts = {}): ApiObject {
  const { namespace = 'a', name = 'web', labels = { app: 'web' }, uid = 'u1' } = parts
  const { ip = '10.0.0.1', phase = 'Running', hostNetwork = false, account = 'default' } = parts
  const podIPs = (parts.ips ?? [ip]).map((one) => ({ ip: one }))
  const creationTimestamp = parts.created ?? '2026-01-01T00:00:00Z'
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { namespace, name, labels, uid, creationTimestamp },
    spec: { hostNetwork, serviceAccountName: account },
    status: { phase, podIPs },
  }
}

export function kindOf(one: ApiObject): PolicyKind {
  const kind = findPolicyKind(one)
  if (kind === undefined) throw new Error(`unknown kind ${one.apiVersion} ${one.kind}`)
  return kind
}

/** What a test compares: everything as text. */
export interface Printed {
  readonly lists: readonly (readonly string[])[]
  readonly dns: readonly string[] | undefined
  readonly problems: readonly string[]
}

/** Compiles the objects with one Pod `a/web` with the label `app: web`; `lists` is undefined without a client. */
export function compilePod(objects: readonly ApiObject[], options?: PolicyOptions): Printed {
  const { client, problems } = compileOne(objects, options)
  const lists = (client?.rules.lists ?? []).map((list) =>
    list.flatMap(({ rules, otherwise }, i) => [
      ...(i > 0 ? ['--'] : []),
      ...rules.map(printRule),
      ...(otherwise === 'deny' ? ['deny others'] : []),
    ]),
  )
  const dns = client?.rules.dns?.map(({ ports, names }) => {
    return `${printPorts(ports)} ${names.map(({ text }) => text).join(',')}`
  })
  return { lists, dns, problems }
}

/** Compiles objects once. */
export function compileClients(
  objects: readonly ApiObject[],
  options: PolicyOptions = DEFAULT_POLICY_OPTIONS,
): CompiledPolicies {
  const compiler = new PolicyCompiler(options)
  for (const one of objects) compiler.put(kindOf(one), one)
  return compiler.compile()
}

export function compileOne(
  objects: readonly ApiObject[],
  options: PolicyOptions = DEFAULT_POLICY_OPTIONS,
): { readonly client: SelectedPod | undefined; readonly problems: readonly string[] } {
  const { clients, problems } = compileClients([pod(), ...objects], options)
  return {
    client: clients.find(({ id }) => id === 'a/web/u1'),
    problems: problems.map(({ object, path, message }) => {
      return `${object}: ${printFieldPath(path)}: ${message}`
    }),
  }
}

/** True if the DNS rules let a client ask for the name on that port. */
export function mayAsk(
  rules: ClientRules | undefined,
  protocol: 'udp' | 'tcp',
  port: number,
  name: string,
): boolean {
  if (rules?.dns === undefined) return true
  const owner = { consumer: 'test', namespace: '', object: '' }
  const index = new SelectorIndex()
  const allowed = rules.dns.filter(({ ports }) => {
    return ports === undefined || ports.some((range) => isIn(range, protocol, port))
  })
  index.set(
    owner,
    allowed.flatMap(({ names }) => names),
  )
  const buffer = new NameBuffer()
  const wire = lowerName(scanName(name)!)
  buffer.set(wire, 0, wire.length)
  return index.selects(buffer)
}

function isIn(range: PortRange, protocol: string, port: number): boolean {
  return range.protocol === protocol && range.first <= port && port <= range.last
}

function printRule({ action, networks, names, ports, lasts }: EgressRule): string {
  const to = [...networks.map(printNetwork), ...names.map(({ text }) => text)].join(',')
  const suffix = names.length === 0 ? '' : ` ${lasts}`
  return `${action} ${to} ${printPorts(ports)}${suffix}`
}

function printNetwork({ network, except }: NetworkPeer): string {
  const print = ({ bytes, family, bits }: NetworkPeer['network']) =>
    `${printAddress(bytes, family)}/${bits}`
  return [print(network), ...except.map(print)].join('!')
}

function printPorts(ports: readonly PortRange[] | undefined): string {
  if (ports === undefined) return '*'
  return ports
    .map(({ protocol, first, last }) => {
      return `${protocol}:${first === last ? first : `${first}-${last}`}`
    })
    .join(',')
}
