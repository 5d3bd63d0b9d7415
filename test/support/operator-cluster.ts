import type { Moment } from '../../src/base/moment.ts'
import { createLogger } from '../../src/base/telemetry/log.ts'
import { printHostPort } from '../../src/dns/host-port.ts'
import { scanCidr } from '../../src/dns/text/address.ts'
import { ApiError, type ApiObject, textOf } from '../../src/kube/api.ts'
import { keyOf } from '../../src/kube/object-key.ts'
import type { ClusterView } from '../../src/operator/cluster/cluster-view.ts'
import { namesOf } from '../../src/operator/cluster/name-index.ts'
import { RecordNames } from '../../src/operator/cluster/record-names.ts'
import { PeerHealth, type PeerHealthParts } from '../../src/operator/peers/peer-health.ts'
import type {
  OperatorPeer,
  PeerAnswer,
  PeerDirectory,
  PeerState,
} from '../../src/operator/peers/peers.ts'
import type { OwnHealth } from '../../src/operator/plan/own.ts'
import type { Write, Writer } from '../../src/operator/plan/write.ts'
import type { ProviderSecrets } from '../../src/operator/provider/provider-choice.ts'
import type { Provider } from '../../src/operator/provider/provider-secret.ts'
import { printRecord } from '../../src/operator/record/desired-record.ts'
import {
  finalizersOf,
  isDeleting,
  isSame,
  labelOf,
  mappingOf,
  metadataOf,
} from '../../src/operator/record/fields.ts'
import { RECORD_FINALIZER } from '../../src/operator/record/labels.ts'
import { DnsRecordView } from '../../src/operator/record/record-view.ts'
import { annotationsOf } from '../../src/operator/record/sites-annotation.ts'
import type { Generation, PeerEndpoint } from '../../src/peering/peer-endpoint.ts'
import type { SiteObservation } from '../../src/peering/quorum/observation-codec.ts'
import type { OwnNames } from '../../src/peering/trust/screen-site-states.ts'
import { SITES_ANNOTATION } from '../../src/records/site-facts.ts'
import { at, MANAGED } from './operator-objects.ts'
import { endpoint, type PeerText } from './peer-text.ts'
import { FakeTimers } from './setup.ts'

const HEALTHY: OwnHealth = { down: [], up: [], probes: [] }

/** A cluster in memory: applies each write as the API server would, and counts the writes. */
export class ToyCluster implements ClusterView, Writer {
  readonly records = new Map<string, ApiObject>()
  readonly secrets = new Map<string, ApiObject>()
  readonly health = new Map<string, OwnHealth>()
  /** `kind name` of each write, in order. */
  readonly writes: string[] = []
  /** Refuses the writes for which it returns an error. */
  refuse: (write: Write) => Error | undefined = () => undefined

  put(object: ApiObject): void {
    const isSecret = object.kind === 'Secret'
    ;(isSecret ? this.secrets : this.records).set(keyOf(object), object)
  }

  record(key: string): DnsRecordView | undefined {
    const object = this.records.get(key)
    return object && new DnsRecordView(object)
  }

  /** The record as the API would return it. */
  stored(key: string): ApiObject | undefined {
    return this.records.get(key)
  }

  secretsOf(namespace: string): ProviderSecrets {
    return {
      allowed: [scanCidr('127.0.0.0/8')!, scanCidr('::1/128')!],
      find: (name) => this.secrets.get(`${namespace}/${name}`),
      defaults: () =>
        [...this.secrets.values()].filter(
          (secret) =>
            textOf(secret.metadata, 'namespace') === namespace &&
            labelOf(secret, 'kuadrant.io/default-provider') === 'true',
        ),
    }
  }

  healthOf(key: string): OwnHealth {
    return this.health.get(key) ?? HEALTHY
  }

  namesBeside(key: string, zones: readonly string[]): OwnNames {
    const names = new RecordNames()
    for (const [one, object] of this.records) names.add(one, object)
    return names.beside(key, zones)
  }

  recordsSharing(key: string, name: string): readonly DnsRecordView[] {
    return [...this.records]
      .filter(([other, object]) => other !== key && namesOf(object).includes(name))
      .map(([, object]) => new DnsRecordView(object))
  }

  claimantsAt(name: string): readonly DnsRecordView[] {
    return this.#claimants((one) => one === name)
  }

  claimantsBelow(name: string): readonly DnsRecordView[] {
    return this.#claimants((one) => one.endsWith(`.${name}`))
  }

  #claimants(isSelected: (name: string) => boolean): readonly DnsRecordView[] {
    return [...this.records.values()]
      .map((object) => new DnsRecordView(object))
      .filter(({ role, rootHost, endpoints }) => {
        const names = [rootHost, ...endpoints.map(({ dnsName }) => dnsName)]
        return role !== 'derived' && names.some((one) => isSelected(one.replace(/^\*\./, '')))
      })
  }

  /** What was written since the last time. */
  takeWrites(): string[] {
    return this.writes.splice(0)
  }

  /** Changes the spec of a record, as its user would. */
  edit(key: string, spec: ApiObject): void {
    const record = this.records.get(key)!
    const { generation } = metadataOf(record)
    const metadata = { ...metadataOf(record), generation: Number(generation) + 1 }
    this.records.set(key, { ...record, metadata, spec: { ...(record.spec as ApiObject), ...spec } })
  }

  /** Asks for a record to be gone, as its user would. */
  markDeleted(key: string): void {
    const record = this.records.get(key)!
    const metadata = { ...metadataOf(record), deletionTimestamp: '2026-02-01T00:00:00Z' }
    this.#settle(key, { ...record, metadata })
  }

  async write(write: Write): Promise<void> {
    const { namespace, name } = write.record
    const error = this.refuse(write)
    if (error !== undefined) throw error
    this.writes.push(`${write.kind} ${name}`)
    const key = `${namespace}/${name}`
    const present = this.records.get(key)
    switch (write.kind) {
      case 'hold':
        this.#setFinalizers(key, [...new Set([...finalizersOf(present!), RECORD_FINALIZER])], {
          ...MANAGED,
          ...annotate(present, annotationsOf(write.report)),
        })
        return
      case 'unhold':
      case 'leave':
        this.#setFinalizers(
          key,
          finalizersOf(present!).filter((one) => one !== RECORD_FINALIZER),
          { managedFields: [] },
        )
        return
      case 'apply': {
        const object = printRecord(write.record)
        const uid = textOf(present?.metadata, 'uid') || `uid-of-${name}`
        const about = annotate(present, write.record.annotations ?? {})
        const metadata = { ...metadataOf(present ?? {}), ...metadataOf(object), ...about, uid }
        this.records.set(key, { ...present, ...object, metadata })
        return
      }
      case 'put': {
        if (present !== write.over?.object)
          throw new ApiError(409, 'the object has been modified', 0, 'Conflict')
        const object = printRecord(write.record)
        const { generation = 0, ...before } = metadataOf(present ?? {})
        const uid = `uid-of-${name}`
        const made = { uid, ...before, ...metadataOf(object), ...MANAGED }
        const about = annotate(present, write.record.annotations ?? {})
        // Annotations do not change the generation.
        const isEdited = !isSame(present?.spec, object.spec)
        const metadata = { ...made, ...about, generation: Number(generation) + Number(isEdited) }
        this.records.set(key, { ...present, ...object, metadata })
        return
      }
      case 'drop':
        if (present !== write.record.object)
          throw new ApiError(409, 'the object has been modified', 0, 'Conflict')
        this.records.delete(key)
        return
      case 'delete':
        this.records.delete(key)
        return
      case 'status': {
        // Only other clusters write their statuses.
        const remoteRecordStatuses = at(present, 'status', 'remoteRecordStatuses') as ApiObject
        const others = remoteRecordStatuses === undefined ? {} : { remoteRecordStatuses }
        this.records.set(key, { ...present, status: { ...write.status, ...others } })
      }
    }
  }

  #setFinalizers(key: string, finalizers: readonly string[], more: ApiObject): void {
    const record = this.records.get(key)!
    const metadata = { ...metadataOf(record), finalizers, ...more }
    this.#settle(key, { ...record, metadata })
  }

  #settle(key: string, record: ApiObject): void {
    const isGone = isDeleting(record) && finalizersOf(record).length === 0
    if (isGone) this.records.delete(key)
    else this.records.set(key, record)
  }
}

/** `annotations` as server-side apply leaves them: those of others are kept, and ours that are missing are removed. */
function annotate(present: ApiObject | undefined, ours: ApiObject): ApiObject {
  const { [SITES_ANNOTATION]: _, ...others } = mappingOf(metadataOf(present ?? {}), 'annotations')
  const annotations = { ...others, ...ours }
  return Object.keys(annotations).length === 0 ? {} : { annotations }
}

/** Peers whose answers the test decides, by address. */
export class ToyPeers implements PeerDirectory {
  readonly answers = new Map<string, PeerAnswer>()
  readonly wanted = new Map<string, string>()
  /** By how much the clock of a peer is ahead, in milliseconds. */
  readonly clocksMs = new Map<string, number>()
  /** When peers were last heard, if it is not known from their answers. Monotonic milliseconds. */
  readonly heardMs = new Map<string, number>()

  peersFor(key: string, rootHost: string, { nameservers }: Provider): readonly OperatorPeer[] {
    this.wanted.set(key, rootHost)
    const { heardMs } = this
    return nameservers.map((nameserver) => {
      const address = printHostPort(nameserver)
      const answerOf = (): PeerAnswer => this.answers.get(address) ?? { kind: 'pending' }
      const stateOf = (): PeerState | undefined => {
        const answer = answerOf()
        return answer.kind === 'pending' ? undefined : answer.state
      }
      // A peer that answers has just been heard.
      const heardAt = (): number => {
        const isHeard = answerOf().kind === 'answered'
        const lastMs = isHeard ? Number.MAX_SAFE_INTEGER : stateOf()?.seenMs
        return heardMs.get(address) ?? lastMs ?? Number.NEGATIVE_INFINITY
      }
      return {
        id: address,
        clockAheadMs: this.clocksMs.get(address),
        address,
        answerFor: answerOf,
        get lastSeenMs() {
          return heardAt()
        },
        get lastAnswerMs() {
          return heardAt()
        },
        get ownSite() {
          const state = stateOf()
          return state?.generation === 'v1'
            ? ''
            : (state?.siteStates.find((s) => s.isOwn)?.site ?? '')
        },
        get sites() {
          return [...new Set((stateOf()?.siteStates ?? []).map(({ site }) => site))]
        },
        get observationCount() {
          return stateOf()?.observations?.length ?? 0
        },
        observationsOf: () => stateOf()?.observations ?? [],
      }
    })
  }

  forget(key: string): void {
    this.wanted.delete(key)
  }

  /** Makes a peer export these endpoints as v2, as `site`. `isOwn`: whether it is a nameserver of that site. */
  say(
    address: string,
    site: string,
    endpoints: readonly (Partial<PeerText> | PeerEndpoint)[],
    moment: Moment,
    isOwn = true,
    generation: Generation = 'v2',
  ): void {
    const rootHost = endpoints[0]?.rootHost ?? 'k.example.com'
    const whole = endpoints.map((one) => {
      return 'endpoint' in one ? one : peerEndpoint({ site, rootHost, ...one })
    })
    const from = { site, exporter: address, isOwn, rootHost }
    const about = { seenMs: moment.seenMs, generation }
    const share = { ...from, ...about, endpoints: whole }
    const said = { siteStates: [share], generation, serial: 7, problems: [] }
    const state = { ...moment, ...said }
    this.answers.set(address, { kind: 'answered', state })
  }

  /** Adds what a peer that answers observed of addresses of other sites. */
  observe(address: string, observations: readonly SiteObservation[]): void {
    const answer = this.answers.get(address)
    if (answer?.kind !== 'answered') throw new Error(`${address} has not answered`)
    this.answers.set(address, { kind: 'answered', state: { ...answer.state, observations } })
  }

  fallSilent(address: string, reason = 'no answer'): void {
    const before = this.answers.get(address)
    const state = before === undefined || before.kind === 'pending' ? undefined : before.state
    this.answers.set(address, { kind: 'silent', reason, state })
  }
}

/** Decides about addresses of peers by default settings, and probes nothing. */
export function peerHealthOf(
  site: string,
  clock: PeerHealthParts['clock'],
  more: Partial<PeerHealthParts> = {},
): PeerHealth {
  return new PeerHealth({
    ...{ site, clock, probing: undefined, quorum: 0, holdDownMs: 0, silentMs: 24 * 3_600_000 },
    onEvent: () => {},
    timers: new FakeTimers(),
    log: createLogger(
      '',
      () => {},
      () => false,
    ),
    ...more,
  })
}

/** An endpoint that another site exports. */
export function peerEndpoint(parts: Partial<PeerText>): PeerEndpoint {
  const host = { rootHost: 'k.example.com', dnsName: 'k.example.com' }
  const about = { site: 'other', targets: ['192.0.2.2'], sinceSeconds: 1_690_000_000 }
  return endpoint({ ...host, ...about, ...parts })
}
