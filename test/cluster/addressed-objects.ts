import type { Cluster } from '../support/cluster.ts'
import { ZONE } from './served-cluster.ts'
import { ENDPOINT_API } from './source-definitions.ts'

/** A kind of objects, each with one host and one address. */
export interface AddressedKind {
  readonly kind: string
  readonly apiVersion: string
  /** Path of the objects in the namespace `infra`. */
  readonly path: string
  readonly annotations: (host: string) => object
  readonly spec: (host: string) => object
  /** The part of the object that its address is in. */
  readonly subresource: string
  /** Patches the address. */
  readonly address: (host: string, ip: string) => object
}

const balanced = {
  subresource: '/status',
  address: (_host: string, ip: string) => ({ status: { loadBalancer: { ingress: [{ ip }] } } }),
}

export const SERVICE: AddressedKind = {
  ...balanced,
  kind: 'Service',
  apiVersion: 'v1',
  path: '/api/v1/namespaces/infra/services',
  annotations: (host) => ({ 'external-dns.kubernetes.io/hostname': host }),
  spec: () => ({ type: 'LoadBalancer', ports: [{ port: 80 }] }),
}

export const INGRESS: AddressedKind = {
  ...balanced,
  kind: 'Ingress',
  apiVersion: 'networking.k8s.io/v1',
  path: '/apis/networking.k8s.io/v1/namespaces/infra/ingresses',
  annotations: () => ({}),
  spec: (host) => ({
    defaultBackend: { service: { name: 'shop', port: { number: 80 } } },
    rules: [{ host }],
  }),
}

export const DNSENDPOINT: AddressedKind = {
  kind: 'DNSEndpoint',
  apiVersion: 'externaldns.k8s.io/v1alpha1',
  path: `${ENDPOINT_API}/namespaces/infra/dnsendpoints`,
  annotations: () => ({}),
  spec: () => ({ endpoints: [] }),
  subresource: '',
  address: (dnsName, ip) => ({
    spec: { endpoints: [{ dnsName, recordType: 'A', targets: [ip] }] },
  }),
}

/** An object of such a kind, with a host below ZONE. */
export class AddressedObject {
  readonly #cluster: Cluster
  readonly #of: AddressedKind
  readonly #name: string
  readonly #host: string

  constructor(cluster: Cluster, of: AddressedKind, name: string, label = name) {
    this.#cluster = cluster
    this.#of = of
    this.#name = name
    this.#host = `${label}.${ZONE}`
  }

  /** Creates the object; without an address if it gets that by its status. */
  async create(spec: object = this.#of.spec(this.#host)): Promise<void> {
    const { path, apiVersion, kind } = this.#of
    const metadata = { name: this.#name, annotations: this.#of.annotations(this.#host) }
    await this.#cluster.must('POST', path, { apiVersion, kind, metadata, spec })
  }

  async setAddress(ip: string): Promise<void> {
    await this.patch(this.#of.address(this.#host, ip), this.#of.subresource)
  }

  /** Null removes an annotation. */
  async annotate(annotations: Readonly<Record<string, string | null>>): Promise<void> {
    await this.patch({ metadata: { annotations } })
  }

  async patch(fields: object, subresource = ''): Promise<void> {
    await this.#cluster.must('PATCH', `${this.#of.path}/${this.#name}${subresource}`, fields)
  }
}
