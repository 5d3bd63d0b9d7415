import { scanGeoCode } from '../../src/geo/code.ts'
import { scanPoint } from '../../src/geo/point.ts'
import {
  type PeerEndpoint,
  printTargets,
  type TargetTexts,
} from '../../src/peering/peer-endpoint.ts'
import { toPeerEndpoint } from '../../src/peering/to-peer-endpoint.ts'
import type { Endpoint } from '../../src/records/dns-record.ts'
import { DEFAULT_SET_IDENTIFIER } from '../../src/records/print-endpoint.ts'
import { scanHost } from '../../src/records/validate/names.ts'
import { RECORD_TYPES, scanTarget } from '../../src/records/validate/target.ts'

/** An endpoint of a peer with the fields of the endpoint itself as text. */
export interface PeerText
  extends Omit<PeerEndpoint, 'endpoint'>,
    TargetTexts,
    Pick<Endpoint, 'ttlSeconds' | 'setIdentifier' | 'weight' | 'isDefault' | 'probeAt'> {
  readonly geoCodes: readonly string[]
  /** `52.52,13.40`. */
  readonly location?: string | undefined
}

/** Reads such text. Neither the name nor the sizes are compared with the host, so that a test can have a bad peer. */
function peerEndpointOf(text: PeerText): PeerEndpoint {
  const { dnsName, recordType, ttlSeconds, setIdentifier, weight, geoCodes, location } = text
  const type = RECORD_TYPES.get(recordType)!
  const endpoint: Endpoint = {
    owner: scanHost(dnsName)!,
    type,
    ttlSeconds,
    setIdentifier,
    weight,
    codes: geoCodes.map((code) => scanGeoCode(code)!),
    isDefault: text.isDefault || (geoCodes.length > 0 && setIdentifier === DEFAULT_SET_IDENTIFIER),
    point: location === undefined ? undefined : scanPoint(location),
    rdata: text.targets.map((target) => {
      const rdata = scanTarget(type, target)
      if (typeof rdata === 'string') throw new Error(`${target} ${rdata}`)
      return rdata
    }),
    probeAt: text.probeAt,
    aliasOf: undefined,
  }
  return toPeerEndpoint(endpoint, text)
}

/** An endpoint that a site exports: `more` over an address of the host app.k.example.com at the site east. */
export function endpoint(more: Partial<PeerText> = {}): PeerEndpoint {
  return peerEndpointOf({
    site: 'east',
    rootHost: 'app.k.example.com',
    dnsName: 'app.k.example.com',
    recordType: 'A',
    ttlSeconds: 60,
    setIdentifier: '',
    weight: undefined,
    geoCodes: [],
    isDefault: false,
    targets: ['192.0.2.1'],
    health: 'unknown',
    sinceSeconds: 0,
    ...more,
  })
}

/** Prints an endpoint of a peer. Fields that are unknown are missing. */
export function peerTextOf({ endpoint, ...facts }: PeerEndpoint): PeerText {
  const { ttlSeconds, setIdentifier, weight, codes, isDefault, point, probeAt } = endpoint
  const steering = { ttlSeconds, setIdentifier, weight, isDefault }
  const geoCodes = codes.map(({ text }) => text)
  return {
    ...facts,
    ...printTargets(endpoint),
    ...steering,
    geoCodes,
    ...(point === undefined ? {} : { location: point.text }),
    ...(probeAt === undefined ? {} : { probeAt }),
  }
}

/** Prints the targets of endpoints of peers. */
export function targetsOf(endpoints: readonly PeerEndpoint[]): string[] {
  return endpoints.flatMap((one) => peerTextOf(one).targets)
}
