/** What each cluster has: a gateway somewhere, with a weight. */
export const GATEWAYS = [
  { name: 'dublin', geo: 'GEO-EU', weight: 100, target: '192.0.2.101' },
  { name: 'milan', geo: 'GEO-EU', weight: 300, target: '192.0.2.102' },
  { name: 'boston', geo: 'GEO-NA', weight: 200, target: '192.0.2.103' },
] as const
export type Gateway = (typeof GATEWAYS)[number]

const property = (name: string, value: string) => ({ name, value })

/** The layout that Kuadrant's DNSPolicy writes for one gateway of `host`. */
export function layoutOf(host: string, { name, geo, weight, target }: Gateway): object[] {
  const klb = `klb.${host}`
  const place = `${geo.toLowerCase()}.${klb}`
  const gateway = `${name}.${klb}`
  const cname = (dnsName: string, to: string, recordTTL: number) => ({
    dnsName,
    recordType: 'CNAME',
    recordTTL,
    targets: [to],
  })
  return [
    cname(host, klb, 300),
    {
      ...cname(klb, place, 300),
      setIdentifier: geo,
      providerSpecific: [property('geo-code', geo)],
    },
    {
      ...cname(place, gateway, 60),
      setIdentifier: gateway,
      providerSpecific: [property('weight', String(weight))],
    },
    { dnsName: gateway, recordType: 'A', recordTTL: 60, targets: [target] },
  ]
}

/** One gateway's endpoint of a name. The endpoints of all gateways differ only in weight. */
export function drawnOf(dnsName: string, { name, weight, target }: Gateway): object {
  return {
    dnsName,
    recordType: 'A',
    recordTTL: 60,
    setIdentifier: name,
    targets: [target],
    providerSpecific: [property('weight', String(weight))],
  }
}
