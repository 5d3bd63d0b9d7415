import { type Cidr, scanAddress } from '../../dns/text/address.ts'
import { type ApiObject, isObject, textOf } from '../../kube/api.ts'
import { Informer, type InformerOptions } from '../../kube/informer.ts'

const PODS = { group: '', version: 'v1', plural: 'pods' }
/** The label of Pods that get new answers early. */
const LABEL = 'k8s-cache.coredns.io/early-refresh=true'

/** Called with the addresses of all early clients. */
type Listener = (addresses: readonly Cidr[]) => void

/** The addresses of the Pods with the label, in all namespaces. Blocks with the same cluster share one. */
export class EarlyClients {
  readonly #informer: Informer
  readonly #listeners = new Set<Listener>()
  #isStarted = false
  #isScheduled = false
  #isClosed = false

  constructor(
    options: Omit<InformerOptions, 'resource' | 'namespaces' | 'labelSelector' | 'trim'>,
  ) {
    const scope = { resource: PODS, namespaces: [], labelSelector: LABEL }
    this.#informer = new Informer({ ...options, ...scope, trim: onlyAddresses })
    const schedule = (): void => this.#schedule()
    this.#informer.subscribe({ onAdd: schedule, onUpdate: schedule, onDelete: schedule })
  }

  /** Starts the watch, at the first call. */
  start(): void {
    if (!this.#isStarted) this.#informer.start()
    this.#isStarted = true
  }

  /** Calls `listener` at once and after each change, until the returned function is called. */
  subscribe(listener: Listener): () => void {
    this.#listeners.add(listener)
    listener(this.#addresses())
    return () => this.#listeners.delete(listener)
  }

  /** Why no early client is known yet; '' = the Pods were listed. */
  unreadyReason(): string {
    return this.#informer.isSynced ? '' : this.#informer.reason || 'the Pods are not read yet'
  }

  /** Why the known early clients may be out of date; '' = they are not. */
  note(): string {
    return this.#informer.isSynced ? this.#informer.reason : ''
  }

  close(): void {
    this.#isClosed = true
    this.#informer.close()
    this.#listeners.clear()
  }

  /** A list reports many Pods at once. */
  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => {
      this.#isScheduled = false
      if (this.#isClosed) return
      const addresses = this.#addresses()
      for (const listener of this.#listeners) listener(addresses)
    })
  }

  #addresses(): readonly Cidr[] {
    return [...this.#informer.objects()]
      .flatMap(addressesOf)
      .flatMap((text) => scanAddress(text) ?? [])
      .map((address) => ({ ...address, bits: address.bytes.length * 8 }))
  }
}

function addressesOf({ status }: ApiObject): readonly string[] {
  const listed = isObject(status) && Array.isArray(status.podIPs) ? status.podIPs : []
  return listed.map((entry) => textOf(entry, 'ip'))
}

/** Pods are large, and only their addresses are needed. */
function onlyAddresses({ metadata, status }: ApiObject): ApiObject {
  const [name, namespace] = [textOf(metadata, 'name'), textOf(metadata, 'namespace')]
  const [uid, resourceVersion] = [textOf(metadata, 'uid'), textOf(metadata, 'resourceVersion')]
  const podIPs = isObject(status) && Array.isArray(status.podIPs) ? status.podIPs : []
  return { metadata: { name, namespace, uid, resourceVersion }, status: { podIPs } }
}
