import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import type { Clock } from '../../../base/clock.ts'
import { DNS_PORT, type HostPort, printHostPort } from '../../../dns/host-port.ts'
import { type ResolvConf, scanResolvConf } from '../../../dns/resolv-conf.ts'
import { type ApiObject, textOf } from '../../../kube/api.ts'
import type { Informer } from '../../../kube/informer.ts'
import { itemsOf, mappingOf, textsOf } from '../../record/fields.ts'

/** The DNS servers that pods use. All of them are asked: each has its own cache. */
export interface DnsServers {
  list(): readonly HostPort[]
  /** Why no server is known; '' = there are servers. */
  readonly reason: string
}

/** The ready endpoints of a Service. */
export class ServiceServers implements DnsServers {
  readonly #slices: Informer
  readonly #service: string
  readonly #overTcp: boolean
  #servers = new Map<string, HostPort>()

  /**
   * `slices`: the EndpointSlices of the Service. `service`: its name for messages. `onChange` is
   * called when the servers may have changed; `isNew`: there is one that was not there before.
   */
  constructor(
    slices: Informer,
    service: string,
    overTcp: boolean,
    onChange: (isNew: boolean) => void,
  ) {
    this.#slices = slices
    this.#service = service
    this.#overTcp = overTcp
    const update = (): void => onChange(this.#update())
    slices.subscribe({ onAdd: update, onUpdate: update, onDelete: update })
  }

  list(): readonly HostPort[] {
    return [...this.#servers.values()]
  }

  get reason(): string {
    if (this.#servers.size > 0) return ''
    if (!this.#slices.isSynced) return this.#slices.reason || 'the DNS servers are not listed yet'
    return `Service ${this.#service} has no ready endpoints`
  }

  /** Returns true if there is a server that was not there before. */
  #update(): boolean {
    const before = this.#servers
    this.#servers = new Map()
    for (const slice of this.#slices.objects()) {
      for (const server of serversOf(slice, this.#overTcp)) {
        this.#servers.set(printHostPort(server), server)
      }
    }
    return [...this.#servers.keys()].some((key) => !before.has(key))
  }
}

/** Ready endpoints of an EndpointSlice, at its port for DNS: the one named `dns`, else the first for the protocol. */
function serversOf(slice: ApiObject, overTcp: boolean): readonly HostPort[] {
  if (textOf(slice, 'addressType') === 'FQDN') return []
  const protocol = overTcp ? 'TCP' : 'UDP'
  const ports = itemsOf(slice, 'ports').filter((port) => textOf(port, 'protocol') === protocol)
  const named = ports.find((port) => textOf(port, 'name').startsWith('dns')) ?? ports[0]
  const port = typeof named?.port === 'number' ? named.port : DNS_PORT
  return itemsOf(slice, 'endpoints').flatMap((endpoint) => {
    // An absent condition means ready (Kubernetes API, EndpointConditions).
    if (mappingOf(endpoint, 'conditions').ready === false) return []
    return textsOf(endpoint, 'addresses')
      .filter((host) => isIP(host) !== 0)
      .map((host) => ({ host, port }))
  })
}

/** How long the servers of a file count before it is read again. */
const REREAD_MS = 2000

/** The nameservers of a file in the form of resolv.conf(5). */
export class FileServers implements DnsServers {
  readonly #path: string
  readonly #clock: Clock
  #readMs = Number.NEGATIVE_INFINITY
  #fault = ''
  #config: ResolvConf = scanResolvConf('')

  constructor(path: string, clock: Clock) {
    this.#path = path
    this.#clock = clock
  }

  list(): readonly HostPort[] {
    return this.config().servers
  }

  get reason(): string {
    if (this.config().servers.length > 0) return ''
    return this.#fault || `${this.#path} has no nameservers`
  }

  /** If the file cannot be read, its last content counts. */
  config(): ResolvConf {
    const nowMs = this.#clock.monotonic()
    if (nowMs - this.#readMs < REREAD_MS) return this.#config
    this.#readMs = nowMs
    try {
      this.#config = scanResolvConf(readFileSync(this.#path, 'utf8'))
      this.#fault = ''
    } catch (error) {
      this.#fault = `${this.#path} cannot be read: ${error instanceof Error ? error.message : error}`
    }
    return this.#config
  }
}
