import { createHash } from 'node:crypto'
import {
  type EndpointDocument,
  type RecordDocument,
  recordDocument,
} from '../records/record-document.ts'
import type { FieldProblem } from '../records/validate/fields.ts'
import { findIgnored } from '../records/validate/ignored.ts'
import { validateResource } from '../records/validate/resource.ts'
import type { YamlValue } from '../yaml/scan-block-yaml.ts'

/** What of a file is not in the DNSRecords, or acts in another way there. */
interface ImportNote {
  /** `file:line`, or the file and a path in it. */
  readonly place: string
  readonly message: string
}

interface Placed<T> {
  readonly value: T
  readonly place: string
}

/** What was found for one host. */
interface Host {
  endpoints: Placed<EndpointDocument>[]
  readonly annotations: Map<string, Placed<string>>
  check: Placed<HealthCheckDocument> | undefined
}

/** `spec.healthCheck` of a DNSRecord. */
export type HealthCheckDocument = Readonly<Record<string, string | number>>

/** RFC 1123 subdomain: the names of objects in Kubernetes. */
const PLAIN_NAME = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/
const NAME_CHARACTERS_MAX = 253
/** Hexadecimal digits of the digest in a name. */
const DIGEST_LENGTH = 10

/** Collects the endpoints of files by host, in their order. Each host becomes one DNSRecord. */
export class ImportedHosts {
  readonly #hosts = new Map<string, Host>()
  readonly #notes: ImportNote[] = []

  /** In the order in which they were found. */
  get notes(): readonly ImportNote[] {
    return this.#notes
  }

  /** Adds an endpoint. `dnsName`: the host, in any case, with or without a final dot. */
  add(endpoint: EndpointDocument, place: string): void {
    const dnsName = hostOf(endpoint.dnsName)
    this.#host(dnsName).endpoints.push({ value: { ...endpoint, dnsName }, place })
  }

  /** Sets an annotation of the host; a second value that differs is a note. */
  annotate(host: string, name: string, value: string, place: string): void {
    const { annotations } = this.#host(hostOf(host))
    const known = annotations.get(name)
    if (known === undefined) annotations.set(name, { value, place })
    else if (known.value !== value)
      this.note(place, `${name} of ${hostOf(host)} is that of ${known.place}`)
  }

  /** Sets the health check of the host; a second one that differs is a note. */
  check(host: string, value: HealthCheckDocument, place: string): void {
    const known = this.#host(hostOf(host))
    known.check ??= { value, place }
    if (JSON.stringify(known.check.value) === JSON.stringify(value)) return
    this.note(place, `a DNSRecord has one health check, and ${hostOf(host)} has another one`)
  }

  note(place: string, message: string): void {
    this.#notes.push({ place, message })
  }

  /**
   * Returns the DNSRecords, all valid. What is refused is left out, with a note. `namespace`: undefined = the
   * DNSRecords have none.
   */
  documents(namespace: string | undefined): readonly RecordDocument[] {
    const documents: RecordDocument[] = []
    for (const [name, host] of this.#hosts) {
      if (host.endpoints.length === 0) continue
      const document = this.#documentOf(name, host, namespace)
      if (document !== undefined) documents.push(document)
    }
    return documents
  }

  #host(name: string): Host {
    let host = this.#hosts.get(name)
    if (host === undefined) {
      host = { endpoints: [], annotations: new Map(), check: undefined }
      this.#hosts.set(name, host)
    }
    return host
  }

  /** Leaves out parts until the rest is valid. Undefined = nothing is left. */
  #documentOf(name: string, host: Host, namespace: string | undefined): RecordDocument | undefined {
    while (host.endpoints.length > 0) {
      const document = compose(name, host, namespace)
      const resource = document as unknown as YamlValue
      const found = validateResource(resource)
      if (found.kind === 'record') {
        for (const { path, message } of findIgnored(resource, found.record, 'manifest')) {
          this.note(partAt(host, path)?.place ?? name, message)
        }
        return document
      }
      if (found.kind !== 'refused') return undefined
      this.#leaveOut(host, found.problem)
    }
    return undefined
  }

  /** Removes the part with the problem; the whole host if it is no part of it. */
  #leaveOut(host: Host, { path, message }: FieldProblem): void {
    const [, list, step] = path
    const part = partAt(host, path)
    this.note((part ?? host.endpoints[0]!).place, `not imported: ${message}`)
    if (part === undefined) host.endpoints = []
    else if (list === 'healthCheck') host.check = undefined
    else if (list === 'annotations') host.annotations.delete(String(step))
    else host.endpoints.splice(Number(step), 1)
  }
}

/** The part of the host that a path in its DNSRecord leads to; undefined = it is no single part. */
function partAt(host: Host, [, list, step]: FieldProblem['path']): Placed<unknown> | undefined {
  if (list === 'healthCheck') return host.check
  if (list === 'annotations') return host.annotations.get(String(step))
  return list === 'endpoints' && typeof step === 'number' ? host.endpoints[step] : undefined
}

function compose(name: string, host: Host, namespace: string | undefined): RecordDocument {
  const annotations = [...host.annotations].map(([key, { value }]) => [key, value] as const)
  return recordDocument(
    {
      name: objectNameOf(name),
      ...(namespace === undefined ? {} : { namespace }),
      ...(annotations.length === 0 ? {} : { annotations: Object.fromEntries(annotations) }),
    },
    {
      rootHost: name,
      ...(host.check === undefined ? {} : { healthCheck: host.check.value }),
      endpoints: host.endpoints.map(({ value }) => value),
    },
  )
}

/** A host as DNSRecords write it: in lower case, without its final dot. */
function hostOf(text: string): string {
  return text.replace(/(.)\.$/, '$1').toLowerCase()
}

/** Returns the name of the DNSRecord of a host: the host itself, or nearly it and a digest. Different for each host. */
function objectNameOf(host: string): string {
  if (host.length <= NAME_CHARACTERS_MAX && PLAIN_NAME.test(host)) return host
  const digest = createHash('sha256').update(host).digest('hex').slice(0, DIGEST_LENGTH)
  const labels = host
    .replace(/^\*/, 'wildcard')
    .replace(/[^a-z0-9.-]+/g, '-')
    .slice(0, NAME_CHARACTERS_MAX - DIGEST_LENGTH - 1)
    .split('.')
    .map((label) => label.replace(/^-+|-+$/g, ''))
    .filter((label) => label !== '')
  return [...labels, digest].join('.').slice(-NAME_CHARACTERS_MAX)
}
