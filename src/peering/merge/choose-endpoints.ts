import { printLatin1 } from '../../base/latin1.ts'
import { DERIVED_ENDPOINTS_MAX, type Endpoint } from '../../records/dns-record.ts'
import type { PeerEndpoint, SiteState } from '../peer-endpoint.ts'
import { cutToFit, type LeftOut, OTHERS_OCTETS_MAX } from './cut-to-fit.ts'
import { setKey } from './part.ts'

/**
 * Returns the endpoints of other sites to serve, within the size limits. Of a v1 peer, it drops targets that a v2 site
 * or this site also has, because v1 lacks a part of their data. `siteStates`: as chosen by `chooseOthers`.
 */
export function chooseEndpoints(
  own: readonly PeerEndpoint[],
  siteStates: readonly SiteState[],
  roomOctets: number = OTHERS_OCTETS_MAX,
): { readonly endpoints: readonly PeerEndpoint[]; readonly leftOut: readonly LeftOut[] } {
  const parts = siteStates.flatMap(({ endpoints, generation, exporter }) => {
    return endpoints.map((endpoint) => ({ endpoint, generation, exporter }))
  })
  const room = Math.max(0, DERIVED_ENDPOINTS_MAX - own.length)
  const fitting = cutToFit(parts, { endpoints: room, octets: roomOctets })
  const { leftOut } = fitting
  if (!fitting.parts.some(({ generation }) => generation === 'v1')) {
    return { endpoints: fitting.parts.map(({ endpoint }) => endpoint), leftOut }
  }
  const whole = new Set<string>()
  const targetKey = (one: Endpoint, rdata: Uint8Array): string => {
    return `${setKey(one)} ${printLatin1(rdata)}`
  }
  const note = ({ endpoint }: PeerEndpoint): void => {
    for (const rdata of endpoint.rdata) whole.add(targetKey(endpoint, rdata))
  }
  own.forEach(note)
  for (const { endpoint, generation } of fitting.parts) if (generation === 'v2') note(endpoint)
  const endpoints = fitting.parts.flatMap(({ endpoint: one, generation }): PeerEndpoint[] => {
    if (generation === 'v2') return [one]
    const { endpoint } = one
    const rdata = endpoint.rdata.filter((target) => !whole.has(targetKey(endpoint, target)))
    return rdata.length === 0 ? [] : [{ ...one, endpoint: { ...endpoint, rdata } }]
  })
  return { endpoints, leftOut }
}
